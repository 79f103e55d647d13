"""An engine as a controller works on it: the terms of what runs, and changes that are durable with their reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.adaptation.actions import AssignCores, SetPartitions, SwitchAlternate
from headgate.adaptation.controller.records import terms_entry
from headgate.errors import InputError
from headgate.model.names import Signature, TaskId
from headgate.runtime.engine.controlled import ControlledEngine
from headgate.runtime.engine.engine import Engine
from headgate.sharing.deduplicate import deduplicate
from headgate.store.decision_entries import StepChanged, StepState
from tests.runtime.small import files, flow, memory, numbered, put

pytestmark = pytest.mark.spark
WAYS = [
    {"name": "a", "type": "derive", "config": {"columns": {"w": "v + 1"}}, "value": 1},
    {"name": "b", "type": "derive", "config": {"columns": {"w": "v - 1"}}, "value": 0.5},
]
WINDOWS = [
    {
        "name": name,
        "type": "window",
        "config": {"time": "at", "size": size, "late_by": "1s", "columns": {"n": "count(*)"}},
    }
    for name, size in (("short", "1min"), ("long", "5min"))
]


@pytest.fixture
def running(engine: Engine, tmp_path: Path) -> dict[TaskId, Signature]:
    """The signatures of a dataflow that runs, with a task of two alternates and a window of two."""
    put(tmp_path / "in", "0", numbered(0, 5))
    stamp = {"type": "derive", "config": {"columns": {"at": "timestamp'2026-01-01 00:00:00'"}}, "id": "stamp"}
    made = flow(
        "f",
        {**files(tmp_path / "in"), "id": "read"},
        {"id": "smooth", "alternates": WAYS},
        stamp,
        {"id": "counted", "alternates": WINDOWS},
        memory("out"),
    )
    engine.submit(made)
    return {task: Signature(signature) for task, signature in deduplicate(made).signatures.items()}


def controlled(engine: Engine) -> ControlledEngine:
    return ControlledEngine(engine, 60.0, 0.5)


def done(number: int) -> list[StepChanged]:
    return [StepChanged(1, 0, StepState.DONE, 0.0, f"snapshot {number}")]


def test_terms_say_what_runs_and_what_can_be_changed(engine: Engine, running: dict[TaskId, Signature]) -> None:
    smooth, counted = running[TaskId("smooth")], running[TaskId("counted")]
    costed = {(smooth, "a"), (smooth, "b"), (counted, "short"), (counted, "long")}
    cluster = controlled(engine)
    known = cluster.terms(costed)
    assert known is not None
    terms, can = known
    assert {str(task.id) for task in terms.dataflow.tasks} == {f"f.{task}" for task in running}
    assert terms.signatures[TaskId("f.smooth")] == smooth
    assert set(terms.owners["f"]) == {f"f.{task}" for task in running}
    assert can.accepts(SwitchAlternate(smooth, "b"))
    assert not can.accepts(SwitchAlternate(counted, "long"))
    assert "windows" in can.reasons[counted]
    assert "--cluster" in can.reasons["acquire_machine"]
    assert cluster.terms(costed) is known
    assert terms_entry(*known).id == terms_entry(*controlled(engine).terms(costed) or known).id


def test_alternates_of_unknown_cost_and_held_tasks_are_not_for_policies(
    engine: Engine, running: dict[TaskId, Signature]
) -> None:
    smooth = running[TaskId("smooth")]
    known = controlled(engine).terms({(smooth, "a")})
    assert known is not None
    assert "cost_s" in known[1].reasons[smooth]
    task = next(each for each in known[0].dataflow.tasks if each.id == "f.smooth")
    assert [way.name for way in task.alternates] == ["a"]
    engine.switch("f", "smooth", "b")
    held = controlled(engine).terms({(smooth, "a"), (smooth, "b")})
    assert held is not None
    assert not held[1].accepts(SwitchAlternate(smooth, "a"))
    assert "--release" in held[1].reasons[smooth]


def test_a_change_and_what_it_is_for_are_one_write(engine: Engine, running: dict[TaskId, Signature]) -> None:
    smooth = running[TaskId("smooth")]
    position, number = engine.journal.position, engine.snapshot.number
    actions = (SwitchAlternate(smooth, "b"), SetPartitions(smooth, 3))
    controlled(engine).publish(actions, "policy any", "decision 1: it is time", done)
    assert engine.journal.position == position + 1
    assert engine.snapshot.number == number + 1
    step = engine.journal.latest(StepChanged, "1/0")
    assert step is not None
    assert step.result == f"snapshot {number + 1}"
    chosen = engine.alternates("f")[TaskId("smooth")]
    assert (chosen.alternate, chosen.by, chosen.reason) == ("b", "policy any", "decision 1: it is time")
    assert smooth not in engine.snapshot.held


def test_what_cannot_be_done_leaves_no_trace(engine: Engine, running: dict[TaskId, Signature]) -> None:
    before, position = engine.snapshot, engine.journal.position
    with pytest.raises(InputError, match="no alternate 'c'"):
        controlled(engine).publish(
            [SwitchAlternate(running[TaskId("smooth")], "c")], "policy any", "decision 1: so", done
        )
    with pytest.raises(InputError, match="Spark's machines come whole"):
        controlled(engine).publish([AssignCores("spark", "m", 1)], "policy any", "decision 1: so", done)
    assert (engine.snapshot, engine.journal.position) == (before, position)
