"""The loop against simulated clouds: it reaches what can be reached, and says why where it cannot."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from headgate.adaptation.deploying.analysing import Cause, analysed
from headgate.adaptation.deploying.correcting import corrected
from headgate.adaptation.deploying.loop import Stop, run_to_target
from headgate.adaptation.deploying.readings import OperatorReading, Readings
from headgate.planning.placing.deployment_plan import DeploymentPlan
from headgate.simulation.placed import PlacedWorld, WorldFacts
from tests.adaptation.deploying.worlds import CLOUD, LINE, line_of, operator


def _truth(**costs: float) -> dict[str, object]:
    return {name: operator(name, costs.get(name, one.cpu_s.value)) for name, one in LINE.items()}


def _world(facts: WorldFacts | None = None, **costs: float) -> PlacedWorld:
    return PlacedWorld(_truth(**costs), CLOUD, facts)  # type: ignore[arg-type]


def _first(deploying: object) -> DeploymentPlan:
    plan = deploying.next_plan()  # type: ignore[attr-defined]
    assert isinstance(plan, DeploymentPlan)
    return plan


def test_profiles_that_are_too_low_are_corrected_until_the_target_holds() -> None:
    outcome = run_to_target(line_of(4_000.0), _world(work=1.7e-3))
    assert outcome.stop is Stop.REACHED
    first, *_, last = outcome.attempts
    assert first.seen.mean_throughput_per_s < 0.85 * 4_000
    assert last.seen.mean_throughput_per_s >= 0.98 * 4_000
    assert last.seen.mean_latency_s <= 0.5
    assert len(outcome.attempts) <= 4
    assert outcome.knowledge.profiles["work"].cpu_s.value == pytest.approx(1.7e-3, rel=0.1)
    assert outcome.knowledge.profiles["work"].cpu_s.origin.value == "measured"
    assert outcome.knowledge.profiles["work"].version > 1
    assert last.plan.placement.machines > first.plan.placement.machines
    # 4,000 rows/s need 6.8 cores, and 15 % more for the system: four machines of two cores.
    assert last.plan.placement.machines in (4, 5)


def test_what_machines_use_beyond_their_tasks_is_seen_as_overhead() -> None:
    deploying = line_of(3_000.0)
    plan = _first(deploying)
    after = deploying.measured(plan, _world(WorldFacts(overhead=0.4, switching=0.0, sampling_error=0.0)).run(plan))
    assert after.knowledge.overhead == pytest.approx(1.4, abs=0.02)


def test_the_budget_ends_it_with_the_best_so_far() -> None:
    outcome = run_to_target(line_of(6_000.0, budget_per_h=Decimal("0.50")), _world(work=1.7e-3))
    assert outcome.stop is Stop.BUDGET
    assert "budget is 0.50" in outcome.sentence
    assert "best so far" in outcome.sentence
    assert "work" in outcome.sentence


def test_a_budget_below_the_first_plan_deploys_nothing() -> None:
    outcome = run_to_target(line_of(6_000.0, budget_per_h=Decimal("0.05")), _world())
    assert (outcome.stop, outcome.attempts, outcome.plan) == (Stop.BUDGET, (), None)


def test_a_latency_below_the_work_itself_cannot_be_met() -> None:
    slow = {**LINE, "work": operator("work", 1e-4, wait_s=0.3)}
    outcome = run_to_target(line_of(100.0, 0.2, slow), PlacedWorld(slow, CLOUD))
    assert outcome.stop is Stop.INFEASIBLE
    assert "300 ms in in -> work -> out" in outcome.sentence
    assert "make 'work' faster" in outcome.sentence
    assert len(outcome.attempts) == 1


def test_uneven_keys_are_named() -> None:
    outcome = run_to_target(line_of(4_000.0), _world(WorldFacts(shares={"work": 3.0})))
    assert outcome.stop is Stop.INFEASIBLE
    assert "one instance of 'work' gets" in outcome.sentence
    assert "uneven" in outcome.sentence


def test_one_instance_that_is_too_slow_is_named_before_anything_is_deployed() -> None:
    alone = {**LINE, "work": operator("work", 1e-3, instances_max=1)}
    outcome = run_to_target(line_of(3_000.0, profiles=alone), _world())
    assert (outcome.stop, outcome.attempts) == (Stop.INFEASIBLE, ())
    assert "'work' would need 3 instances for 3,000 rows/s (CPU-bound) and can have 1 instance" in outcome.sentence
    assert "1,000 rows/s" in outcome.sentence


def test_a_machine_that_dies_costs_one_run_and_corrects_nothing() -> None:
    quiet = run_to_target(line_of(), _world())
    seen = run_to_target(line_of(), _world(WorldFacts(dies_in=(1,))))
    assert seen.reached
    assert seen.attempts[0].verdict.cause is Cause.MACHINE_LOST
    assert seen.attempts[1].plan.shape == seen.attempts[0].plan.shape
    assert len(seen.attempts) == len(quiet.attempts) + 1


def test_a_source_that_delivers_too_little_is_named() -> None:
    outcome = run_to_target(line_of(), _world(WorldFacts(offered=0.6)))
    assert outcome.stop is Stop.INFEASIBLE
    assert "the source delivers 1,200 of 2,000 rows/s" in outcome.sentence


def test_machines_that_do_not_help_end_it() -> None:
    class Stuck:
        """Whatever runs, half of the rows come through, and the machines look full."""

        def run(self, plan: DeploymentPlan) -> Readings:
            rate = plan.loads.outside_per_s.sum() / 2
            one = OperatorReading(rate, 2e-3, 0.0, 1.0, 1.0, 10.0)
            full = {site.name: 2.0 for site in plan.placement.sites}
            return Readings((rate,) * 10, (3.0,) * 10, 2 * rate, rate, {"work": one}, full)

    outcome = run_to_target(line_of(), Stuck())
    assert outcome.stop is Stop.NO_HELP
    assert "did not help" in outcome.sentence
    assert "'work'" in outcome.sentence
    assert len(outcome.attempts) <= 6


def test_only_latency_leaves_more_room() -> None:
    deploying = line_of()
    plan = _first(deploying)
    rate = 2_000.0
    operators = {name: OperatorReading(rate, one.cpu_s.value, 0.0, 0.8, 0.8, 0.0) for name, one in LINE.items()}
    seen = Readings(
        (rate,) * 10, (0.9,) * 10, rate, 0.0, operators, {site.name: site.cpu for site in plan.placement.sites}
    )
    verdict = analysed(deploying.target, plan, seen)
    assert verdict.cause is Cause.LATENCY
    assert corrected(deploying.knowledge, plan, seen, verdict).fill == pytest.approx(0.95)


def test_the_same_state_decides_the_same_again() -> None:
    deploying = line_of(4_000.0)
    plan = _first(deploying)
    seen = _world(work=1.7e-3).run(plan)
    one, two = (deploying.measured(plan, seen).next_plan() for _ in range(2))
    assert isinstance(one, DeploymentPlan)
    assert isinstance(two, DeploymentPlan)
    assert one.shape == two.shape
    assert replace(one.placement, took_s=0.0) == replace(two.placement, took_s=0.0)


def test_a_near_miss_on_full_machines_leaves_more_room() -> None:
    deploying = line_of()
    plan = _first(deploying)
    rate = 0.95 * 2_000.0
    operators = {name: OperatorReading(rate, one.cpu_s.value, 0.0, 0.9, 0.9, 5.0) for name, one in LINE.items()}
    full = {site.name: 2.0 for site in plan.placement.sites}
    seen = Readings((rate,) * 10, (0.9,) * 10, 2_000.0, 100.0, operators, full)
    verdict = analysed(deploying.target, plan, seen)
    assert verdict.cause is Cause.MACHINE
    assert corrected(deploying.knowledge, plan, seen, verdict).fill == pytest.approx(0.95)
