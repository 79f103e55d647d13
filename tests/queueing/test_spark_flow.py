"""Processors of operators in micro-batches: against batches simulated one by one, and against trying everything."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from headgate.errors import BadValue, Infeasible
from headgate.queueing.batch_sizing import assign_flow, min_flow
from headgate.queueing.fitting.batch_costs import BatchSample, fit_costs
from headgate.queueing.fitting.fit import NotMeasured
from headgate.queueing.microbatch import slowest_s
from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, batch_s, predict_flow
from headgate.queueing.traffic import solve_traffic
from tests.queueing.flow_simulation import simulate_flow

SERVICES = [(0.12, 0.5), (0.16, 0.5), (0.04, 0.5)]
COSTS = BatchCosts(0.4, 0.06, 0.01, 0.02)


def flow_of(
    rate: float, back: float = 0.0, costs: BatchCosts = COSTS, services: list[tuple[float, float]] = SERVICES
) -> SparkFlow:
    operators = tuple(
        Operator(name, 1 / mean, scv, rate if name == "a" else 0.0)
        for name, (mean, scv) in zip("abc", services, strict=True)
    )
    routes = [Route("a", "b"), Route("b", "c", 1 - back)]
    if back:
        return SparkFlow(Network(operators, (*routes, Route("b", "a", back))), costs, 0.0, (("b", "a"),))
    return SparkFlow(Network(operators, tuple(routes)), costs)


def errors(back: float, rates: tuple[float, ...]) -> list[float]:
    """Relative errors of predicted mean sojourns against simulated ones."""
    prediction = []
    for seed, (rate, allocation) in enumerate(product(rates, ((8, 10, 4), (4, 11, 7), (12, 6, 4), (5, 6, 3)))):
        predicted = float(predict_flow(flow_of(rate, back), allocation).mean_s[0])
        seen = simulate_flow(rate, SERVICES, back, COSTS, list(allocation), 3_000, seed)[500:]
        prediction.append(predicted / seen.mean() - 1)
    return prediction


def test_chains_take_as_long_as_simulated_ones() -> None:
    prediction = np.abs(errors(0.0, (4.0, 8.0, 11.0)))
    assert np.median(prediction) < 0.07
    assert prediction.max() < 0.2


def test_loops_take_as_long_as_simulated_ones() -> None:
    prediction = np.abs(errors(0.3, (3.0, 6.0)))
    assert np.median(prediction) < 0.10
    assert prediction.max() < 0.25


def test_batches_by_a_trigger_take_as_long_as_simulated_ones() -> None:
    errors, tails = [], []
    for seed, (trigger_s, rate) in enumerate(product((1.0, 3.0, 6.0), (4.0, 8.0, 11.0))):
        flow = replace(flow_of(rate), trigger_s=trigger_s)
        predicted = predict_flow(flow, (8, 10, 4))
        seen = simulate_flow(rate, SERVICES, 0.0, COSTS, [8, 10, 4], 3_000, seed, trigger_s)[500:]
        errors.append(abs(predicted.mean_s[0] / seen.mean() - 1))
        tails.append(abs(predicted.percentile_s(0.95)[0] / np.quantile(seen, 0.95) - 1))
    assert np.median(errors) < 0.06
    assert max(errors) < 0.15
    assert np.median(tails) < 0.08


def test_more_partitions_than_tuples_do_not_help() -> None:
    times = slowest_s(1.0, 1.0, np.arange(1, 40), 5.0)
    assert times[10:].std() < 0.05
    assert times[0] > times[10]


def test_rows_are_as_many_as_the_traffic_equations_say() -> None:
    flow = flow_of(5.0, 0.3)
    source, fed = flow.fragments
    assert (source.entering, fed.entering) == pytest.approx((1.0, 0.3 / 0.7))
    assert fed.again == pytest.approx(0.3)
    visits = np.zeros(3)
    for fragment in flow.fragments:
        for place, seen in fragment.stages:
            visits[place] += fragment.entering * seen
    assert visits == pytest.approx(solve_traffic(flow.network).visits)


def test_the_assignment_is_the_best_of_all() -> None:
    for flow in (flow_of(8.0), flow_of(5.0, 0.3)):
        grid = np.array([each for each in product(range(1, 13), repeat=3) if sum(each) <= 14])
        best = predict_flow(flow, grid).mean_s.min()
        chosen = assign_flow(flow, 14)
        assert sum(chosen) <= 14
        assert predict_flow(flow, chosen).mean_s[0] == pytest.approx(best)


def test_the_fewest_are_the_fewest_of_all() -> None:
    flow = flow_of(8.0)
    grid = np.array(list(product(range(1, 15), repeat=3)))
    reached = predict_flow(flow, grid).mean_s
    for latency in (3.6, 4.2, 5.0):
        fewest = min_flow(flow, latency)
        assert predict_flow(flow, fewest).mean_s[0] <= latency
        assert sum(fewest) == grid[reached <= latency].sum(axis=1).min()


def test_a_longer_trigger_is_waited_for() -> None:
    slow = SparkFlow(flow_of(2.0).network, COSTS, 5.0)
    prediction = predict_flow(slow, [8, 10, 4])
    assert prediction.intervals_s[0] == 5.0
    assert prediction.mean_s[0] == pytest.approx(
        2.5 + batch_s(slow, slow.fragments[0], prediction.allocations, np.array([10.0]))[0]
    )


def test_costs_are_found_again_in_batches() -> None:
    flow = flow_of(6.0)
    samples = []
    for allocation in ((6, 8, 5), (2, 3, 2), (9, 9, 4)):
        took = float(batch_s(flow, flow.fragments[0], np.array([allocation]), np.array([15.0]))[0])
        samples.append(BatchSample(allocation, 4, 15.0, COSTS.fixed_s, took - COSTS.fixed_s))
    prediction = fit_costs(flow, samples)
    assert (prediction.fixed_s, prediction.stage_s, prediction.task_s) == pytest.approx((0.4, 0.06, 0.01), rel=1e-6)
    with pytest.raises(NotMeasured):
        fit_costs(flow, [])


def test_what_cannot_be_done_is_told() -> None:
    assert predict_flow(flow_of(18.0), [1, 1, 1]).mean_s[0] == np.inf
    endless = Network((Operator("a", 1.0, arrival_rate_per_s=1.0),), (Route("a", "a", 1.2),))
    with pytest.raises(Infeasible, match="never empties"):
        predict_flow(SparkFlow(endless, COSTS, 0.0, (("a", "a"),)), [4])


@pytest.mark.parametrize(
    "make",
    [
        lambda: BatchCosts(-1.0),
        lambda: BatchCosts(float("nan")),
        lambda: predict_flow(flow_of(8.0), [1, 1]),
        lambda: predict_flow(flow_of(8.0), [1, 1, 0]),
        lambda: predict_flow(SparkFlow(flow_of(8.0, 0.3).network, COSTS), [1, 1, 1]),
    ],
)
def test_nonsense_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(BadValue):
        make()
