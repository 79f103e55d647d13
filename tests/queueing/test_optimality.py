"""The optimisers against trying everything: on two thousand random small networks, both problems, all models.

All of it takes minutes; the fast tier takes every network under one of the models and targets in turn, a few at a time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headgate.errors import Infeasible
from headgate.queueing.shortage import least_allocation
from headgate.queueing.sizing import SizingProblem, assign_to, fewest_of, make_problem
from headgate.queueing.station import StationModel
from tests.queueing.small_networks import all_choices, latency_of, small_network

NETWORKS = 2_000
SPARE = 5
CASES = [(model, percentile) for model in StationModel for percentile in (None, 0.95, 0.99)]


def problems(seed: int, model: StationModel) -> SizingProblem | None:
    try:
        problem = make_problem(small_network(seed), model)
        least_allocation(problem.stations)
        return problem
    except Infeasible:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(("model", "percentile"), CASES)
def test_both_problems_equal_trying_everything_on_two_thousand_networks(
    model: StationModel, percentile: float | None
) -> None:
    assert sum(solved(seed, model, percentile) for seed in range(NETWORKS)) > NETWORKS


@pytest.mark.parametrize(("model", "percentile"), CASES)
def test_both_problems_equal_trying_everything(model: StationModel, percentile: float | None) -> None:
    first = CASES.index((model, percentile))
    assert sum(solved(seed, model, percentile) for seed in range(first, 300, len(CASES))) > 30


def solved(seed: int, model: StationModel, percentile: float | None) -> int:
    """How many of the minimum problems were compared; the network is passed over if its limits are too tight."""
    solved = 0
    problem = problems(seed, model)
    if problem is not None:
        rng = np.random.default_rng(seed)
        grid, processors, latency = all_choices(problem, SPARE, percentile)
        # Least latency with so many processors.
        given = int(processors.min() + rng.integers(0, SPARE + 1))
        best = latency[processors <= given].min()
        sizing, exact = assign_to(problem, given, percentile)
        assert exact
        assert sum(sizing) <= given
        assert latency_of(problem, sizing, percentile) == pytest.approx(best, rel=1e-9), (seed, sizing)
        # Fewest, and cheapest, with such a latency. A target within reach of the grid and clear of ties.
        target = float(rng.choice(latency[processors <= given])) * (1 + 1e-6)
        for prices in ([1.0] * len(problem.stations), [station.price for station in problem.stations]):
            priced = replace(
                problem,
                stations=tuple(replace(s, price=p) for s, p in zip(problem.stations, prices, strict=True)),
            )
            costs = grid @ np.array(prices)
            cheapest = costs[latency <= target].min()
            # Outside the grid nothing is cheaper: one operator alone would cost more than what was found.
            beyond = [
                costs.min() + (SPARE + 1) * price
                for price, station in zip(prices, problem.stations, strict=True)
                if station.processors_max is None or station.processors_max > station.least + SPARE
            ]
            if beyond and min(beyond) <= cheapest:
                continue
            sizing, exact = fewest_of(priced, target, percentile)
            assert exact
            assert latency_of(problem, sizing, percentile) <= target * (1 + 1e-9)
            assert np.dot(sizing, prices) == pytest.approx(cheapest, rel=1e-9), (seed, sizing, prices)
            solved += 1
    return solved
