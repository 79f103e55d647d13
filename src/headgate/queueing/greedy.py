"""One processor at a time to the operator that gains most: the heap behind both problems of DRS."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from headgate.queueing.compiled import compiled

__all__ = ["allocate_erlang"]

COMPILED_FROM = 20_000
"""Processors from which on loading the compiled loop costs less than it saves."""


def allocate_erlang(
    offered: Sequence[float],
    weight: Sequence[float],
    least: Sequence[int],
    most: Sequence[int],
    total: int,
    enough: float,
) -> tuple[list[int], float]:
    r"""Add processors until ``total`` are used, or until the weighted queues are no longer than ``enough``.

    The cost of operator i with k processors is :math:`w_i L(k)`, with :math:`L(k) = \lambda E[Q](k) = C(k, a)\, a / (k
    - a)` the mean number waiting (M/M/k) and :math:`a` the offered load. It is convex in k, so the largest gain first
    is optimal, and each step costs one step of the recursion :math:`B(k) = a B(k-1) / (k + a B(k-1))` and one of a
    heap. ``least[i]`` must exceed ``offered[i]``. Returns the allocation and its cost; stops early where no operator
    gains anything any more.

    >>> allocate_erlang([0.5, 1.5], [1.0, 1.0], [1, 2], [99, 99], 5, 0.0)[0]
    [2, 3]

    Reference: DRS (Fu et al. 2017), Algorithms 1 and 2; the heap continues instead of starting again for
    every K. Convexity: M. E. Dyer, L. G. Proll 1977, *On the Validity of Marginal Analysis for Allocating Servers in
    M/M/c Queues*.
    """
    if total < COMPILED_FROM:
        return _allocate(offered, weight, least, most, total, enough)
    import numpy as np

    loop: Any = compiled(_allocate)
    k, cost = loop(
        np.array(offered, dtype=np.float64),
        np.array(weight, dtype=np.float64),
        np.array(least, dtype=np.int64),
        np.array(most, dtype=np.int64),
        total,
        enough,
    )
    return list(k), cost


def _allocate(
    offered: Sequence[float],
    weight: Sequence[float],
    least: Sequence[int],
    most: Sequence[int],
    total: int,
    enough: float,
) -> tuple[list[int], float]:
    count = len(offered)
    k = [least[i] for i in range(count)]
    blocked = [0.0 for _ in range(count)]  # Erlang B at k + 1
    queue = [0.0 for _ in range(count)]  # cost at k + 1
    current = [0.0 for _ in range(count)]  # cost at k
    heap = [(0.0, 0) for _ in range(0)]
    cost = 0.0
    used = 0
    for i in range(count):
        a = offered[i]
        b = 1.0
        servers = k[i]
        for s in range(1, servers + 1):
            b = a * b / (s + a * b)
        spare = servers - a
        now = weight[i] * servers * b / (spare + a * b) * a / spare
        servers += 1
        b = a * b / (servers + a * b)
        spare += 1.0
        then = weight[i] * servers * b / (spare + a * b) * a / spare
        blocked[i] = b
        queue[i] = then
        current[i] = now
        cost += now
        used += k[i]
        if now > then and k[i] < most[i]:
            heap.append((then - now, i))
    heapq.heapify(heap)
    peak = cost
    while used < total and cost > enough and len(heap) > 0:
        gain, i = heap[0]
        cost += gain
        used += 1
        servers = k[i] + 1
        k[i] = servers
        a = offered[i]
        now = queue[i]
        current[i] = now
        if cost < 1e-6 * peak:
            # What was subtracted from was so large that its rounding shows: add up afresh.
            cost = 0.0
            for other in current:
                cost += other
            peak = cost
        b = blocked[i]
        servers += 1
        b = a * b / (servers + a * b)
        spare = servers - a
        then = weight[i] * servers * b / (spare + a * b) * a / spare
        blocked[i] = b
        queue[i] = then
        if now > then and servers <= most[i]:
            heapq.heapreplace(heap, (then - now, i))
        else:
            heapq.heappop(heap)
    return k, cost
