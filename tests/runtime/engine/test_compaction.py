"""Plan snapshots that nothing needs are removed, and nothing misses them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate.runtime.engine.upkeep as upkeep_module
from headgate.runtime.engine.compaction import remove_snapshots
from headgate.runtime.engine.engine import Engine
from headgate.store.files import write_json
from tests.runtime.small import files, flow, json_rows, numbered, put


def numbers(folder: Path) -> set[int]:
    return {int(file.stem) for file in folder.glob("[0-9]*.json")}


@pytest.mark.parametrize(
    ("history_bytes", "left"),
    [(0, {2, 7, 8, 9}), (25, {2, 7, 8, 9}), (10**6, set(range(10)))],
)
def test_what_is_needed_stays_and_history_as_far_as_it_has_room(
    tmp_path: Path, history_bytes: int, left: set[int]
) -> None:
    folders = [tmp_path / "snapshots", tmp_path / "hosts"]
    for folder in folders:
        folder.mkdir()
        for number in range(10):
            write_json(folder / f"{number}.json", {"n": number})
    gone = remove_snapshots(folders, 7, {2}, history_bytes)
    assert gone == 10 - len(left)
    assert numbers(folders[0]) == numbers(folders[1]) == left


@pytest.mark.spark
def test_an_engine_goes_on_without_the_snapshots_it_removed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "HISTORY_BYTES", 0)
    monkeypatch.setattr(upkeep_module, "SNAPSHOTS_BETWEEN", 1)
    ways = [{"name": way, "type": "derive", "config": {"columns": {"way": f"'{way}'"}}} for way in ("one", "two")]
    dataflow = flow(
        "d",
        {**files(tmp_path / "in", files_per_batch=1), "id": "src"},
        {"id": "either", "alternates": [ways[0], {**ways[1], "value": 0.5}]},
        {"id": "n", "type": "count", "config": {"key": ["k"], "into": "n"}},
        {"type": "write_files", "config": {"path": str(tmp_path / "out")}},
    )
    state = tmp_path / "state"
    (tmp_path / "in").mkdir()
    for start in range(2):
        with Engine(state, spark=spark, trigger_s=0.05) as engine:
            if not start:
                engine.submit(dataflow)
            for turn in range(4):
                engine.switch("d", "either", "one" if turn % 2 else "two")
                put(tmp_path / "in", f"{start}-{turn}", numbered(30 * (4 * start + turn), 30))
                engine.wait_until_idle()
                engine.housekeep()
            last = engine.snapshot.number
    # Of 9 snapshots: the first describes the running fragments, and the last few are what epochs and rows name.
    assert last == 9
    assert {1, 9} <= numbers(state / "snapshots") <= {1, 5, 6, 7, 8, 9}
    found = sorted((row["id"], row["way"]) for row in json_rows(tmp_path / "out"))
    assert found == [(i, "one" if i // 30 % 2 else "two") for i in range(240)]
    assert sorted((row["k"], row["n"]) for row in json_rows(tmp_path / "out")) == [
        (f"k{key}", n) for key in range(3) for n in range(1, 81)
    ]
