"""How many processors, and where: AssignProcessors and MinProcessors for every model and target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue, Infeasible
from headgate.queueing import shortage
from headgate.queueing.frontier import Chosen, choose
from headgate.queueing.greedy import COMPILED_FROM, allocate_erlang
from headgate.queueing.network import Network
from headgate.queueing.percentile import gamma_percentile, gamma_percentile_floor
from headgate.queueing.predict import NetworkPrediction, predict
from headgate.queueing.quantile_search import QuantileProblem, cheapest_within, least_quantile
from headgate.queueing.station import Station, StationModel, make_stations, sojourn_curve
from headgate.queueing.traffic import solve_traffic, visit_covariance

__all__ = [
    "Sizing",
    "SizingProblem",
    "assign_processors",
    "assign_to",
    "check_percentile",
    "fewest_of",
    "make_problem",
    "min_processors",
]

Floats = npt.NDArray[np.float64]

MOST_PROCESSORS = 10_000_000
_ROUNDS = 4


@dataclass(frozen=True)
class SizingProblem:
    """The optimisers' problem: stations with fixed variability, and visits."""

    stations: tuple[Station, ...]
    visits: tuple[float, ...]
    covariance: Floats
    model: StationModel

    @property
    def convex(self) -> bool:
        """Whether every sojourn is known to be convex in the number of processors, so that one at a time is optimal."""
        plain = self.model is StationModel.MMK or (
            self.model is StationModel.GGK and not any(s.bulks for s in self.stations)
        )
        return plain and not any(station.speeds for station in self.stations)

    @property
    def service_s(self) -> float:
        """The service time of a sojourn: a lower bound for any number of processors of equal speed."""
        return sum(v / station.service_rate for v, station in zip(self.visits, self.stations, strict=True))


@dataclass(frozen=True, slots=True)
class Sizing:
    """An allocation and what is predicted of it."""

    allocation: tuple[int, ...]
    prediction: NetworkPrediction
    cost: float
    """Sum of the processors' prices."""

    exact: bool = True
    """Whether the allocation is proved optimal under the model; false only where the search was cut short."""

    @property
    def processors(self) -> int:
        return sum(self.allocation)

    def by_name(self) -> dict[str, int]:
        return {operator.name: operator.processors for operator in self.prediction.operators}


def assign_processors(
    network: Network, processors: int, model: StationModel = StationModel.MMK, percentile: float | None = None
) -> Sizing:
    """The allocation of at most ``processors`` with the least mean sojourn, or the least percentile of it.

    Optimal under the model. Where waits are convex in the processors (M/M/k and plain GI/G/k), by Algorithm 1 of DRS;
    otherwise by exact search (:func:`headgate.queueing.frontier.choose` and
    :func:`headgate.queueing.quantile_search.least_quantile`). Processors that gain nothing are left over. Raises
    :class:`~headgate.errors.Infeasible` if there are too few.

    >>> from headgate.queueing.network import Operator, Route
    >>> logos = Network(
    ...     (Operator("extract", 1.5, arrival_rate_per_s=13), Operator("match", 1.4), Operator("aggregate", 100)),
    ...     (Route("extract", "match"), Route("match", "aggregate")),
    ... )
    >>> assign_processors(logos, 22).allocation
    (10, 11, 1)

    Reference: DRS (Fu et al. 2017), Algorithm 1; its loop hands out one processor too many.
    """
    check_percentile(percentile)
    if processors < 1:
        raise BadValue(f"{processors} processors", "at least 1")

    def solve(problem: SizingProblem) -> tuple[tuple[int, ...], bool]:
        return assign_to(problem, processors, percentile)

    return _settled(network, model, solve)


def min_processors(
    network: Network, latency_s: float, model: StationModel = StationModel.MMK, percentile: float | None = None
) -> Sizing:
    """The fewest processors, or the cheapest if prices differ, whose sojourn is at most ``latency_s``.

    Mean sojourn, or the given percentile of it. Optimal under the model, as :func:`assign_processors` is. Raises
    :class:`~headgate.errors.Infeasible`, which says what stands in the way.

    >>> from headgate.queueing.network import Operator
    >>> found = min_processors(Network((Operator("detect", 10.0, arrival_rate_per_s=42.0),)), 0.15)
    >>> found.allocation, round(found.prediction.mean_s, 4)
    ((6,), 0.1187)

    Reference: DRS (Fu et al. 2017), Algorithm 2, without starting again for every K; its bound of the service times
    leaves out how often a tuple comes by.
    """
    check_percentile(percentile)
    if not (isfinite(latency_s) and latency_s > 0):
        raise BadValue(f"a latency of {latency_s:g} s", "a finite number above 0")

    def solve(problem: SizingProblem) -> tuple[tuple[int, ...], bool]:
        return fewest_of(problem, latency_s, percentile)

    return _settled(network, model, solve)


def make_problem(network: Network, model: StationModel, allocation: Sequence[int] | None = None) -> SizingProblem:
    """The optimisers' problem, with the variability of arrivals as it is under ``allocation``."""
    traffic = solve_traffic(network)
    stations = make_stations(network, model, allocation, traffic)
    return SizingProblem(stations, tuple(map(float, traffic.visits)), visit_covariance(network, traffic), model)


def _settled(
    network: Network, model: StationModel, solve: Callable[[SizingProblem], tuple[tuple[int, ...], bool]]
) -> Sizing:
    """Solve repeatedly with the variability of the solution until it no longer changes."""
    allocation, exact = solve(make_problem(network, model))
    if model is not StationModel.MMK:
        seen = {allocation}
        for _ in range(_ROUNDS):
            allocation, exact = solve(make_problem(network, model, allocation))
            if allocation in seen:
                break
            seen.add(allocation)
    prices = [operator.price for operator in network.operators]
    cost = float(sum(price * k for price, k in zip(prices, allocation, strict=True)))
    return Sizing(allocation, predict(network, allocation, model), cost, exact)


def assign_to(problem: SizingProblem, processors: int, percentile: float | None = None) -> tuple[tuple[int, ...], bool]:
    """AssignProcessors on stations: the allocation, and whether it is proved optimal."""
    stations = problem.stations
    least = shortage.least_allocation(stations)
    shortage.check_processors(stations, least, processors)
    if problem.convex and percentile is None:
        allocation, _ = _greedy(problem, least, processors, 0.0)
        return tuple(allocation), True
    spare = processors - sum(least)
    ranges = [range(low, _top(station, low + spare) + 1) for station, low in zip(stations, least, strict=True)]
    units = [np.array(each, dtype=np.float64) for each in ranges]
    if percentile is None:
        means, _ = _curves(problem, ranges)
        values = [v * mean for v, mean in zip(problem.visits, means, strict=True)]
        return _picked(choose(values, units, processors), ranges)
    return _picked(least_quantile(_quantile_problem(problem, ranges, units, percentile), processors), ranges)


def fewest_of(
    problem: SizingProblem, latency_s: float, percentile: float | None = None
) -> tuple[tuple[int, ...], bool]:
    """MinProcessors on stations: the allocation, and whether it is proved optimal."""
    stations = problem.stations
    least = shortage.least_allocation(stations)
    prices = {station.price for station in stations}
    if problem.convex and percentile is None and len(prices) == 1:
        enough = latency_s - problem.service_s
        quickest, reached = _greedy(problem, least, COMPILED_FROM - 1, enough)
        if not reached and _room(stations, quickest):
            quickest, reached = _greedy(problem, least, MOST_PROCESSORS, enough)
        if not reached:
            raise shortage.unreachable(problem, quickest, latency_s, percentile)
        return tuple(quickest), True
    steps = 8
    while True:
        ranges = [range(low, _top(station, low + steps) + 1) for station, low in zip(stations, least, strict=True)]
        cheapest = _cheapest(problem, ranges, latency_s, percentile)
        if cheapest is not None:
            break
        at_top = [each[-1] for each in ranges]
        if not _room(stations, at_top) or steps > 1_000_000 // len(stations):
            raise shortage.unreachable(problem, at_top, latency_s, percentile)
        steps *= 4
    # What a cheaper allocation could hold at most of each operator: look that far, and no further.
    spent = sum(s.price * (r[j] - r[0]) for s, r, j in zip(stations, ranges, cheapest.picks, strict=True))
    wider = [
        range(low, _top(station, low + int(spent / station.price + 1e-9)) + 1)
        for station, low in zip(stations, least, strict=True)
    ]
    allocation, exact = _picked(_cheapest(problem, wider, latency_s, percentile) or cheapest, wider)
    # Of as many processors the quickest; where prices differ, another one of the same cost is not looked for.
    return assign_to(problem, sum(allocation), percentile) if exact and len(prices) == 1 else (allocation, exact)


def _cheapest(
    problem: SizingProblem, ranges: Sequence[range], latency_s: float, percentile: float | None
) -> Chosen | None:
    costs = [
        station.price * np.array(each, dtype=np.float64) for station, each in zip(problem.stations, ranges, strict=True)
    ]
    if percentile is None:
        means, _ = _curves(problem, ranges)
        weights = [v * mean for v, mean in zip(problem.visits, means, strict=True)]
        return choose(costs, weights, latency_s)
    return cheapest_within(_quantile_problem(problem, ranges, costs, percentile), latency_s)


def _greedy(problem: SizingProblem, least: Sequence[int], total: int, enough_s: float) -> tuple[list[int], bool]:
    """Algorithm 1 and 2 on the heap; whether the waits came down to ``enough_s`` seconds."""
    offered, weight, most = [], [], []
    for visits, station in zip(problem.visits, problem.stations, strict=True):
        offered.append(station.arrival_rate / station.service_rate)
        scale = 1.0 if problem.model is StationModel.MMK else (station.arrival_scv + station.service_scv) / 2
        weight.append(scale * visits / station.arrival_rate if station.arrival_rate > 0 else 0.0)
        most.append(station.processors_max if station.processors_max is not None else MOST_PROCESSORS)
    allocation, cost = allocate_erlang(offered, weight, least, most, total, enough_s)
    return allocation, cost <= enough_s


def _quantile_problem(
    problem: SizingProblem, ranges: Sequence[range], costs: Sequence[Floats], percentile: float
) -> QuantileProblem:
    means, variances = _curves(problem, ranges)

    def quantile(mean: Floats, variance: Floats) -> Floats:
        return gamma_percentile(mean, variance, percentile)

    def floor(mean: Floats, variance: Floats) -> Floats:
        # A hair lower, for what the grid of shapes behind the minimum may miss.
        return gamma_percentile_floor(mean, variance, percentile) * (1 - 1e-6)

    return QuantileProblem(costs, means, variances, np.array(problem.visits), problem.covariance, quantile, floor)


def _curves(problem: SizingProblem, ranges: Sequence[range]) -> tuple[list[Floats], list[Floats]]:
    both = [
        sojourn_curve(station, problem.model, np.array(each))
        for station, each in zip(problem.stations, ranges, strict=True)
    ]
    return [mean for mean, _ in both], [variance for _, variance in both]


def _top(station: Station, wanted: int) -> int:
    limit = station.processors_max
    return wanted if limit is None else min(wanted, limit)


def _room(stations: Sequence[Station], allocation: Sequence[int]) -> bool:
    pairs = zip(stations, allocation, strict=True)
    return any(station.processors_max is None or k < station.processors_max for station, k in pairs)


def _picked(chosen: Chosen | None, ranges: Sequence[range]) -> tuple[tuple[int, ...], bool]:
    if chosen is None:
        raise Infeasible("TOO_FEW_PROCESSORS", "no allocation keeps to the limits")
    return tuple(each[j] for each, j in zip(ranges, chosen.picks, strict=True)), chosen.gap == 0.0


def check_percentile(percentile: float | None) -> None:
    """Raise unless there is none or it lies in the upper tail, where the models' percentiles hold."""
    if percentile is not None and not 0.75 <= percentile < 1:
        raise BadValue(f"percentile {percentile:g}", "a share from 0.75 to below 1, such as 0.95")
