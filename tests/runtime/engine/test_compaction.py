"""Plan snapshots that nothing needs are removed, and nothing misses them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine.compaction import compact_journal
from headgate.runtime.engine.engine import Engine
from headgate.store.entries import (
    Acknowledged,
    DataflowStored,
    Delivered,
    EpochCommitted,
    FragmentBegun,
    FragmentRemoved,
    SnapshotPublished,
    UsageChanged,
)
from headgate.store.files import write_json
from headgate.store.journal import Journal, create_journal, read_journal
from tests.runtime.small import files, flow, json_rows, numbered, put


def test_what_is_needed_stays(tmp_path: Path) -> None:
    create_journal(tmp_path / "journal")
    (tmp_path / "hosts").mkdir()
    journal = Journal(tmp_path / "journal")
    for number in range(10):
        write_json(tmp_path / "hosts" / f"{number}.json", {})
        dataflow = DataflowStored(f"d{number}", {})
        journal.append(dataflow, SnapshotPublished(number, {"dataflows": {"a": "d0", "b": dataflow.id}}))
    gone, there = (FragmentBegun(name, 2, "r", {}, 32) for name in ("gone", "there"))
    for begun in (gone, there):
        for epoch in range(3):
            commit = EpochCommitted(begun.origin, epoch, (2,))
            journal.append(begun, commit, Delivered(begun.origin, epoch), UsageChanged(epoch))
    now = time.time()
    journal.append(FragmentRemoved("gone", "r"))
    journal.append(Acknowledged("old", "f", 200, {}, now - 25 * 3600), Acknowledged("new", "f", 200, {}, now))
    compact_journal(journal, tmp_path / "hosts", 7, [there])
    for opened in (journal, Journal(tmp_path / "journal")):
        assert [entry.number for entry in opened.every(SnapshotPublished)] == [2, 7, 8, 9]
        assert [entry.id for entry in opened.every(DataflowStored)] == ["d0", "d2", "d7", "d8", "d9"]
        assert [entry.request for entry in opened.every(Acknowledged)] == ["new"]
        assert list(opened.every(FragmentBegun)) == [there]
        assert not list(opened.every(FragmentRemoved))
        assert [(entry.origin, entry.epoch) for entry in opened.every(EpochCommitted)] == [(there.origin, 2)]
        assert list(opened.every(Delivered)) == [Delivered(there.origin, 2)]
        assert [entry.at_s for _, entry in opened.read(UsageChanged)] == [0, 1, 2, 0, 1, 2], "bills need all of it"
    assert sorted(file.stem for file in (tmp_path / "hosts").iterdir()) == ["2", "7", "8", "9"]


@pytest.mark.spark
def test_an_engine_goes_on_without_the_snapshots_it_removed(spark: SparkSession, tmp_path: Path) -> None:
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
                engine._upkeep._most_bytes = 0
                engine.housekeep()
            last = engine.snapshot.number
    # Of 9 snapshots: the first describes the running fragments, and the last few are what epochs and rows name.
    assert last == 9
    left = {entry.number for _, entry in read_journal(state / "journal", SnapshotPublished)}
    assert {1, 9} <= left <= {1, 5, 6, 7, 8, 9}
    found = sorted((row["id"], row["way"]) for row in json_rows(tmp_path / "out"))
    assert found == [(i, "one" if i // 30 % 2 else "two") for i in range(240)]
    assert sorted((row["k"], row["n"]) for row in json_rows(tmp_path / "out")) == [
        (f"k{key}", n) for key in range(3) for n in range(1, 81)
    ]
