"""How DYN's Alg. 1 gives cores to tasks: one each, then one at a time to the bottleneck."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.model.arrays import Ints
from headgate.model.graph import Graph
from headgate.planning.estimate import PlanEstimate, estimate
from headgate.planning.layout import Layout
from headgate.planning.problem import SLACK, Problem
from headgate.queueing.compiled import compiled

__all__ = ["depth_first", "grown", "spread_out"]


def depth_first(problem: Problem) -> Ints:
    """Tasks in depth-first order from the sources, so that neighbours share machines."""
    graph = Graph(problem.dataflow)
    position = {name: place for place, name in enumerate(problem.shape.names)}
    seen: dict[int, None] = {}
    waiting = [position[name] for name in reversed(graph.sources())]
    while waiting:
        task = waiting.pop()
        if task in seen:
            continue
        seen[task] = None
        readers = {position[stream.target] for stream in graph.consumers[problem.shape.names[task]]}
        waiting += sorted(readers, reverse=True)
    return np.array([*seen, *(task for task in range(problem.tasks) if task not in seen)], dtype=np.int64)


@compiled
def _grow(have: Any, sequence: Any, most: int, core_power: float, least_omega: float, flow: Any) -> int:
    """Add cores one by one until relative throughput suffices; returns the new length of ``sequence``."""
    cost, out, first, target, share, external, achievable, is_output = flow
    tasks = len(cost)
    arrived = np.zeros(tasks)
    outputs = 0
    for p in range(tasks):
        if is_output[p]:
            outputs += 1
    given = 0
    for p in range(tasks):
        given += have[p]
    while True:
        sum_omega = 0.0
        lowest = 2.0
        next_task = -1
        for p in range(tasks):
            arrived[p] = external[p]
        for p in range(tasks):
            finish = arrived[p]
            if cost[p] > 0.0:
                could = have[p] * core_power / cost[p]
                if arrived[p] > could:
                    finish = could
                    if could / arrived[p] < lowest:
                        lowest = could / arrived[p]
                        next_task = p
            if is_output[p]:
                sum_omega += 1.0 if achievable[p] <= 0.0 else min(finish / achievable[p], 1.0)
            for e in range(first[p], first[p + 1]):
                arrived[target[e]] += finish * out[p] * share[e]
        if sum_omega / outputs >= least_omega or next_task < 0 or given >= most:
            return given
        sequence[given] = next_task
        have[next_task] += 1
        given += 1


def grown(problem: Problem, active: Ints) -> Ints:
    """The instances that Alg. 1 (lines 12 to 19) makes, in the order in which they get cores of the largest class.

    First each task gets one, neighbours after each other; then the task of the lowest relative throughput gets one
    more, until the dataflow's is reached. Bandwidth is looked at afterwards, by :func:`spread_out`: it changes nothing
    unless a stream is wider than the network between two machines.
    """
    shape = problem.shape
    every = np.arange(shape.tasks)
    cost, out = shape.cost_s[every, active], shape.selectivity[every, active]
    order = depth_first(problem)
    begin = order[cost[order] > 0]
    core_power = problem.cloud.largest.core_power
    needed = np.ceil(problem.needed_power(active) / core_power) + 1
    most = int(needed.sum()) + shape.tasks
    sequence = np.zeros(most, dtype=np.int64)
    sequence[: len(begin)] = begin
    have = (cost > 0).astype(np.int64)
    is_output = np.zeros(shape.tasks, dtype=np.bool_)
    is_output[list(shape.outputs)] = True
    first = np.searchsorted(shape.stream_source, np.arange(shape.tasks + 1)).astype(np.int64)
    rates = (problem.external, problem.achievable(active))
    flow = (cost, out, first, shape.stream_target, shape.stream_share, *rates, is_output)
    given = _grow(have, sequence, most, core_power, problem.throughput_min - SLACK, flow)
    return sequence[:given]


def spread_out(problem: Problem, active: Ints, layout: Layout, most: int = 2_000) -> tuple[Layout, PlanEstimate]:
    """Add instances of the bottleneck on new machines until the network suffices too.

    More pairs of machines carry more: the reader of a congested stream is put onto one more machine of the largest
    class. At most ``most`` are added; the estimate shows whether that was enough.
    """
    estimated = estimate(problem, active, layout)
    kind = problem.cloud.place(problem.cloud.largest.name)
    cores = problem.cloud.largest.cores
    step = 1
    added = 0
    while not estimated.meets(problem) and added < most and not _at_limit(problem, layout, estimated):
        ratio = np.where(problem.shape.cost_s[np.arange(problem.tasks), active] > 0, estimated.relative, np.inf)
        task = int(np.argmin(ratio))
        if ratio[task] >= 1.0 - SLACK:
            break
        held = estimated.held_back[problem.shape.stream_target == task].sum() > 0
        placed = np.zeros((1, problem.tasks), dtype=np.int64)
        placed[0, task] = 1 if held else cores
        layout = layout.joined(Layout(np.array([kind]), placed, np.array([step])))
        added += step
        estimated = estimate(problem, active, layout)
    return layout, estimated


def _at_limit(problem: Problem, layout: Layout, estimated: PlanEstimate) -> bool:
    """Whether one more machine would exceed a limit."""
    largest = problem.cloud.largest
    if problem.cores_max is not None and int(layout.cores.sum()) >= problem.cores_max:
        return True
    price = estimated.cost_per_h + float(largest.price_per_h)
    return problem.budget_per_h is not None and price > float(problem.budget_per_h) * (1 + SLACK)
