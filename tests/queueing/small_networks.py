"""Random small networks, and the best allocation found by trying all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.percentile import gamma_percentile
from headgate.queueing.sizing import SizingProblem
from headgate.queueing.station import sojourn_curve
from headgate.queueing.traffic import solve_traffic

Floats = npt.NDArray[np.float64]


def small_network(seed: int) -> Network:
    """1 to 3 operators in a chain, split, join or loop, with limits, prices, bulks and mixed speeds here and there."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    names = ["a", "b", "c"][:count]
    routes = []
    for source, target in pairwise(names):
        routes.append(Route(source, target, float(rng.choice([1.0, 1.0, 0.5, 2.0, 2.5]))))
    if count == 3 and rng.random() < 0.3:
        routes = [Route("a", "b", 0.6), Route("a", "c", 0.4)]
    if rng.random() < 0.4:
        routes.append(Route(names[-1], names[int(rng.integers(count))], float(rng.uniform(0.05, 0.3))))
        if len({(route.source, route.target) for route in routes}) < len(routes):
            routes.pop()
    draft = Network(
        tuple(
            Operator(name, 1.0, arrival_rate_per_s=float(rng.uniform(0.5, 5)) if name == "a" else 0.0) for name in names
        ),
        tuple(routes),
    )
    try:
        rates = solve_traffic(draft).rates_per_s
    except Exception:
        return small_network(seed + 1_000_000)
    operators = []
    for operator, rate in zip(draft.operators, rates, strict=True):
        load = float(rng.uniform(0.1, 2.5))
        operator = replace(
            operator,
            service_rate_per_s=float(rate) / load,
            service_scv=float(rng.choice([0.0, 0.3, 1.0, 2.5])),
            price=float(rng.choice([1.0, 2.0, 3.7])),
            processors_min=int(rng.choice([1, 1, 1, 2, 4])),
        )
        if rng.random() < 0.25:
            operator = replace(
                operator, processors_max=max(operator.processors_min, int(load) + int(rng.integers(1, 4)))
            )
        if rng.random() < 0.2:
            operator = replace(operator, speeds=tuple(float(s) for s in rng.choice([0.5, 1.0, 2.0], int(2 * load) + 6)))
        operators.append(operator)
    if rng.random() < 0.4:
        operators[0] = replace(
            operators[0], bulk_mean=float(rng.integers(2, 5)), arrival_scv=float(rng.choice([0.5, 1, 2]))
        )
    return Network(tuple(operators), draft.routes)


def all_choices(problem: SizingProblem, spare: int, percentile: float | None) -> tuple[Floats, Floats, Floats]:
    """Every allocation with up to ``spare`` processors more per operator than the least, its sum, and its latency."""
    ranges, means, variances = [], [], []
    for station in problem.stations:
        top = station.least + spare
        k = np.arange(station.least, (top if station.processors_max is None else min(top, station.processors_max)) + 1)
        mean, variance = sojourn_curve(station, problem.model, k)
        ranges.append(k)
        means.append(mean)
        variances.append(variance)
    grid = np.array(list(product(*ranges)))
    m = np.array(list(product(*means)))
    s = np.array(list(product(*variances)))
    visits = np.array(problem.visits)
    total = m @ visits
    if percentile is not None:
        spread = s @ visits + np.einsum("ni,ij,nj->n", m, problem.covariance, m)
        total = gamma_percentile(total, spread, percentile)
    return grid, grid.sum(axis=1), total


def latency_of(problem: SizingProblem, allocation: Sequence[int], percentile: float | None) -> float:
    both = [sojourn_curve(s, problem.model, k) for s, k in zip(problem.stations, allocation, strict=True)]
    m = np.array([float(mean[0]) for mean, _ in both])
    s = np.array([float(variance[0]) for _, variance in both])
    visits = np.array(problem.visits)
    if percentile is None:
        return float(visits @ m)
    return float(gamma_percentile(visits @ m, visits @ s + m @ problem.covariance @ m, percentile))
