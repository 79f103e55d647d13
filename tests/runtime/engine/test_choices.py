"""Choices of several kinds become one snapshot or none, and a restart reads what was chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.errors import InputError
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.engine.choices import Choices
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.snapshot import Snapshot
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from tests.runtime.small import files, flow, memory

WAYS = [
    {"name": name, "type": "derive", "config": {"columns": {"w": f"v {sign} 1"}}, "value": value}
    for name, sign, value in (("more", "+", 1), ("less", "-", 0.5))
]


@pytest.fixture
def snapshot() -> Snapshot:
    given = flow("f", {"id": "read", **files(Path("in"))}, {"id": "smooth", "alternates": WAYS}, memory("out"))
    return (
        PendingChange(Snapshot(SharedSet(default_registry())))
        .submitted(given)
        .compiled(compile_plan(Snapshot(SharedSet(default_registry()))))[0]
    )


def chosen(snapshot: Snapshot, choices: Choices) -> Snapshot:
    before = compile_plan(snapshot)
    return choices.of(snapshot, before)[0].compiled(before)[0]


def test_all_kinds_are_chosen_at_once_and_kept(snapshot: Snapshot) -> None:
    signatures = snapshot.find("f").signatures
    read, smooth = signatures[TaskId("read")], signatures[TaskId("smooth")]
    after = chosen(snapshot, Choices({smooth: "less"}, {smooth: 3}, {read: 50}, {"f": True}, {smooth: True}))
    assert after.number == snapshot.number + 1
    assert (dict(after.partitions), dict(after.limits)) == ({smooth: 3}, {read: 50})
    assert (after.paused, after.held) == (frozenset({DataflowName("f")}), frozenset({smooth}))
    stored = snapshot.find("f")
    read_again = Snapshot.from_dict(json.loads(json.dumps(after.as_dict())), lambda _: stored, default_registry())
    assert read_again.as_dict() == after.as_dict()
    resumed = chosen(after, Choices(paused={"f": False}))
    assert resumed.active == after.active, "what is not named stays"
    back = chosen(resumed, Choices({smooth: "more"}, {smooth: None}, {read: None}, {}, {smooth: False}))
    assert not any((back.partitions, back.limits, back.paused, back.held))


@pytest.mark.parametrize(
    ("bad", "condition"),
    [
        ({"active": {Signature("0" * 64): "less"}}, "UNKNOWN_TASK"),
        ({"held": {Signature("0" * 64): True}}, "UNKNOWN_TASK"),
        ({"limits": {Signature("0" * 64): 5}}, "UNKNOWN_TASK"),
        ({"paused": {"g": True}}, "UNKNOWN_DATAFLOW"),
    ],
)
def test_what_cannot_be_chosen_is_refused(snapshot: Snapshot, bad: dict[str, object], condition: str) -> None:
    with pytest.raises(InputError) as caught:
        chosen(snapshot, Choices(**bad))  # type: ignore[arg-type]
    assert caught.value.condition == condition
