"""Choices of several kinds become one snapshot or none, and a restart reads what was chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.errors import InputError
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.engine.choices import Choices, active_alternates
from headgate.runtime.engine.pending_change import SUBMITTED, PendingChange
from headgate.runtime.engine.snapshot import Snapshot
from headgate.sharing.alternates import binding_level
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


def test_it_is_kept_since_when_by_whom_and_why_an_alternate_is_active(snapshot: Snapshot) -> None:
    smooth = snapshot.find("f").signatures[TaskId("smooth")]
    assert (snapshot.chosen[smooth].by, snapshot.chosen[smooth].reason) == ("headgate", SUBMITTED)
    assert snapshot.chosen.keys() == {smooth}, "tasks without a choice have none"
    plan = compile_plan(snapshot)
    policy = Choices({smooth: "less"}, by="policy ce", reason="decision 7: demand is 1.2 of 1.0 cores")
    switched, later = replace(policy.of(snapshot, plan)[0], at=50.0).compiled(plan)
    way = active_alternates(switched, later, "f")[TaskId("smooth")]
    assert (way.alternate, way.value, way.alternates) == ("less", 0.5, ("more", "less"))
    assert (way.since, way.by, way.reason, way.held) == (50.0, "policy ce", policy.reason, False)
    ana = Choices({smooth: "less"}, held={smooth: True}, by="ana")
    again = replace(ana.of(switched, later)[0], at=60.0).compiled(later)[0]
    assert again.chosen == switched.chosen, "it was active already"
    assert active_alternates(again, later, "f")[TaskId("smooth")].held
    stored = snapshot.find("f")
    read_again = Snapshot.from_dict(json.loads(json.dumps(again.as_dict())), lambda _: stored, default_registry())
    assert read_again.chosen == again.chosen
    assert PendingChange(again).withdrawn("f").compiled(later)[0].chosen == {}


def test_a_changed_service_level_holds_until_its_dataflow_goes(snapshot: Snapshot) -> None:
    level = ServiceLevel(0.9, latency_max_s=2.0, budget_per_h=Decimal("1.50"), time_within_min=0.95)
    after = chosen(snapshot, Choices(levels={"f": level}))
    assert [flow.service_level for flow in after.dataflows] == [level]
    stored = snapshot.find("f")
    assert stored.written.service_level == ServiceLevel(), "what its author wrote is as it was"
    read_again = Snapshot.from_dict(json.loads(json.dumps(after.as_dict())), lambda _: stored, default_registry())
    assert [flow.service_level for flow in read_again.dataflows] == [level]
    smooth = stored.signatures[TaskId("smooth")]
    assert binding_level(after.shared.running, smooth, after.levels).latency_max_s == 2.0
    assert chosen(after, Choices(levels={"f": None})).levels == {}
    assert PendingChange(after).withdrawn("f").snapshot.levels == {}


@pytest.mark.parametrize(
    ("bad", "condition"),
    [
        ({"active": {Signature("0" * 64): "less"}}, "UNKNOWN_TASK"),
        ({"held": {Signature("0" * 64): True}}, "UNKNOWN_TASK"),
        ({"limits": {Signature("0" * 64): 5}}, "UNKNOWN_TASK"),
        ({"paused": {"g": True}}, "UNKNOWN_DATAFLOW"),
        ({"levels": {"g": None}}, "UNKNOWN_DATAFLOW"),
    ],
)
def test_what_cannot_be_chosen_is_refused(snapshot: Snapshot, bad: dict[str, object], condition: str) -> None:
    with pytest.raises(InputError) as caught:
        chosen(snapshot, Choices(**bad))  # type: ignore[arg-type]
    assert caught.value.condition == condition
