"""Processors for micro-batches: equal to trying everything, near it where that is too much, and limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from headgate.errors import BadValue, Infeasible
from headgate.queueing import batch_sizing
from headgate.queueing.batch_sizing import assign_flow, is_proved, min_flow
from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow
from tests.queueing.test_spark_flow import COSTS, flow_of

SPARE = 6


def small_flow(seed: int) -> SparkFlow:
    """Two or three operators, with limits, prices, a trigger and a loop here and there."""
    rng = np.random.default_rng(seed)
    rate = float(rng.uniform(2, 30))
    operators = []
    names = "abc"[: int(rng.integers(2, 4))]
    for name in names:
        least = int(rng.choice([1, 1, 2]))
        operators.append(
            Operator(
                name,
                rate / float(rng.uniform(0.2, 1.2)),
                float(rng.choice([0.0, 0.5, 1.0, 3.0])),
                rate if name == "a" else 0.0,
                processors_min=least,
                processors_max=None if rng.random() < 0.8 else least + 2,
                price=float(rng.choice([1.0, 2.5])),
            )
        )
    routes = [Route(one, other, float(rng.choice([1.0, 0.5]))) for one, other in pairwise(names)]
    if rng.random() < 0.3:
        routes.append(Route("b", "a", 0.2))
    costs = BatchCosts(0.05, float(rng.choice([0.0, 0.02])), float(rng.choice([0.0, 0.002, 0.02])), 0.02)
    return SparkFlow.of(Network(tuple(operators), tuple(routes)), costs, float(rng.choice([0.0, 0.5, 2.0])))


def _grid(flow: SparkFlow) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    ranges = [range(o.processors_min, min(o.processors_min + SPARE, o.most or 99) + 1) for o in flow.network.operators]
    return np.array([each for each in product(*ranges) if sum(each) - sum(r[0] for r in ranges) <= SPARE])


@pytest.mark.parametrize("percentile", [None, 0.95])
def test_both_problems_equal_trying_everything(percentile: float | None) -> None:
    compared = 0
    for seed in range(60):
        flow = small_flow(seed)
        rng = np.random.default_rng(seed)
        grid = _grid(flow)
        latency = predict_flow(flow, grid).latency_s(percentile)
        given = int(grid.sum(axis=1).min() + rng.integers(0, SPARE + 1))
        best = latency[grid.sum(axis=1) <= given].min()
        if not np.isfinite(best):
            with pytest.raises(Infeasible):
                assign_flow(flow, given, percentile)
            continue
        compared += 1
        chosen = assign_flow(flow, given, percentile)
        assert is_proved(flow, chosen, given)
        assert sum(chosen) <= given
        assert predict_flow(flow, chosen).latency_s(percentile)[0] == pytest.approx(best, rel=1e-9), seed
        target = float(rng.choice(latency[np.isfinite(latency)])) * (1 + 1e-6)
        for priced in (_same_price(flow), flow):
            prices = np.array([operator.price for operator in priced.network.operators])
            cheapest = (grid @ prices)[latency <= target].min()
            if cheapest >= (grid @ prices).min() + (SPARE + 1) * prices.min():
                continue  # something outside the grid may be cheaper
            fewest = min_flow(priced, target, percentile)
            assert is_proved(priced, fewest)
            assert predict_flow(priced, fewest).latency_s(percentile)[0] <= target
            assert np.array(fewest) @ prices == pytest.approx(cheapest), (seed, prices)
    assert compared > 30


def _same_price(flow: SparkFlow) -> SparkFlow:
    operators = tuple(replace(each, price=1.0) for each in flow.network.operators)
    return replace(flow, network=Network(operators, flow.network.routes))


def test_moving_one_at_a_time_comes_near_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    for rate in (5.0, 8.0, 12.0):
        flow = flow_of(rate)
        best = float(predict_flow(flow, assign_flow(flow, 20)).mean_s[0])
        operators = tuple(
            replace(each, price=price) for each, price in zip(flow.network.operators, (1.0, 2.5, 1.5), strict=True)
        )
        priced = replace(flow, network=Network(operators, flow.network.routes))
        cost = np.array(min_flow(priced, 1.1 * best)) @ (1.0, 2.5, 1.5)
        with monkeypatch.context() as patched:
            patched.setattr(batch_sizing, "TRIED_AT_MOST", 0)
            chosen = assign_flow(flow, 20)
            cheap = min_flow(priced, 1.1 * best)
            assert not is_proved(flow, chosen, 20)
        assert best <= float(predict_flow(flow, chosen).mean_s[0]) <= 1.02 * best
        assert predict_flow(priced, cheap).mean_s[0] <= 1.1 * best
        assert cost <= np.array(cheap) @ (1.0, 2.5, 1.5) <= 1.1 * cost


def test_more_processors_than_help_are_left_over() -> None:
    costly = flow_of(8.0, costs=BatchCosts(0.4, 0.0, 0.02))
    assert sum(assign_flow(costly, 60)) < 40


def test_limits_are_kept_to() -> None:
    flow = flow_of(8.0)
    operators = tuple(replace(each, processors_max=6) for each in flow.network.operators)
    assert max(assign_flow(SparkFlow(Network(operators, flow.network.routes), COSTS), 22)) == 6


def test_what_cannot_be_done_is_answered_with_what_is_missing() -> None:
    with pytest.raises(Infeasible, match=r"needs \d+ processors to finish batches at all, 4 given; 'b' alone needs"):
        assign_flow(flow_of(18.0), 4)
    with pytest.raises(Infeasible, match="cannot be reached: 30 processors give"):
        min_flow(flow_of(8.0), 0.5, most=30)
    with pytest.raises(BadValue):
        assign_flow(flow_of(8.0), 0)
