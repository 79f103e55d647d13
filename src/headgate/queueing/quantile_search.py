"""Exact search for allocations by a percentile of the sojourn, which is not a sum over operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.queueing.frontier import Chosen

__all__ = ["QuantileProblem", "cheapest_within", "least_quantile"]

Floats = npt.NDArray[np.float64]

MOST_STATES = 1_000_000
_SLACK = 1e-12


@dataclass(frozen=True)
class QuantileProblem:
    r"""Choices per operator, and how they make up a percentile :math:`Q(M, V)` of the whole sojourn.

    :math:`M = \sum_i v_i m_i` and :math:`V = \sum_i v_i s_i + \sum_{ij} c_{ij} m_i m_j`, where choice j of operator i
    has mean :math:`m_i(j)` and variance :math:`s_i(j)`.
    """

    costs: Sequence[Floats]
    means: Sequence[Floats]
    variances: Sequence[Floats]
    visits: Floats
    covariance: Floats
    quantile: Callable[[Floats, Floats], Floats] = field(repr=False)
    floor: Callable[[Floats, Floats], Floats] = field(repr=False)
    """The least Q of all means and variances that are no smaller; Q itself if it never falls when they rise."""

    def value(self, picks: Sequence[int]) -> float:
        """The percentile of one choice."""
        m = np.array([mean[j] for mean, j in zip(self.means, picks, strict=True)])
        s = np.array([variance[j] for variance, j in zip(self.variances, picks, strict=True)])
        mean, variance = self.visits @ m, self.visits @ s + m @ self.covariance @ m
        return float(self.quantile(np.atleast_1d(mean), np.atleast_1d(variance))[0])

    def cost(self, picks: Sequence[int]) -> float:
        return sum(float(cost[j]) for cost, j in zip(self.costs, picks, strict=True))


def least_quantile(problem: QuantileProblem, budget: float) -> Chosen | None:
    """The least percentile of all choices that cost no more than ``budget``; none if no choice does."""
    start = _climb(problem, budget, -1.0)
    choice = _search(problem, budget, problem.value(start) if start else float("inf"), by_cost=False)
    if choice is None:
        return Chosen(start, problem.value(start), problem.cost(start), float("nan")) if start else None
    picks = choice if choice and problem.value(choice) < (problem.value(start) if start else float("inf")) else start
    return Chosen(picks, problem.value(picks), problem.cost(picks), 0.0) if picks else None


def cheapest_within(problem: QuantileProblem, latency: float, budget: float = float("inf")) -> Chosen | None:
    """The cheapest choice whose percentile is at most ``latency``; none if there is none within ``budget``."""
    latency = latency * (1 + _SLACK)
    start = _climb(problem, budget, latency)
    if start and problem.value(start) > latency:
        start = ()
    most = problem.cost(start) if start else min(budget, sum(float(cost.max()) for cost in problem.costs))
    choice = _search(problem, most, latency, by_cost=True)
    if choice is None:
        return Chosen(start, problem.value(start), problem.cost(start), float("nan")) if start else None
    picks = choice or start
    return Chosen(picks, problem.value(picks), problem.cost(picks), 0.0) if picks else None


def _climb(problem: QuantileProblem, budget: float, enough: float) -> tuple[int, ...]:
    """A good choice by greedy steps of the best gain per price; empty if even the first choice is too expensive."""
    picks = [int(np.argmin(cost)) for cost in problem.costs]
    cost = problem.cost(picks)
    if cost > budget:
        return ()
    value = problem.value(picks)
    while value > enough:
        best, best_rate = None, 0.0
        for i, costs in enumerate(problem.costs):
            if picks[i] + 1 < len(costs) and cost + costs[picks[i] + 1] - costs[picks[i]] <= budget:
                step = [*picks]
                step[i] += 1
                after = problem.value(step)
                price = max(float(costs[step[i]] - costs[picks[i]]), 1e-300)
                if (value - after) / price > best_rate:
                    best, best_rate = (step, after), (value - after) / price
        if best is None:
            break
        picks, value = best[0], best[1]
        cost = problem.cost(picks)
    return tuple(picks)


def _search(problem: QuantileProblem, budget: float, limit: float, by_cost: bool) -> tuple[int, ...] | None:
    """Branch and bound over all choices, operator by operator.

    By percentile: the choice with the least percentile below ``limit``. By cost: the cheapest with a percentile of at
    most ``limit`` and a cost below ``budget``. Empty if there is none; none if the search would become too large.

    The bound of a partial choice takes for the other operators the least mean and variance that the rest of the budget
    can buy, by Lagrange, and of each covariance the smaller of its possible contributions.
    """
    count = len(problem.costs)
    budget = budget + _SLACK * abs(budget) if np.isfinite(budget) else budget
    weighted = [v * m for v, m in zip(problem.visits, problem.means, strict=True)]
    spread = [v * s for v, s in zip(problem.visits, problem.variances, strict=True)]
    mean_bound = _RestBound(weighted, problem.costs)
    spread_bound = _RestBound(spread, problem.costs)
    rest_cost = np.append(np.cumsum([float(cost.min()) for cost in problem.costs][::-1])[::-1], 0.0)
    lows = np.array([float(mean.min()) for mean in problem.means])
    highs = np.array([float(mean.max()) for mean in problem.means])
    c = problem.covariance
    pair_low = np.where(c > 0, c * np.outer(lows, lows), c * np.outer(highs, highs))
    costs, mean, variance = np.zeros(1), np.zeros(1), np.zeros(1)
    chosen_means = np.zeros((1, 0))
    trail: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    for i in range(count):
        m, s = problem.means[i], problem.variances[i]
        width = len(m)
        if len(costs) * width > MOST_STATES:
            return None
        with_before = 2 * (chosen_means @ c[:i, i])
        costs = (costs[:, None] + problem.costs[i]).ravel()
        mean = (mean[:, None] + problem.visits[i] * m).ravel()
        variance = (variance[:, None] + problem.visits[i] * s + c[i, i] * m * m + with_before[:, None] * m).ravel()
        chosen_means = np.hstack([np.repeat(chosen_means, width, axis=0), np.tile(m, len(chosen_means))[:, None]])
        left = budget - costs
        alive = costs + rest_cost[i + 1] <= budget
        # What the operators to come add to the variance at least, through covariances.
        coupling = 2 * (chosen_means @ c[: i + 1, i + 1 :])
        crossed = np.where(coupling > 0, coupling * lows[i + 1 :], coupling * highs[i + 1 :]).sum(axis=1)
        among = float(pair_low[i + 1 :, i + 1 :].sum())
        floor_mean = mean + mean_bound.at(i + 1, left)
        floor_variance = np.maximum(variance + spread_bound.at(i + 1, left) + crossed + among, 0.0)
        finite = alive & np.isfinite(floor_mean) & np.isfinite(floor_variance)
        hope = np.full(len(costs), np.inf)
        hope[finite] = problem.floor(floor_mean[finite], floor_variance[finite])
        keep = np.flatnonzero(alive & (hope <= limit * (1 + _SLACK)))
        if not len(keep):
            return ()
        trail.append((keep // width, keep % width))
        costs, mean, variance, chosen_means = costs[keep], mean[keep], variance[keep], chosen_means[keep]
    value = problem.quantile(mean, np.maximum(variance, 0.0))
    if by_cost:
        place = int(np.lexsort((value, np.where(value <= limit, costs, np.inf)))[0])
        if not value[place] <= limit:
            return ()
    else:
        place = int(np.argmin(value))
    picks = []
    for parents, here in reversed(trail):
        picks.append(int(here[place]))
        place = int(parents[place])
    return tuple(reversed(picks))


class _RestBound:
    """The least sum of the remaining operators within the remaining cost."""

    def __init__(self, values: Sequence[Floats], costs: Sequence[Floats]) -> None:
        slopes = np.concatenate([_slopes(x, y) for x, y in zip(values, costs, strict=True)] or [np.zeros(0)])
        slopes = slopes[np.isfinite(slopes) & (slopes > 0)]
        self.thetas = np.append(np.quantile(slopes, np.linspace(0, 1, 9)) if len(slopes) else [], 0.0)
        least = np.array([[float(np.min(x + t * y)) for t in self.thetas] for x, y in zip(values, costs, strict=True)])
        self.sums = np.vstack([np.cumsum(least[::-1], axis=0)[::-1], np.zeros(len(self.thetas))])

    def at(self, place: int, left: Floats) -> Floats:
        room = np.where(np.isfinite(left), left, 1e300)
        with np.errstate(over="ignore"):
            bounds = self.sums[place] - self.thetas * np.maximum(room, 0.0)[:, None]
        return np.asarray(bounds.max(axis=1))


def _slopes(x: Floats, y: Floats) -> Floats:
    """What one more unit of cost takes off, from choice to choice."""
    finite = np.isfinite(x)
    return -np.diff(x[finite]) / np.maximum(np.diff(y[finite]), 1e-300)
