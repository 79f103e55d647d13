"""Every file of a state directory cut short, emptied or filled with noise: a sentence with its name, or no loss."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.documents import read
from headgate.errors import HeadgateError
from headgate.runtime.engine.engine import Engine
from tests.cli.test_serving import write_flow
from tests.runtime.small import json_rows, numbered, put

pytestmark = pytest.mark.spark

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "emptied": lambda _content: b"",
    "noise": lambda content: random.Random(7).randbytes(max(len(content), 64)),
}

AT_START = ("version", "metadata", "offsets", "fragment.json", "head.json", "dataflows", "snapshots", "suspended.json")


@dataclass(frozen=True)
class Run:
    """A folder with input, output and the state of an engine that has stopped, and a copy of it."""

    folder: Path
    copy: Path

    def files(self) -> list[Path]:
        state = self.copy / "state"
        return sorted(path.relative_to(self.copy) for path in state.rglob("*") if path.is_file())

    def kinds(self) -> list[Path]:
        """One file of each kind: names that differ in numbers and ids only are of one kind."""
        return list({re.sub(r"[0-9a-f]{8,}|\d+", "N", str(path)): path for path in self.files()}.values())

    def restore(self) -> None:
        while self.folder.exists():  # a measurement in the background may be writing its result
            shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.copy, self.folder)


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An engine that has run a little and stopped."""
    run = Run(tmp_path_factory.mktemp("damage") / "run", tmp_path_factory.mktemp("copy") / "run")
    run.folder.mkdir()
    flow = write_flow(run.folder, "one")
    text = flow.read_text().replace('"id": "some"', '"id": "some", "on_error": "dead_letter"')
    flow.write_text(text.replace("id >= 0", "1 / (id - 4) < 9"))
    with Engine(run.folder / "state", spark=spark, trigger_s=0.1) as engine:
        put(run.folder / "in", "0", numbered(0, 6))
        engine.submit(read(flow).dataflow)
        engine.wait_until_idle()
        put(run.folder / "in", "1", numbered(6, 6))
        engine.wait_until_idle()
        engine.housekeep()
    shutil.copytree(run.folder, run.copy)
    return run


def outcome(run: Run, spark: SparkSession, path: Path, damage: Callable[[bytes], bytes]) -> str:
    """What an engine does with a damaged file: the sentence with which it refuses, or ``went on``."""
    for query in spark.streams.active:  # of an engine that has refused its state halfway
        query.stop()
    run.restore()
    file = run.folder / path
    file.write_bytes(damage(file.read_bytes()))
    try:
        with Engine(run.folder / "state", spark=spark, trigger_s=0.1) as engine:
            put(run.folder / "in", "2", numbered(12, 6))
            engine.wait_until_idle(despite_failures=True)
            flows, _ = engine.status()
            if [flow.name for flow in flows] != ["one"]:
                return "LOST: the dataflow"
            if flows[0].state == "degraded":
                return f"degraded: {flows[0].reason}"
    except HeadgateError as error:
        return f"refused: {error.message}"
    except Exception as error:
        return f"TRACEBACK: {type(error).__name__}: {error}"
    counts = sorted((row["id"], row["count"]) for row in json_rows(run.folder / "out_one"))
    right = [(n, n // 3 + 1 - (n > 4 and n % 3 == 1)) for n in range(18) if n != 4]
    return "went on" if counts == right else f"LOST: {counts}"


def is_right(path: Path, said: str) -> bool:
    """A refusal names the file and a remedy; of a file of checksums, the one that it belongs to."""
    name = path.name.removeprefix(".").removesuffix(".crc")
    return said == "went on" or (f"{path.parent.name}/{name}" in said and "restore" in said)


@pytest.mark.timeout(300)
def test_a_file_of_each_kind_that_is_read_at_a_start(stopped: Run, spark: SparkSession) -> None:
    seen = [path for path in stopped.kinds() if not path.name.startswith(".")]
    kinds = [path for path in seen if path.name in AT_START or path.parent.name in AT_START]
    said = {
        f"{path} {name}": (path, outcome(stopped, spark, path, DAMAGES[name]))
        for path, name in zip(kinds, [*DAMAGES] * 100, strict=False)
    }
    assert len(said) >= 6
    assert {what: told for what, (path, told) in said.items() if not is_right(path, told)} == {}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_every_file_in_every_way(stopped: Run, spark: SparkSession) -> None:
    said = {
        f"{path} {name}": (path, outcome(stopped, spark, path, damage))
        for path in stopped.files()
        for name, damage in DAMAGES.items()
    }
    assert {what: told for what, (path, told) in said.items() if not is_right(path, told)} == {}
