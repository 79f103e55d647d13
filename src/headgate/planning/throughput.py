"""Relative throughput of a deployment: the equation that heuristics, searches and policies share."""

from __future__ import annotations

from typing import Any

from headgate.model.arrays import Floats, Ints, Shape
from headgate.queueing.compiled import compiled

__all__ = ["bottleneck", "flow_of", "propagate"]


def flow_of(shape: Shape, active: Ints, external: Floats, waiting: Floats) -> tuple[Any, ...]:
    """What :func:`propagate` needs of a dataflow, with given alternates."""
    streams = (shape.first_stream, shape.stream_target, shape.stream_share)
    return (shape.cost_of(active), shape.out_of(active), *streams, external, waiting, shape.is_output)


@compiled
def propagate(flow: Any, power: Any, offered: Any, could: Any) -> float:
    """Relative throughput for a given power; writes the input of each task into ``offered``.

    ``flow`` is cost, selectivity, first stream, target, share, external and waiting rates, and which tasks are outputs.

    Reference: DYN, Eq. 4 to 7.
    """
    cost, out, first, target, share, external, waiting, is_output = flow
    tasks = len(cost)
    outputs = 0
    total = 0.0
    for p in range(tasks):
        offered[p] = external[p] + waiting[p]
        could[p] = offered[p]
    for p in range(tasks):
        finish = offered[p]
        if cost[p] > 0.0:
            finish = min(finish, power[p] / cost[p])
        if is_output[p]:
            outputs += 1
            total += min(finish / could[p], 1.0) if could[p] > 0.0 else 1.0
        for e in range(first[p], first[p + 1]):
            offered[target[e]] += finish * out[p] * share[e]
            could[target[e]] += could[p] * out[p] * share[e]
    return total / outputs


@compiled
def bottleneck(cost: Any, power: Any, offered: Any) -> int:
    """The task that keeps up with the least share of its input; -1 if all keep up."""
    lowest = 1.0 - 1e-9
    chosen = -1
    for p in range(len(cost)):
        if cost[p] > 0.0 and offered[p] > 0.0:
            ratio = power[p] / cost[p] / offered[p]
            if ratio < lowest:
                lowest = ratio
                chosen = p
    return chosen
