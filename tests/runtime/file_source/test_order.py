"""Keyed tasks see the rows of files in the order of modification and name, whatever is cut, restarted or split up."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, flow, json_rows, wait_for

pytestmark = pytest.mark.spark

KEYS = 7
FILES = 2_000
BEGIN_NS = 1_700_000_000_000_000_000


def written(folder: Path, rnd: random.Random, first: int, count: int) -> None:
    """Files of mixed sizes, whose names, times and order of appearance have nothing to do with each other."""
    folder.mkdir(exist_ok=True)
    numbers = list(range(first, first + count))
    rnd.shuffle(numbers)
    for number in numbers:
        rows = rnd.choice([1, 1, 5, 20, 60, 200])
        lines = [json.dumps({"id": number * 1_000 + n, "k": f"k{rnd.randrange(KEYS)}", "v": n}) for n in range(rows)]
        hidden = folder / f".{number}"
        hidden.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        modified_ns = BEGIN_NS + first * 1_000_000_000 + rnd.randrange(count // 3) * 1_000  # some have the same
        os.utime(hidden, ns=(modified_ns, modified_ns))
        hidden.rename(folder / f"{rnd.randrange(10**9)}-{number}.json")


def in_order(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder's files, one file after the other."""
    ordered = sorted(folder.iterdir(), key=lambda file: (file.stat().st_mtime_ns, str(file)))
    return [json.loads(line) for file in ordered for line in file.read_text(encoding="utf-8").splitlines()]


def one_after_the_other(rows: list[dict[str, Any]]) -> dict[int, tuple[int | None, int]]:
    """By the number of a row: the number of the row before it with its key, and how many there were up to it."""
    last: dict[str, int] = {}
    seen: dict[str, int] = {}
    outcome: dict[int, tuple[int | None, int]] = {}
    for row in rows:
        key = row["k"]
        seen[key] = seen.get(key, 0) + 1
        outcome[row["id"]] = (last.get(key), seen[key])
        last[key] = row["id"]
    return outcome


def keyed(source: Path, out: Path, **options: Any) -> Any:
    """The difference to the row before, and the number of rows so far, of each key; both behind a stateless task."""
    return flow(
        "ordered",
        {"id": "files", **files(source, **options)},
        {"id": "read", "type": "derive", "inputs": ["files"], "config": {"columns": {"w": "2 * v"}}},
        {"id": "step", "type": "difference", "inputs": ["read"], "config": {"key": ["k"], "column": "id"}},
        {"id": "count", "type": "count", "inputs": ["read"], "config": {"key": ["k"]}},
        {"type": "write_files", "inputs": ["step"], "config": {"path": str(out / "step")}},
        {"type": "write_files", "inputs": ["count"], "config": {"path": str(out / "count")}},
    )


def check(source: Path, out: Path) -> None:
    wanted = one_after_the_other(in_order(source))
    steps = {row["id"]: row.get("difference") for row in json_rows(out / "step")}
    assert steps == {i: None if before is None else i - before for i, (before, _) in wanted.items()}
    assert {row["id"]: row["count"] for row in json_rows(out / "count")} == {i: n for i, (_, n) in wanted.items()}


def spans(state: Path) -> list[int]:
    """How many files each planned batch has."""
    plans = [json.loads(path.read_text(encoding="utf-8")) for path in state.glob("fragments/*/files/plan-*.json")]
    return [len(planned) for _, *_, planned in sorted(plans)]


def test_in_one_batch_and_several_partitions(engine: Engine, tmp_path: Path) -> None:
    written(tmp_path / "in", random.Random(1), 0, FILES)
    engine.submit(keyed(tmp_path / "in", tmp_path / "out"))
    engine.wait_until_idle()
    assert max(spans(engine.state.path)) > FILES // 2, "most of them in one batch"
    check(tmp_path / "in", tmp_path / "out")


def test_in_many_batches_before_and_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    rnd = random.Random(2)
    written(tmp_path / "in", rnd, 0, FILES - 100)
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.submit(keyed(tmp_path / "in", tmp_path / "out", files_per_batch=150))
        wait_for(lambda: len(json_rows(tmp_path / "out" / "count")) > 10_000, "the first files")
    assert len(json_rows(tmp_path / "out" / "count")) < len(in_order(tmp_path / "in")), "there is something left"
    written(tmp_path / "in", rnd, FILES - 100, 100)
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.wait_until_idle()
        assert len(spans(tmp_path / "state")) > 10
    check(tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize("partitions", [1, 3])
def test_behind_a_stateless_task_with_partitions_of_its_own(engine: Engine, tmp_path: Path, partitions: int) -> None:
    (tmp_path / "in").mkdir()
    engine.submit(keyed(tmp_path / "in", tmp_path / "out"))
    engine.repartition("ordered", "read", partitions)
    written(tmp_path / "hidden", random.Random(3), 0, 300)
    (tmp_path / "hidden").rename(tmp_path / "in" / "day=1")
    engine.wait_until_idle()
    assert max(spans(engine.state.path)) == 300, "all in one batch"
    check(tmp_path / "in" / "day=1", tmp_path / "out")
