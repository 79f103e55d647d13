"""DYN's two heuristics: sharded (SH), local to each task, and centralised (CE), which uses the graph."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.planning.estimate import estimate
from headgate.planning.explain import planned
from headgate.planning.growth import grown, spread_out
from headgate.planning.layout import Layout, filled
from headgate.planning.packing import cheapest_bins
from headgate.planning.plan import Answer
from headgate.planning.problem import SLACK, Problem

__all__ = ["Centralised", "Sharded", "by_value_for_cost", "downstream_costs"]


@dataclass(frozen=True, slots=True)
class Sharded:
    """SH: each task takes the alternate of most value for its own cost; machines of the largest class, as they fill.

    Reference: DYN, Alg. 1 and Table 1.
    """

    name: str = "sh"

    def plan(self, problem: Problem) -> Answer:
        began = time.perf_counter()
        active = by_value_for_cost(problem, problem.shape.cost_s)
        layout = one_class(problem, grown(problem, active))
        layout, estimated = spread_out(problem, active, layout)
        return planned(self.name, problem, active, layout, estimated, began)


@dataclass(frozen=True, slots=True)
class Centralised:
    """CE: the cost of an alternate includes that of the downstream tasks; then instances and machines are repacked.

    Reference: DYN, Alg. 1 and Table 1.
    """

    name: str = "ce"

    def plan(self, problem: Problem) -> Answer:
        began = time.perf_counter()
        active = by_value_for_cost(problem, downstream_costs(problem))
        layout = repacked(problem, active, grown(problem, active))
        layout, estimated = spread_out(problem, active, layout)
        return planned(self.name, problem, active, layout, estimated, began)


def by_value_for_cost(problem: Problem, cost: Floats) -> Ints:
    """The alternate of the largest value / cost for each task; of equal ones the last, as in Alg. 1 (lines 2 to 11)."""
    shape = problem.shape
    with np.errstate(divide="ignore"):
        ratio = shape.value / cost
    active = [max(range(len(ways)), key=lambda j, i=i: (ratio[i, j], j)) for i, ways in enumerate(shape.alternates)]  # type: ignore[misc]
    return np.array(active, dtype=np.int64)


def downstream_costs(problem: Problem) -> Floats:
    r"""The cost of a message by alternate, downstream tasks included.

    .. math:: C_{ij} = c_{ij} + s_{ij} \sum_{k \in succ(i)} C_k

    where :math:`C_k` is that of the alternate of most value for its cost: by dynamic programming from the outputs back.

    Reference: DYN, Table 1.
    """
    shape = problem.shape
    total = shape.cost_s.copy()
    behind = np.zeros(shape.tasks)
    stream = len(shape.stream_target) - 1
    for task in range(shape.tasks - 1, -1, -1):
        while stream >= 0 and shape.stream_source[stream] == task:
            behind[task] += shape.stream_share[stream] * _chosen_cost(problem, total, int(shape.stream_target[stream]))
            stream -= 1
        total[task] += shape.selectivity[task] * behind[task]
    return total


def _chosen_cost(problem: Problem, total: Floats, task: int) -> float:
    ways = range(len(problem.shape.alternates[task]))
    value = problem.shape.value[task]
    best = max(ways, key=lambda j: (value[j] / total[task, j] if total[task, j] > 0 else np.inf, j))
    return float(total[task, best])


def one_class(problem: Problem, sequence: Ints) -> Layout:
    """Machines of the largest class, filled in the order in which instances were made."""
    kind = problem.cloud.largest
    count = -(-len(sequence) // kind.cores)
    return filled(problem.tasks, sequence, [(problem.cloud.place(kind.name), kind.cores, count)])


def repacked(problem: Problem, active: Ints, sequence: Ints) -> Layout:
    """Alg. 1, lines 20 to 25: instances that need less go to smaller machines, then those with free cores are repacked.

    Both is tried with and without moving instances, and the cheaper kept: a machine that is left with a free core may
    cost more than the smaller one saves.
    """
    moved = _over_provisioned(problem, active, sequence)
    candidates = [_packed(problem, sequence, {})]
    if moved:
        candidates.append(_packed(problem, sequence, moved))
    return min(candidates, key=lambda each: _price(problem, each))


def _price(problem: Problem, layout: Layout) -> float:
    prices = np.array([float(each.price_per_h) for each in problem.cloud.classes])
    return float((prices[layout.kind] * layout.count).sum())


def _over_provisioned(problem: Problem, active: Ints, sequence: Ints) -> dict[int, float]:
    """The power that an instance needs, for tasks whose instances have spare capacity."""
    core_power = problem.cloud.largest.core_power
    estimated = estimate(problem, active, one_class(problem, sequence))
    if estimated.held_back.any():
        return {}
    have = np.bincount(sequence, minlength=problem.tasks)
    cost = problem.shape.cost_of(active)
    rest = estimated.processed * cost - (have - 1) * core_power
    return {int(task): max(float(rest[task]), 0.0) for task in np.flatnonzero(have) if rest[task] < core_power}


def _packed(problem: Problem, sequence: Ints, moved: dict[int, float]) -> Layout:
    cloud, largest = problem.cloud, problem.cloud.largest
    powers = sorted({each.core_power for each in cloud.classes})
    keep = np.ones(len(sequence), dtype=np.bool_)
    small: dict[float, list[int]] = {}
    for task, rest in moved.items():
        power = next(each for each in powers if each >= rest * (1 - SLACK))
        if power < largest.core_power:
            keep[np.flatnonzero(sequence == task)[-1]] = False
            small.setdefault(power, []).append(task)
    # Machines that are full stay as they are; instances of the others are packed again.
    whole = len(sequence) // largest.cores * largest.cores
    by_machine = keep[:whole].reshape(-1, largest.cores)
    full = np.repeat(by_machine.all(axis=1), largest.cores)
    stay = sequence[:whole][full]
    loose = np.concatenate([sequence[:whole][~full & keep[:whole]], sequence[whole:][keep[whole:]]])
    count = len(stay) // largest.cores
    layout = filled(problem.tasks, stay, [(cloud.place(largest.name), largest.cores, count)])
    layout = layout.joined(filled(problem.tasks, loose, cheapest_bins(cloud, len(loose), largest.core_power)))
    for power, tasks in sorted(small.items()):
        bins = cheapest_bins(cloud, len(tasks), power)
        layout = layout.joined(filled(problem.tasks, np.array(tasks, dtype=np.int64), bins))
    return layout
