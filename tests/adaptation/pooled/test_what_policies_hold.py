"""Floors and latencies where they can be met, hysteresis, and decisions that one can work out by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from headgate.adaptation.actions import AcquireMachine, ReleaseMachine, SetPartitions, SwitchAlternate
from headgate.adaptation.policy import Capabilities, Decision, Terms
from headgate.adaptation.pooled.catalogue import pooled_policy
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.window import MachineColumns, Window
from headgate.capacity.sharing import Sharing
from headgate.model.arrays import Shape
from headgate.model.capacity import FragmentLoad, Pool, StageLoad
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.model.stream import Stream
from headgate.sharing.signature import sign
from tests.adaptation.pooled import windows

SMALL = VmClass("small", 2, 1.0, 100.0, Decimal("0.10"))
EVEN: dict[str, Any] = {"break_even_at_best_per_h": Decimal("0.50"), "break_even_at_worst_per_h": Decimal("0.30")}


def _seen(rate: float, machines: int, level: ServiceLevel, **more: Any) -> Window:
    """The design's worked example: parse 2 ms and score 10 ms or 4 ms in one fragment, smooth 3 ms in another."""
    parse = windows.task("parse", [("only", 1.0, 0.002, 1.0)], False)
    score = windows.task("score", [("best", 1.0, 0.010, 1.0), ("quick", 0.7, 0.004, 1.0)], True)
    smooth = windows.task("smooth", [("only", 1.0, 0.003, 1.0)], True)
    ends = [("parse", "score"), ("score", "smooth")]
    streams = tuple(Stream(TaskId(s), PortName("out"), TaskId(t), PortName("in")) for s, t in ends)
    dataflow = Dataflow(DataflowName("example"), (parse, score, smooth), streams, service_level=level)
    parts = more.pop("partitions", None)
    loads = (
        FragmentLoad("F1", "spark", (StageLoad(("parse", "score"), parts),), 0.25, 0.005, 0.5),
        FragmentLoad("F2", "spark", (StageLoad(("smooth",), parts),), 0.25, 0.005, 0.5),
    )
    sharing = Sharing(loads, (Pool("spark", (), 2.0),))
    terms = Terms(dataflow, sign(dataflow), Cloud("ours", (SMALL,)), 60.0, 60)
    columns = MachineColumns(
        tuple(f"m{n}" for n in range(machines)),
        np.zeros(machines, dtype=np.int64),
        np.ones(machines),
        np.full(machines, more.pop("left_s", 1_800.0)),
        np.zeros(machines),
        np.full((machines, 1), 2, dtype=np.int64),
    )
    shape = Shape.of(dataflow, fragments=sharing.groups)
    external = np.array([rate if name == "parse" else 0.0 for name in shape.names])
    made = Window(
        terms, Capabilities(("spark",), windows.SPARK), 0.0, shape, np.zeros(3, dtype=np.int64), external, np.zeros(3),
        1.0, columns, sharing,
    )  # fmt: skip
    return replace(made, **more)


def _decided(name: str, seen: Window) -> Any:
    policy = pooled_policy(name)
    return policy.decide(seen, policy.begin(seen.terms, seen.capabilities))[0]


def test_demand_and_what_is_usable_are_those_of_the_worked_example() -> None:
    prediction = _decided("static", _seen(261.0, 2, ServiceLevel(**EVEN), partitions=4)).prediction
    # W = 0.012 + 0.003 and U = 4 (1 - 0.125^2), less the starting of eight tasks in two seconds.
    assert prediction.demand == pytest.approx(261.0 * 0.015)
    assert prediction.usable == pytest.approx(4 * (1 - 0.125**2) - 8 * 0.005 / 2)


@pytest.mark.parametrize(("best", "worst", "expected"), [("9", "1", AcquireMachine), ("0.50", "0.30", SwitchAlternate)])
def test_exact_buys_a_machine_where_value_is_worth_it_and_switches_where_it_is_not(
    best: str, worst: str, expected: type
) -> None:
    """A step of 0.1 of value, or a machine at 0.10 an hour, which counts three times: 0.0375 of value, or 0.15."""
    level = ServiceLevel(break_even_at_best_per_h=Decimal(best), break_even_at_worst_per_h=Decimal(worst))
    actions = _decided("exact", _seen(300.0, 2, level)).actions
    assert {type(action) for action in actions} == {expected}


def test_exact_does_not_switch_back_for_a_gain_that_lasts_a_moment() -> None:
    level = ServiceLevel(**EVEN)
    policy, busy = pooled_policy("exact"), _seen(300.0, 2, level)
    decision, memory = policy.decide(busy, policy.begin(busy.terms, busy.capabilities))
    assert [type(action) for action in decision.actions] == [SwitchAlternate]
    # A rate at which the better alternate would just fit, with nothing to spare.
    quick = np.array([0, 1, 0])
    just = replace(_seen(250.0, 2, level), active=quick, ended_s=60.0)
    assert policy.decide(just, memory)[0].actions == ()
    quiet = replace(_seen(120.0, 2, level), active=quick, ended_s=120.0)
    assert [type(action) for action in policy.decide(quiet, memory)[0].actions] == [SwitchAlternate]


@pytest.mark.parametrize("name", ["ds2", "flink", "threshold", "cpu", "ce", "sh", "exact", "lookahead", "caf", "drs"])
def test_what_is_too_much_is_bought_and_what_is_too_little_released_when_it_is_due(name: str) -> None:
    level = ServiceLevel(latency_max_s=8.0)
    more = _decided(name, _seen(600.0, 2, level))
    assert AcquireMachine("small") in more.actions
    assert not any(isinstance(action, ReleaseMachine) for action in more.actions)
    due = _decided(name, _seen(10.0, 5, level, left_s=20.0))
    assert any(isinstance(action, ReleaseMachine) for action in due.actions)
    paid = _decided(name, _seen(10.0, 5, level, left_s=1_800.0))
    assert not any(isinstance(action, ReleaseMachine) for action in paid.actions)


def test_a_budget_is_never_exceeded() -> None:
    decision = _decided("ds2", _seen(900.0, 2, ServiceLevel(budget_per_h=Decimal("0.35"))))
    assert decision.actions == (AcquireMachine("small"),)
    assert "does not allow" in decision.reason.rejected[0].reason


@pytest.mark.parametrize("name", ["ce", "exact", "ds2"])
def test_the_last_machine_stays_even_where_nothing_comes(name: str) -> None:
    """Also where a limit of processors is exceeded already, so that none could be bought in its place."""
    decision = _decided(name, _seen(0.0, 3, ServiceLevel(processors_max=1), left_s=20.0))
    assert sum(isinstance(action, ReleaseMachine) for action in decision.actions) == 2
    assert not any(isinstance(action, AcquireMachine) for action in decision.actions)


def _resized(decision: Decision) -> list[int]:
    return [action.partitions or 0 for action in decision.actions if isinstance(action, SetPartitions)]


def test_partitions_follow_the_cores_that_are_there() -> None:
    """Those that are asked for may never come: tasks are cut for them when they have."""
    decision = _decided("ds2", _seen(400.0, 2, ServiceLevel(), partitions=2))
    bought = sum(isinstance(action, AcquireMachine) for action in decision.actions)
    assert bought >= 2
    assert set(_resized(decision)) == {4}
    come = _decided("ds2", _seen(400.0, 2 + bought, ServiceLevel(), partitions=4))
    assert min(_resized(come)) >= 4 + 2 * bought


def _free(seed: int, most_s: float) -> Window:
    """A window in which nothing forbids to meet a latency: no budget, and as many partitions as there are cores."""
    rng = np.random.default_rng([seed, 3])
    level = ServiceLevel(0.8, 0.05, most_s, **EVEN)
    dataflow = windows.graph(rng, 4, level)
    sharing = windows.sharing_of(rng, dataflow, 1, all_cores=True)
    signatures = sign(dataflow)
    of = windows.Made(
        Terms(dataflow, signatures, windows.cloud_of(rng), 60.0, 100),
        Capabilities(("pool0",), windows.SPARK),
        Shape.of(dataflow, fragments=sharing.groups),
        sharing,
    )
    seen = windows.window(rng, of)
    return replace(seen, waiting=np.zeros(seen.shape.tasks), external=np.minimum(seen.external, 200.0), latency_s={})


@pytest.mark.parametrize("name", ["exact", "drs"])
def test_floors_and_latencies_are_met_where_they_can_be(name: str) -> None:
    met = 0
    for seed in range(60):
        for most_s in (3.0, 6.0):
            seen = _free(seed, most_s)
            ample = Draft.of(seen, 60.0)
            ample.new[0] += 40
            if not ample.limits().keeps_up(0.5) or ample.late(ample.latencies(), 0.7):
                continue
            decision = _decided(name, seen)
            assert decision.prediction.omega >= 0.8, (seed, decision)
            assert max(decision.prediction.latency_s.values()) <= most_s, (seed, decision)
            met += 1
    assert met > 30
