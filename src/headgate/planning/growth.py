"""How DYN's Alg. 1 gives cores to tasks: one each, then one at a time to the bottleneck."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.capacity.serve import bottleneck, propagate, rates_of
from headgate.model.arrays import Ints
from headgate.model.graph import Graph
from headgate.planning.estimate import PlanEstimate, estimate
from headgate.planning.layout import Layout
from headgate.planning.problem import SLACK, Problem
from headgate.queueing.compiled import compiled

__all__ = ["depth_first", "grown", "spread_out"]


def depth_first(problem: Problem) -> Ints:
    position = {name: place for place, name in enumerate(problem.shape.names)}
    return np.array([position[name] for name in Graph(problem.dataflow).depth_first()], dtype=np.int64)


@compiled
def _grow(power: Any, sequence: Any, given: int, core_power: float, least_omega: float, rates: Any) -> int:
    """Add cores one by one until relative throughput suffices; returns how much of ``sequence`` is given."""
    while given < len(sequence) and propagate(rates, power) < least_omega:
        task = bottleneck(rates, power)
        if task < 0:
            break
        sequence[given] = task
        power[task] += core_power
        given += 1
    return given


def grown(problem: Problem, active: Ints) -> Ints:
    """The instances that Alg. 1 (lines 12 to 19) makes, in the order in which they get cores of the largest class.

    First each task gets one, neighbours after each other; then the task of the lowest relative throughput gets one
    more, until the dataflow's is reached. Bandwidth is looked at afterwards, by :func:`spread_out`: it changes nothing
    unless a stream is wider than the network between two machines.
    """
    shape = problem.shape
    costly = shape.cost_of(active) > 0
    order = depth_first(problem)
    begin = order[costly[order]]
    core_power = problem.cloud.largest.core_power
    needed = np.ceil(problem.needed_power(active) / core_power) + 1
    most = int(needed.sum()) + shape.tasks
    sequence = np.zeros(most, dtype=np.int64)
    rates = rates_of(shape, active, problem.external)
    sequence[: len(begin)] = begin
    given = _grow(costly * core_power, sequence, len(begin), core_power, problem.throughput_min - SLACK, rates)
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
        ratio = np.where(problem.shape.cost_of(active) > 0, estimated.relative, np.inf)
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
