"""An engine goes on where the last one on its directory was, cleanly stopped or killed in the middle of a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.runtime.compile.plan import Kind
from headgate.runtime.engine.engine import Engine
from headgate.runtime.io.outbox import SinkOutbox
from headgate.runtime.io.sinks import MemorySink, StagedDelivery
from headgate.store.entries import Delivered, EpochCommitted, FragmentRemoved, OutputKind, SnapshotPublished
from headgate.store.files import write_json
from headgate.store.journal import Journal
from tests.compiled import plan_of
from tests.runtime.compared import table_rows
from tests.runtime.small import files, flow, json_rows, numbered, put


def counting(folder: Path, name: str = "counting") -> Dataflow:
    """A dataflow with a stateless and a keyed sink."""
    return flow(
        name,
        {**files(folder / "in"), "id": "src"},
        {"type": "write_files", "config": {"path": str(folder / name / "rows")}, "inputs": ["src"]},
        {"id": "n", "type": "count", "config": {"key": ["k"], "into": "n"}, "inputs": ["src"]},
        {"type": "write_files", "config": {"path": str(folder / name / "counts")}, "inputs": ["n"]},
    )


def opened(folder: Path, spark: SparkSession) -> Engine:
    return Engine(folder / "state", spark=spark, trigger_s=0.1)


def counts(folder: Path, name: str = "counting") -> list[tuple[str, int]]:
    return sorted((row["k"], row["n"]) for row in json_rows(folder / name / "counts"))


@pytest.mark.spark
def test_stopped_and_started_again(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 30))
    with opened(tmp_path, spark) as engine:
        engine.submit(counting(tmp_path))
        engine.wait_until_idle()
    put(tmp_path / "in", "1", numbered(30, 30))
    with opened(tmp_path, spark) as engine:
        assert engine.snapshot.number == 1
        engine.wait_until_idle()
        engine.submit(counting(tmp_path, "other"))
        assert engine.snapshot.number == 2
    assert sorted(row["id"] for row in json_rows(tmp_path / "counting" / "rows")) == list(range(60))
    assert counts(tmp_path) == [(f"k{key}", n) for key in range(3) for n in range(1, 21)]
    with opened(tmp_path, spark) as engine:
        assert [flow.name for flow in engine.snapshot.dataflows] == ["counting", "other"]


@pytest.mark.spark
def test_what_comes_back_overwrites_nothing(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 30))
    with opened(tmp_path, spark) as engine:
        for _ in range(2):
            engine.submit(counting(tmp_path))
            engine.wait_until_idle()
            engine.withdraw("counting")
            while engine.fragments:
                engine.housekeep()
    # The source is read anew by a dataflow that comes to nobody's fragment, and counts begin at 1.
    assert sorted(row["id"] for row in json_rows(tmp_path / "counting" / "rows")) == sorted([*range(30), *range(30)])
    assert counts(tmp_path) == sorted([(f"k{key}", n) for key in range(3) for n in range(1, 11)] * 2)


@pytest.mark.spark
def test_killed_in_the_middle_of_a_submission(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        pass

    def dies(*_: object, **__: object) -> None:
        raise KilledError

    put(tmp_path / "in", "0", numbered(0, 30))
    state = tmp_path / "state"
    with opened(tmp_path, spark) as engine:
        # Killed after snapshot 1 was prepared and before it was there: nobody has ever run it.
        monkeypatch.setattr(engine._queries, "discard", lambda _: None)
        monkeypatch.setattr(engine._plans, "publish", dies)
        with pytest.raises(KilledError):
            engine.submit(counting(tmp_path))
        assert list((state / "fragments").iterdir())
    with opened(tmp_path, spark) as engine:
        assert (engine.snapshot.number, list(engine.fragments)) == (0, [])
        assert not list((state / "fragments").iterdir())
        engine.submit(counting(tmp_path))
        engine.submit(counting(tmp_path, "other"))
        engine.wait_until_idle()
    assert counts(tmp_path) == [(f"k{key}", n) for key in range(3) for n in range(1, 11)]


@pytest.mark.spark
def test_killed_in_the_middle_of_a_removal(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 30))
    with opened(tmp_path, spark) as engine:
        engine.submit(counting(tmp_path))
        engine.wait_until_idle()
        keyed = next(f for f in engine.fragments.values() if f.fragment.kind is Kind.KEYED)
        engine.pause("counting")  # keeps the source
    folder = tmp_path / "state" / "fragments" / keyed.fragment.id
    (folder / "checkpoint" / "offsets").mkdir(parents=True, exist_ok=True)
    journal = Journal(tmp_path / "state" / "journal")
    journal.append(FragmentRemoved(keyed.fragment.id, keyed.begun.run))
    journal.close()
    with opened(tmp_path, spark) as engine:
        assert not folder.exists()
        engine.resume("counting")
        put(tmp_path / "in", "1", numbered(30, 30))
        engine.wait_until_idle()
    assert sorted(row["id"] for row in json_rows(tmp_path / "counting" / "rows")) == list(range(60))


@pytest.mark.spark
def test_a_withdrawn_source_delivers_what_it_committed(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 30))
    with opened(tmp_path, spark) as engine:
        engine.submit(counting(tmp_path))
        engine.wait_until_idle()
        source = next(f for f in engine.fragments.values() if f.fragment.kind is Kind.SOURCE)
        snapshot = engine.snapshot.next(stored={}).as_dict()
    # Killed after the withdrawal, with an epoch committed and one of its sinks without its rows.
    journal = Journal(tmp_path / "state" / "journal")
    commit = journal.latest(EpochCommitted, source.begun.origin)
    assert commit is not None
    staged_files = next(output.files for output in commit.outputs if output.target.kind is OutputKind.SINK)
    for (staged, _), given in zip(staged_files, sorted((tmp_path / "counting" / "rows").iterdir()), strict=True):
        Path(staged).parent.mkdir(parents=True, exist_ok=True)
        given.rename(staged)
    journal.append(Delivered(commit.origin, commit.epoch - 1), SnapshotPublished(2, snapshot))
    journal.close()
    write_json(tmp_path / "state" / "hosts" / "2.json", {})
    with opened(tmp_path, spark) as engine:
        while engine.fragments:
            engine.housekeep()
    assert sorted(row["id"] for row in json_rows(tmp_path / "counting" / "rows")) == list(range(30))
    assert len(counts(tmp_path)) == 30
    assert not list((tmp_path / "state" / "fragments").iterdir())


def test_offered_again_after_it_was_taken_from_the_pending(tmp_path: Path) -> None:
    import pyarrow as pa

    table_flow = flow(
        "table",
        files(tmp_path),
        {"type": "write_table", "config": {"url": f"sqlite:///{tmp_path}/no/out.db", "table": "t"}},
    )
    plan = plan_of(table_flow)
    sink = next(signature for signature, task in plan.tasks.items() if task.alternate.type == "write_table")
    box = SinkOutbox(tmp_path / "pending", cast(Any, None), MemorySink(), lambda _: plan)
    (tmp_path / "pending").mkdir()
    staged = tmp_path / "0-0-0.arrow"
    rows = pa.table({"id": [1, 2]})
    with pa.ipc.new_file(str(staged), rows.schema) as writer:
        writer.write_table(rows)
    delivery = StagedDelivery("source-1", 0, 1, [(str(staged), 2)])
    (tmp_path / "no").touch()  # where the database wants its folder
    box(1, Signature(sink), delivery)
    assert "cannot write to sink" in box.refusals[sink]
    (tmp_path / "no").unlink()
    box.retry()
    # The engine was killed before it noted that the epoch is delivered: it comes again, its files are gone.
    box(1, Signature(sink), delivery)
    assert not box.refusals
    assert table_rows(tmp_path / "no" / "out.db", "t") == [(1,), (2,)]
    assert not [kept for kept in (tmp_path / "pending").rglob("*") if kept.is_file()]
