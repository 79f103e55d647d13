"""The DRS policy on a cluster: what it makes of observations, what it does, and that the loop settles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from headgate.adaptation.actions import Action, SetPartitions
from headgate.adaptation.cluster import Cluster
from headgate.adaptation.policies.drs import DrsSettings, Resize
from headgate.adaptation.policies.drs_policy import DrsPolicy, Managed, act
from headgate.documents import parse
from headgate.errors import BadValue
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    TaskObservation,
    TaskProfile,
)
from headgate.model.names import Signature
from headgate.queueing.batch_sizing import assign_flow, min_flow
from headgate.queueing.fitting.smoothing import MovingMean
from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.predict import predict
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow
from headgate.queueing.station import StationModel
from headgate.queueing.traffic import solve_traffic
from headgate_benchmarks.drs.flows import SERVICE, chain, loop
from headgate_benchmarks.event_simulator.queueing_network import simulate

NAMES = tuple(each.task for each in SERVICE)
SCV = {each.task: each.scv for each in SERVICE}
COSTS = BatchCosts(0.4, 0.05, 0.01)
BACK = 0.3


def true_network(rate: float, back: float = 0.0) -> Network:
    operators = tuple(Operator(s.task, 1 / s.mean_s, s.scv, rate if s is SERVICE[0] else 0.0) for s in SERVICE)
    routes = [Route(NAMES[0], NAMES[1]), Route(NAMES[1], NAMES[2], 1 - back)]
    return Network(operators, (*routes, Route(NAMES[1], NAMES[0], back)) if back else tuple(routes))


@dataclass
class FakeCluster:
    """Operators that serve as the bench's do: sojourns come from a simulator, or from the micro-batch model."""

    rate: float
    back: float = 0.0
    costs: BatchCosts | None = None
    name: str = "flow"
    allocation: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(NAMES))
    applied: list[Action] = field(default_factory=list)
    factor: float = 1.0

    def flow(self) -> SparkFlow:
        feedback = ((NAMES[1], NAMES[0]),) if self.back else ()
        return SparkFlow(true_network(self.rate, self.back), self.costs or COSTS, 0.2, feedback)

    def sojourn_s(self) -> float:
        chosen = tuple(k or 1 for k in self.allocation.values())
        if self.costs is not None:
            return min(float(predict_flow(self.flow(), chosen).mean_s[0]), 60.0)
        if predict(true_network(self.rate, self.back), chosen, StationModel.MMK).mean_s == float("inf"):
            return 60.0
        return simulate(true_network(self.rate, self.back), chosen, 4_000, seed=1).mean_s

    def observe(self) -> Observation:
        seconds = 10.0
        traffic = solve_traffic(true_network(self.rate, self.back))
        counts = {n: round(r * seconds) for n, r in zip(NAMES, traffic.rates_per_s, strict=True)}
        came = round(self.rate * seconds)
        tasks = [TaskObservation(Signature("in"), f"{self.name}.in", "replay", "in", (self.name,), None, came, came)]
        for service in SERVICE:
            rows, profile = counts[service.task], TaskProfile(64, 1e-3, service.mean_s, 0.0, 0, None)
            described = Signature(service.task), f"{self.name}.{service.task}", "python", service.task, (self.name,)
            tasks.append(TaskObservation(*described, self.allocation[service.task], rows, rows, 0, profile))
        mean = self.factor * self.sojourn_s()
        sink = SinkObservation(
            Signature("done"), f"{self.name}.done", (self.name,), came, Sojourn(mean, mean, mean, mean)
        )
        signatures = tuple(task.task for task in tasks)
        fragment = FragmentObservation("source-1", "source", signatures, 5, came, 0, 10.0, 1.0, 0.5, 8.0, 0.5)
        return Observation(0.0, seconds, tuple(tasks), (sink,), (fragment,))

    def apply(self, actions: Sequence[Action]) -> None:
        self.applied += actions
        for action in actions:
            assert isinstance(action, SetPartitions)
            self.allocation[action.task] = action.partitions

    @property
    def processors(self) -> int:
        return sum(k or 0 for k in self.allocation.values())


def policy_of(fake: FakeCluster, settings: DrsSettings, back: bool = False) -> DrsPolicy:
    dataflow = (loop if back else chain)(fake.name, Path("recording.json"))
    managed = Managed(dataflow, NAMES, fake.costs, 0.2, {}, SCV)
    return DrsPolicy(managed, settings, MovingMean(1))


def settled(fake: FakeCluster, policy: DrsPolicy, rounds: int = 6, begin_s: float = 0.0) -> list[str]:
    """Go round the loop; what was said each time."""
    cluster: Cluster = fake
    return [act(cluster, policy, begin_s + 100.0 * number).reason for number in range(rounds)]


@pytest.mark.parametrize("costs", [None, COSTS])
def test_operators_without_processors_get_the_best_split_and_keep_it(costs: BatchCosts | None) -> None:
    fake = FakeCluster(8.0, costs=costs)
    said = settled(fake, policy_of(fake, DrsSettings(processors_max=22, model=StationModel.MMK)))
    assert "first allocation" in said[0]
    chosen = tuple(fake.allocation.values())
    if costs is not None:
        assert chosen == assign_flow(fake.flow(), 22)
    assert len(fake.applied) == 3
    assert "is the best split of 22" in said[-1]


@pytest.mark.parametrize("model", [StationModel.MMK, StationModel.GGK, None])
def test_steps_of_the_rate_are_followed_within_one_window(model: StationModel | None) -> None:
    """Rates step 6, 12, 6, 18; a window later processors have changed, and the latency holds again."""
    fake = FakeCluster(6.0, costs=COSTS if model is None else None)
    at_twelve = FakeCluster(12.0, costs=COSTS).flow()
    target = 1.1 * float(predict_flow(at_twelve, assign_flow(at_twelve, 16)).mean_s[0]) if model is None else 0.37
    settings = DrsSettings(latency_max_s=target, latency_min_s=0.95 * target, model=model or StationModel.GGK)
    policy = policy_of(fake, settings)
    settled(fake, policy)
    totals = [fake.processors]
    for number, rate in enumerate((12.0, 6.0, 18.0), start=1):
        fake.rate = rate
        act(fake, policy, 1_000.0 * number)
        totals.append(fake.processors)
        settled(fake, policy, 3, 1_000.0 * number + 100)
        assert fake.sojourn_s() <= target
    assert totals[0] < totals[1] < totals[3]
    assert totals[2] < totals[1]


def test_what_comes_is_told_from_what_is_served_by_what_is_left_undone() -> None:
    """The rate is that of what comes, whatever batches get done, and over windows without a batch too."""
    fake = FakeCluster(6.0, costs=COSTS)
    policy = policy_of(fake, DrsSettings(processors_max=22))

    def fitted(rows_behind: int, batches: int = 5) -> float | None:
        seen = fake.observe()
        (fragment,) = seen.fragments
        if not batches:
            idle = tuple(replace(task, rows_in=0, rows_out=0) for task in seen.tasks)
            seen = replace(seen, tasks=idle)
            fragment = replace(fragment, rows_in=0)
        fragment = replace(fragment, rows_behind=rows_behind, batches=batches)
        estimates = policy.answer(replace(seen, fragments=(fragment,)), 0.0).estimates
        return None if estimates is None else estimates.network.external_rate_per_s

    fitted(60)
    assert fitted(60) == pytest.approx(6.0)
    assert fitted(120) == pytest.approx(12.0)
    fitted(240, batches=0)
    assert fitted(300) == pytest.approx(12.0)
    assert fitted(270) == pytest.approx(3.0)


def test_rows_that_go_round_a_loop_are_found_in_the_counts() -> None:
    fake = FakeCluster(5.0, BACK, COSTS)
    policy = policy_of(fake, DrsSettings(processors_max=22), back=True)
    act(fake, policy, 0.0)
    estimates = act(fake, policy, 100.0).estimates
    assert estimates is not None
    assert estimates.flow is not None
    means = {(route.source, route.target): route.mean for route in estimates.network.routes}
    assert means[NAMES[1], NAMES[0]] == pytest.approx(BACK, abs=0.02)
    assert means[NAMES[1], NAMES[2]] == pytest.approx(1 - BACK, abs=0.02)
    assert estimates.network.external_rate_per_s == pytest.approx(5.0)
    assert estimates.flow.feedback == ((NAMES[1], NAMES[0]),)
    assert tuple(fake.allocation.values()) == assign_flow(fake.flow(), 22)


def test_what_the_model_misses_is_learnt() -> None:
    fake = FakeCluster(8.0, costs=COSTS, factor=1.5)
    policy = policy_of(fake, DrsSettings(processors_max=22))
    settled(fake, policy, 12)
    assert policy.correction.factor == pytest.approx(1.5, rel=0.02)


def test_nothing_is_done_soon_after_a_change() -> None:
    fake = FakeCluster(6.0, costs=COSTS)
    policy = policy_of(fake, DrsSettings(latency_max_s=5.0, reallocation_interval_s=60.0))
    act(fake, policy, 0.0)
    before = fake.processors
    fake.rate = 18.0
    answer = act(fake, policy, 30.0)
    assert (answer.actions, fake.processors) == ((), before)
    assert "30 s ago and 60 s must lie between" in answer.reason
    assert act(fake, policy, 61.0).decision is not None
    assert fake.processors > before


def test_what_cannot_be_had_is_said() -> None:
    fake = FakeCluster(60.0, costs=COSTS)
    answer = act(fake, policy_of(fake, DrsSettings(processors_max=5)), 0.0)
    assert answer.actions == ()
    assert "processors to finish batches at all, 5 given" in answer.reason


def test_a_dataflow_that_does_not_run_is_left_alone() -> None:
    fake = FakeCluster(6.0)
    policy = policy_of(FakeCluster(6.0, name="other"), DrsSettings(processors_max=5))
    assert act(fake, policy, 0.0).reason == "dataflow 'other' is not running"
    assert fake.applied == []


def test_without_profiles_nothing_is_decided() -> None:
    class Unprofiled(FakeCluster):
        def observe(self) -> Observation:
            from dataclasses import replace

            seen = super().observe()
            return replace(seen, tasks=tuple(replace(task, profile=None) for task in seen.tasks))

    fake = Unprofiled(6.0)
    assert "no service time was sampled" in act(fake, policy_of(fake, DrsSettings(processors_max=9)), 0.0).reason
    assert fake.applied == []


def test_the_percentile_that_is_asked_for_is_the_one_compared() -> None:
    fake = FakeCluster(8.0, costs=COSTS)
    settings = DrsSettings(latency_max_s=4.0, percentile=0.95)
    policy = policy_of(fake, settings)
    act(fake, policy, 0.0)
    assert tuple(fake.allocation.values()) == min_flow(fake.flow(), 4.0, 0.95)
    with pytest.raises(BadValue):
        policy_of(fake, DrsSettings(latency_max_s=4.0, percentile=0.9))


def test_an_operator_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(BadValue, match="has no task 'mach'") as caught:
        Managed(chain("flow", Path("recording.json")), ("mach",))
    assert caught.value.nearest == "match"


def test_a_keep_is_told_as_one() -> None:
    fake = FakeCluster(8.0, costs=COSTS)
    policy = policy_of(fake, DrsSettings(processors_max=22))
    act(fake, policy, 0.0)
    answer = act(fake, policy, 100.0)
    assert answer.decision is not None
    assert answer.decision.change is Resize.KEEP


def test_tasks_between_operators_are_seen_through() -> None:
    text = {
        "name": "flow",
        "tasks": [
            {"id": "in", "type": "replay", "config": {"path": "r.json", "columns": "id bigint"}},
            {"id": "extract", "type": "python", "config": {"function": "a.b"}, "inputs": ["in"]},
            {"id": "keep", "type": "filter", "config": {"where": "id > 3"}, "inputs": ["extract"]},
            {"id": "match", "type": "python", "config": {"function": "a.b"}, "inputs": ["keep"]},
            {"id": "done", "type": "write_memory", "config": {"name": "m"}, "inputs": ["match"]},
        ],
    }
    dataflow = parse(json.dumps(text), "json").dataflow
    policy = DrsPolicy(Managed(dataflow, ("extract", "match")), DrsSettings(processors_max=9))
    counts = {"in": (100, 100), "extract": (100, 100), "keep": (100, 25), "match": (25, 25)}
    profile = TaskProfile(64, 1e-3, 0.1, 0.0, 0, None)
    tasks = tuple(
        TaskObservation(Signature(n), f"flow.{n}", "python", n, ("flow",), None, a, b, 0, profile)
        for n, (a, b) in counts.items()
    )
    estimates = policy.answer(Observation(0.0, 10.0, tasks), 0.0).estimates
    assert estimates is not None
    assert [(r.source, r.target, r.mean) for r in estimates.network.routes] == [("extract", "match", 0.25)]


def test_the_rate_is_what_comes_also_while_batches_grow() -> None:
    """Batches of 2, 4 and 8 s with what came during the one before, 12 rows a second: served are 6."""
    from dataclasses import replace

    fake = FakeCluster(12.0, costs=COSTS)
    policy = policy_of(fake, DrsSettings(processors_max=22))
    seen = fake.observe()
    rates = []
    for took_s, rows in ((2.0, 24), (4.0, 24), (8.0, 48)):
        (fragment,) = seen.fragments
        fragment = replace(fragment, batches=1, rows_in=rows, batch_s=took_s)
        tasks = tuple(replace(task, rows_in=rows, rows_out=rows) for task in seen.tasks)
        answer = policy.answer(replace(seen, seconds=took_s, tasks=tasks, fragments=(fragment,)), 0.0)
        assert answer.estimates is not None
        rates.append(answer.estimates.network.external_rate_per_s)
    assert rates == pytest.approx([12.0] * 3)


def test_the_variability_of_arrivals_is_measured_once_there_are_windows_enough() -> None:
    """Rows that come in the same number in every window need fewer processors than those of a Poisson process."""
    fake = FakeCluster(8.0)
    policy = policy_of(fake, DrsSettings(processors_max=22, model=StationModel.GGK))
    estimates = [act(fake, policy, 100.0 * number).estimates for number in range(10)]
    scv = [each.network.operators[0].arrival_scv for each in estimates if each is not None]
    assert scv[:7] == [1.0] * 7
    assert scv[7:] == [0.0] * 3
    assert [o.service_scv for o in estimates[-1].network.operators] == [SCV[name] for name in NAMES]  # type: ignore[union-attr]
