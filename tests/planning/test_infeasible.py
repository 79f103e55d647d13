"""Where there is no plan, the answer says why and what would do; and what it says would do does."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from headgate.documents import parse
from headgate.errors import InputError
from headgate.model.cluster.catalogues import catalogue
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.planning.plan import NoPlan, Plan, Relaxation
from headgate.planning.planners import plan_with
from headgate.planning.problem import Problem
from headgate_benchmarks.dynamic import linear_road

ROAD = Problem.of(linear_road(50.0), catalogue("ec2-2013"), {"reports": 50.0, "weather": 0.5})


def _by_demand(answer: object) -> dict[str, Relaxation]:
    assert isinstance(answer, NoPlan)
    return {each.demand: each for each in answer.relaxations}


@pytest.mark.parametrize("name", ["exact", "ce", "sh", "auto"])
def test_a_budget_that_is_too_small(name: str) -> None:
    answer = plan_with(name, replace(ROAD, budget_per_h=Decimal(2)))
    assert isinstance(answer, NoPlan)
    assert answer.planner == name
    assert answer.condition == "NO_BUDGET"
    assert "and the budget is 2 USD" in answer.reason
    relaxed = _by_demand(answer)
    assert set(relaxed) == {"budget", "throughput", "rate"}
    assert [each.step for each in answer.relaxations] == sorted(each.step for each in answer.relaxations)
    # Each would do, and the budget not a cent less.
    enough = Decimal(f"{relaxed['budget'].possible:.4f}")
    assert isinstance(plan_with("exact", replace(ROAD, budget_per_h=enough)), Plan)
    assert isinstance(plan_with("exact", replace(ROAD, budget_per_h=enough - Decimal("0.01"))), NoPlan)
    slower = replace(ROAD, budget_per_h=Decimal(2), throughput_min=relaxed["throughput"].possible)
    assert isinstance(plan_with("exact", slower), Plan)
    rates = {source: rate * relaxed["rate"].possible for source, rate in ROAD.rates.items()}
    assert isinstance(plan_with("exact", replace(ROAD, budget_per_h=Decimal(2), rates=rates)), Plan)


def test_too_few_cores() -> None:
    answer = plan_with("exact", replace(ROAD, cores_max=12))
    relaxed = _by_demand(answer)
    assert isinstance(answer, NoPlan)
    assert answer.condition == "NO_CORES"
    assert f"needs {relaxed['cores'].possible:.0f} cores at least, and the limit is 12" in answer.reason
    assert isinstance(plan_with("exact", replace(ROAD, cores_max=int(relaxed["cores"].possible))), Plan)
    assert isinstance(plan_with("exact", replace(ROAD, cores_max=int(relaxed["cores"].possible) - 1)), NoPlan)


def test_machines_too_small_for_what_may_be_had() -> None:
    """Cores of a tenth of the power: ten times as many would be needed."""
    slow = Cloud("slow", (VmClass("tiny", 1, 0.1, 100, Decimal("0.01")),))
    answer = plan_with("auto", replace(ROAD, cloud=slow, cores_max=50), 5.0)
    assert isinstance(answer, NoPlan)
    assert answer.condition == "NO_CORES"


def test_a_heuristic_that_misses_what_can_be_had_says_who_does_not() -> None:
    exact = plan_with("exact", replace(ROAD, cores_max=29))
    assert isinstance(exact, Plan)
    answer = plan_with("ce", replace(ROAD, cores_max=29))
    assert isinstance(answer, NoPlan)
    assert "the exact planner meets it" in answer.reason


def _narrow(**limits: Decimal | int) -> Problem:
    text = """
    tasks:
      - {id: a, type: opaque, config: {label: a}, cost_s: 0.0001, ports: {outputs: [out]}}
      - {id: b, type: opaque, config: {label: b}, cost_s: 0.0001, inputs: [a], ports: {inputs: [in]}}
    """
    cloud = Cloud("narrow", (VmClass("one", 1, 1.0, 1.0, Decimal("0.1")),))
    return replace(Problem.of(parse(text, "yaml").dataflow, cloud, {"a": 9_000.0}, 1_000.0), **limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["exact", "ce", "sh"])
def test_a_network_that_is_too_narrow(name: str) -> None:
    # A machine each would do, but 125 messages/s is all that gets from one machine to another.
    answer = plan_with(name, _narrow(cores_max=20))
    assert isinstance(answer, NoPlan)
    assert answer.condition == "NO_BANDWIDTH"
    assert "the network cannot carry" in answer.reason
    assert "from 'a' to 'b'" in answer.reason
    relaxed = _by_demand(answer)
    assert set(relaxed) == {"throughput", "message_bytes"}
    smaller = replace(_narrow(cores_max=20), message_bytes=relaxed["message_bytes"].possible)
    assert isinstance(plan_with(name, smaller), Plan)


def test_with_machines_enough_it_gets_through() -> None:
    answer = plan_with("ce", _narrow())
    assert isinstance(answer, Plan)
    assert sum(answer.cores.values()) > 50


def test_what_cannot_be_planned_is_told() -> None:
    flow = ROAD.dataflow
    bare = replace(
        flow, service_level=replace(flow.service_level, break_even_at_best_per_h=None, break_even_at_worst_per_h=None)
    )
    with pytest.raises(InputError, match="no break-even costs"):
        Problem.of(bare, ROAD.cloud, ROAD.rates)
    with pytest.raises(InputError, match="no rate is given for source 'weather'"):
        Problem.of(flow, ROAD.cloud, {"reports": 50.0})
    with pytest.raises(InputError, match="did you mean 'reports'"):
        Problem.of(flow, ROAD.cloud, {"report": 50.0})
    with pytest.raises(InputError, match="unknown algorithm 'exat'; did you mean 'exact'"):
        plan_with("exat", ROAD)
