"""Jobs that are kept from one epoch to the next put out what new ones would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.runtime.engine.engine import Engine
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.store.entries import EpochCommitted
from tests.runtime.small import files, flow, memory, numbered, put

FILES = 4


def _lines(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(out.glob("*.json")) for line in file.read_text().splitlines()]


def _ran(engine: Engine, place: Path, columns: dict[str, str]) -> tuple[list[dict[str, object]], list[object]]:
    """The rows of a few epochs with derived columns, and the jobs that were kept."""
    (place / "in").mkdir()
    derive = {"id": "d", "type": "derive", "config": {"columns": columns}}
    sink = {"id": "w", "type": "write_files", "config": {"path": str(place / "out"), "format": "json"}}
    put(place / "in", "0", numbered(0, 5))
    engine.submit(flow("f", files(place / "in"), derive, sink))
    for number in range(1, FILES):
        engine.wait_until_idle()
        put(place / "in", str(number), numbered(number * 5, 5))
    engine.wait_until_idle()
    (fragment,) = engine.fragments.values()
    return _lines(place / "out"), _kept(fragment)


def _kept(fragment: RunningFragment) -> list[object]:
    return list(fragment.epochs.jobs._kept._jobs.values())  # type: ignore[attr-defined]


@pytest.mark.spark
def test_a_plain_job_is_planned_once_and_reads_each_epochs_rows(engine: Engine, tmp_path: Path) -> None:
    rows, kept = _ran(engine, tmp_path, {"twice": "2 * id"})
    assert sorted((row["id"], row["twice"]) for row in rows) == [(n, 2 * n) for n in range(5 * FILES)]
    assert len(kept) == 1
    assert kept[0] is not None


@pytest.mark.spark
def test_what_spark_fixes_when_it_plans_is_new_in_each_epoch(engine: Engine, tmp_path: Path) -> None:
    rows, kept = _ran(engine, tmp_path, {"u": "uuid()", "at": "now()"})
    assert len({row["u"] for row in rows}) == 5 * FILES, "no identifier comes twice"
    assert len({row["at"] for row in rows}) == FILES, "each epoch has a time of its own"
    assert set(kept) == {None}


@pytest.mark.spark
def test_workers_that_read_splits_stage_them_where_spark_has_nothing_to_do(engine: Engine, tmp_path: Path) -> None:
    same = {"id": "s", "type": "python", "config": {"function": "tests.runtime.functions.same"}}
    fussy = {**same, "config": {"function": "tests.runtime.functions.picky"}, "on_error": "dead_letter"}
    one = {"id": "one", "type": "filter", "config": {"where": "id = 1"}}
    put(tmp_path / "in", "0", numbered(0, 50))
    put(tmp_path / "other", "0", numbered(0, 50))
    engine.submit(
        flow("f", files(tmp_path / "in"), same, memory("f")),
        flow("g", files(tmp_path / "in"), fussy, memory("g")),
        flow("h", files(tmp_path / "other"), one, memory("h")),
    )
    engine.wait_until_idle()
    put(tmp_path / "in", "1", numbered(50, 50))
    engine.wait_until_idle()
    assert engine.memory.rows("f") == numbered(0, 100)
    assert [row["id"] for row in engine.memory.rows("g")] == [n for n in range(100) if n % 5 != 3]
    assert [row["id"] for row in engine.memory.rows("h")] == [1]
    workers = {
        str(job.frame._jdf.queryExecution().executedPlan()).count("MapInArrow") if job is not None else None
        for fragment in engine.fragments.values()
        for job in fragment.epochs.jobs._kept._jobs.values()  # type: ignore[attr-defined]
    }
    assert workers == {1, 2}, "one to read and stage; two where a filter is between them"


@pytest.mark.spark
def test_a_plan_that_changes_nothing_in_a_fragment_keeps_its_job(engine: Engine, tmp_path: Path) -> None:
    sinks = {name: {"type": "write_files", "config": {"path": str(tmp_path / name), "format": "json"}} for name in "fg"}
    for name, sink in sinks.items():
        (tmp_path / f"in_{name}").mkdir()
        put(tmp_path / f"in_{name}", "0", numbered(0, 5))
        engine.submit(flow(name, files(tmp_path / f"in_{name}"), {"id": "w", **sink}))
        engine.wait_until_idle()
    first = next(iter(engine.fragments.values()))
    before = list(_kept(first))
    put(tmp_path / "in_f", "1", numbered(5, 5))
    engine.wait_until_idle()
    assert sorted(row["id"] for row in _lines(tmp_path / "f")) == list(range(10))  # type: ignore[type-var]
    assert _kept(first) == before
    committed = engine.journal.latest(EpochCommitted, first.begun.origin)
    assert committed is not None
    assert {output.target.snapshot for output in committed.outputs} == {engine.plan.number}, "rows are of the new plan"


@pytest.mark.spark
def test_an_alternate_that_comes_back_finds_its_job(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    ways = [{"name": name, "type": "derive", "config": {"columns": {"way": f"'{name}'"}}} for name in "ab"]
    sink = {"id": "w", "type": "write_files", "config": {"path": str(tmp_path / "out"), "format": "json"}}
    engine.submit(flow("f", files(tmp_path / "in"), {"id": "d", "alternates": ways}, sink))
    (fragment,) = engine.fragments.values()
    jobs = []
    for number, way in enumerate("aba"):
        engine.switch("f", "d", way)
        put(tmp_path / "in", str(number), numbered(number, 1))
        engine.wait_until_idle()
        jobs.append(_kept(fragment))
    assert [row["way"] for row in sorted(_lines(tmp_path / "out"), key=lambda row: int(str(row["id"])))] == list("aba")
    assert [len(kept) for kept in jobs] == [1, 2, 2]
