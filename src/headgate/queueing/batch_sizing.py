"""The best allocation for a dataflow of micro-batches: the quickest of so many processors, or the cheapest in time.

Sojourns through batches are neither sums over operators nor convex in their processors, so allocations are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue, Infeasible
from headgate.queueing.spark_flow import SparkFlow, predict_flow

__all__ = ["assign_flow", "is_proved", "min_flow"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TRIED_AT_MOST = 200_000
"""Allocations up to which all are tried."""


def assign_flow(flow: SparkFlow, processors: int, percentile: float | None = None) -> tuple[int, ...]:
    """The allocation of at most ``processors`` with the least mean sojourn, or the least percentile of it.

    All allocations are tried while they are at most :data:`TRIED_AT_MOST`; otherwise processors are added and moved as
    long as that helps.

    >>> from headgate.queueing.network import Network, Operator, Route
    >>> from headgate.queueing.spark_flow import BatchCosts
    >>> chain = Network((Operator("a", 10.0, 0.5, 8.0), Operator("b", 5.0, 0.5)), (Route("a", "b"),))
    >>> assign_flow(SparkFlow(chain, BatchCosts(0.5, 0.05, 0.005)), 12)
    (5, 7)
    """
    if processors < 1:
        raise BadValue(f"{processors} processors", "at least 1")
    needed = _needed(flow)
    if sum(needed) > processors:
        most_at = max(range(len(needed)), key=lambda i: needed[i])
        message = f"needs {sum(needed)} processors to finish batches at all, {processors} given"
        if len(needed) > 1:
            message += f"; '{flow.network.names[most_at]}' alone needs {needed[most_at]}"
        raise Infeasible("TOO_FEW_PROCESSORS", message, {"needed": sum(needed), "given": processors})

    def worth(allocations: Ints) -> Floats:
        latency_s = predict_flow(flow, allocations).latency_s(percentile)
        return np.where(allocations.sum(axis=1) <= processors, latency_s, np.inf)

    return _least(flow, processors, np.array([needed]), worth)


def min_flow(flow: SparkFlow, latency_s: float, percentile: float | None = None, most: int = 64) -> tuple[int, ...]:
    """The fewest processors, at most ``most``, whose sojourn is at most ``latency_s``; the cheapest if prices differ.

    Of equals it is the quickest.

    >>> from headgate.queueing.network import Network, Operator, Route
    >>> from headgate.queueing.spark_flow import BatchCosts
    >>> chain = Network((Operator("a", 10.0, 0.5, 8.0), Operator("b", 5.0, 0.5)), (Route("a", "b"),))
    >>> sum(min_flow(SparkFlow(chain, BatchCosts(0.5, 0.05, 0.005)), 3.0))
    13
    """
    low = sum(_needed(flow))
    high = min(max(low + 2, 4), most)
    best: tuple[int, ...] | None = None
    least = float("inf")
    # More processors never make the best latency longer, since some may be left over: so bisect on their number.
    while low <= high:
        middle = high if best is None else (low + high) // 2
        tried = assign_flow(flow, middle, percentile)
        reached = float(predict_flow(flow, tried).latency_s(percentile)[0])
        least = min(least, reached)
        if reached <= latency_s:
            best, high = tried, min(sum(tried), middle) - 1
        elif best is not None:
            low = middle + 1
        elif middle == most:
            break
        else:
            low, high = middle + 1, min(middle + middle // 2, most)
    if best is None:
        what = "mean latency" if percentile is None else f"latency at the {100 * percentile:g}th percentile"
        message = f"a {what} of {latency_s:g} s cannot be reached: {most} processors give {least:.4g} s"
        raise Infeasible(
            "LATENCY_NOT_REACHABLE", message, {"latency_s": latency_s, "best_s": least, "processors": most}
        )
    return _cheapest(flow, best, latency_s, percentile)


def is_proved(flow: SparkFlow, allocation: tuple[int, ...], processors: int | None = None) -> bool:
    """Whether an allocation is the best of all: of so many processors, or else of those that cost no more."""
    return _are_few(flow, _as_many_for(flow, allocation) if processors is None else processors)


def _prices(flow: SparkFlow) -> Floats:
    return np.array([operator.price for operator in flow.network.operators])


def _as_many_for(flow: SparkFlow, allocation: tuple[int, ...]) -> int:
    """As many processors as an allocation's cost can pay for at most."""
    prices = _prices(flow)
    least = np.array([operator.processors_min for operator in flow.network.operators])
    return int(least.sum() + (prices @ (np.array(allocation) - least)) / prices.min() + 1e-9)


def _cheapest(
    flow: SparkFlow, allocation: tuple[int, ...], latency_s: float, percentile: float | None
) -> tuple[int, ...]:
    """The cheapest allocation that is quick enough, from one that is."""
    prices = _prices(flow)
    if prices.min() == prices.max():
        return allocation

    def worth(allocations: Ints) -> Floats:
        is_quick = predict_flow(flow, allocations).latency_s(percentile) <= latency_s
        return np.where(is_quick, allocations @ prices, np.inf)

    return _least(flow, _as_many_for(flow, allocation), np.array([allocation]), worth)


def _least(flow: SparkFlow, processors: int, start: Ints, worth: Callable[[Ints], Floats]) -> tuple[int, ...]:
    """The allocation that is worth least: of all of so many processors if they are few, else by climbing."""
    every = _every(flow, processors) if _are_few(flow, processors) else _climb(flow, start, worth)
    return tuple(int(k) for k in every[np.argmin(worth(every))])


def _needed(flow: SparkFlow) -> tuple[int, ...]:
    """The fewest processors with which every fragment has capacity to spare: one at a time where it frees most."""
    limits = [(operator.processors_min, operator.most) for operator in flow.network.operators]
    given = [least for least, _ in limits]
    for fragment in flow.fragments:
        load = {
            place: flow.rate_per_s * fragment.entering * seen / flow.network.operators[place].service_rate_per_s
            for place, seen in fragment.stages
        }
        while sum(work / given[place] for place, work in load.items()) >= 1:
            free = [place for place in load if limits[place][1] is None or given[place] < (limits[place][1] or 0)]
            if not free:
                message = f"fragment '{fragment.name}' cannot finish its batches with the most that operators may have"
                raise Infeasible("TOO_FEW_PROCESSORS", message, {"fragment": fragment.name})
            gains = {place: load[place] / given[place] / (given[place] + 1) for place in free}
            given[max(gains, key=lambda place: gains[place])] += 1
    return tuple(given)


def _are_few(flow: SparkFlow, processors: int) -> bool:
    """Whether all allocations of so many processors can be tried."""
    least = [operator.processors_min for operator in flow.network.operators]
    return comb(processors - sum(least) + len(least), len(least)) <= TRIED_AT_MOST


def _every(flow: SparkFlow, processors: int) -> Ints:
    least = np.array([operator.processors_min for operator in flow.network.operators])
    spare, count = processors - int(least.sum()), len(least)
    cuts = np.array(list(combinations(range(spare + count), count)), dtype=np.int64)
    extra = np.diff(cuts, axis=1, prepend=-1) - 1
    allocations = least + extra
    return np.asarray(allocations[_allowed(flow, allocations)])


def _allowed(flow: SparkFlow, allocations: Ints) -> npt.NDArray[np.bool_]:
    most = np.array([np.iinfo(np.int64).max if o.most is None else o.most for o in flow.network.operators])
    least = np.array([operator.processors_min for operator in flow.network.operators])
    return np.asarray(np.all((allocations >= least) & (allocations <= most), axis=1))


def _climb(flow: SparkFlow, start: Ints, worth: Callable[[Ints], Floats]) -> Ints:
    """From one allocation on, processors added, removed or moved as long as it is worth less; many first, then one."""
    now, value = start, float(worth(start)[0])
    step = 1 << max(0, int(start.sum()).bit_length() - 3)
    unit = np.eye(start.shape[1], dtype=np.int64)
    while step:
        tried = np.vstack([now + step * unit, now - step * unit, *(now + step * (unit - one) for one in unit)])
        tried = tried[_allowed(flow, tried)]
        values = worth(tried)
        best = int(np.argmin(values))
        if values[best] < value:
            now, value = tried[best : best + 1], float(values[best])
        else:
            step //= 2
    return now
