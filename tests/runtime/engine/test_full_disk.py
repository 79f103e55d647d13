"""A state directory on a disk that is full for a while: fragments wait, changes are refused, nothing is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.documents import read
from headgate.errors import HeadgateError
from headgate.runtime.engine.engine import Engine
from tests.cli.test_serving import write_flow
from tests.runtime.small import json_rows, numbered, put, wait_for

pytestmark = pytest.mark.spark


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Take all the room that there is."""
    with suppress(OSError), (disk / "filler").open("ab", buffering=0) as file:
        while True:
            file.write(os.urandom(4096))


def housekept(engine: Engine, reached: Callable[[], bool]) -> Callable[[], bool]:
    """The same condition, with the engine looked after as ``headgate run`` does."""

    def look() -> bool:
        with suppress(OSError):
            engine.housekeep()
        return reached()

    return look


@pytest.mark.timeout(300)
def test_full_then_freed(spark: SparkSession, tmp_path: Path, disk: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 6))
    one, two = (read(write_flow(tmp_path, name)).dataflow for name in ("one", "two"))
    with Engine(disk / "state", spark=spark, trigger_s=0.1) as engine:
        engine.submit(one)
        wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 6, "the first rows")
        fill(disk)
        put(tmp_path / "in", "1", numbered(6, 6))

        def waits() -> bool:
            fill(disk)
            flow = engine.status()[0][0]
            return flow.state == "degraded" and "waits for the file system" in flow.reason

        wait_for(housekept(engine, waits), "a status that says so")
        before = engine.snapshot
        fill(disk)
        with pytest.raises((OSError, HeadgateError)):
            engine.submit(two)
        assert engine.snapshot is before, "nothing half-applied"
        assert [flow.name for flow in engine.status()[0]] == ["one"]

        (disk / "filler").unlink()
        wait_for(housekept(engine, lambda: len(json_rows(tmp_path / "out_one")) == 12), "the other rows")
        wait_for(housekept(engine, lambda: engine.status()[0][0].state == "running"), "a dataflow that is well")
        engine.submit(two)
        engine.wait_until_idle()
    counts = {row["id"]: row["count"] for row in json_rows(tmp_path / "out_one")}
    assert counts == {n: n // 3 + 1 for n in range(12)}, "nothing lost, nothing twice"
