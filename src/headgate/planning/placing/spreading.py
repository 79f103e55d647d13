"""Schedulers that spread instances over a given number of machines: Storm's round robin, R-Storm, METIS.

They do not know how many machines are needed. As in the paper's comparison they get the fewest with which no machine
is overloaded by Eq. 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf
from typing import Protocol

import numpy as np

from headgate.errors import Infeasible, missing_package
from headgate.model.arrays import Floats, Ints
from headgate.planning.placing.exact_packing import least_price
from headgate.planning.placing.items import InstanceItems
from headgate.planning.placing.placement import Bin, PackingProblem

__all__ = ["Metis", "RStorm", "RoundRobin", "Spreader", "fewest_machines"]


class Spreader(Protocol):
    """Spreads instances over machines that are all alike."""

    @property
    def name(self) -> str: ...

    def spread(self, problem: PackingProblem, machines: int) -> list[Ints]:
        """Instances of each operator, by machine."""


def fewest_machines(spreader: Spreader, problem: PackingProblem) -> list[tuple[Bin, Ints]]:
    """The smallest number of machines of one class on which a spreader overloads none; of several classes, the
    cheapest. Raises :class:`Infeasible` where even a machine for each instance is too few."""
    if problem.there:
        raise Infeasible("NOT_INCREMENTAL", f"{spreader.name} packs new machines only; use first-fit")
    best: list[tuple[Bin, Ints]] | None = None
    for kind in problem.classes:
        alone = PackingProblem(problem.items, (kind,), problem.fill)
        least = ceil(least_price(alone) / float(kind.price_per_h) - 1e-9)
        most = min(int(problem.items.count.sum()), problem.machines_max or 10**9)
        for machines in range(least, most + 1):
            bins = [(alone.new_bin(kind, number + 1), on) for number, on in enumerate(spreader.spread(alone, machines))]
            if all(alone.fits(one, on) for one, on in bins):
                cost = sum(one.kind.price_per_h for one, _ in bins)
                if best is None or cost < sum(one.kind.price_per_h for one, _ in best):
                    best = bins
                break
    if best is None:
        message = f"{spreader.name} overloads a machine however many there are up to one for each instance"
        raise Infeasible("NO_MACHINES", f"{message}; use first-fit, or allow more machines")
    return best


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Storm's default: instances in the order of their operators, one machine after the other."""

    name: str = "round-robin"

    def spread(self, problem: PackingProblem, machines: int) -> list[Ints]:
        items = problem.items
        placed = np.zeros((machines, len(items.names)), dtype=np.int64)
        for number, operator in enumerate(np.repeat(np.arange(len(items.names)), items.count)):
            placed[number % machines, operator] += 1
        return list(placed)


@dataclass(frozen=True, slots=True)
class RStorm:
    """R-Storm: instances breadth-first from the sources, each to the machine that is nearest to its demand.

    Memory is a hard limit, CPU a soft one; the distance is weighted Euclidean over CPU, memory and the network (0 on
    the machine that was used last, 1 elsewhere), all relative to a machine. R-Storm's demands are
    declared once for all; here they are those without neighbours.

    Reference: B. Peng et al., *R-Storm: Resource-aware scheduling in Storm*, Middleware 2015, Alg. 1 to 4.
    """

    name: str = "r-storm"

    def spread(self, problem: PackingProblem, machines: int) -> list[Ints]:
        items = problem.items
        fresh = problem.new_bin(problem.classes[0], 1)
        cpu = np.full(machines, 1.0)
        demand = items.largest / fresh.cpu
        bounded = fresh.memory < inf
        memory = np.full(machines, 1.0)
        size = items.memory / fresh.memory if bounded else np.zeros(len(items.names))
        placed = np.zeros((machines, len(items.names)), dtype=np.int64)
        last: int | None = None
        for operator in _breadth_first(items):
            holds = memory >= size[operator] - 1e-9
            network = np.ones(machines)
            if last is None:
                chosen = int(np.argmax(np.where(holds, cpu + memory, -inf)))
            else:
                network[last] = 0.0
                distance = (memory - size[operator]) ** 2 * bounded + (cpu - demand[operator]) ** 2 + network**2
                # A machine without CPU left is taken only if there is no other.
                distance = np.where(
                    cpu >= demand[operator] - 1e-9, distance, distance + 1e3 * (1 + demand[operator] - cpu)
                )
                chosen = int(np.argmin(np.where(holds, distance, inf)))
            placed[chosen, operator] += 1
            cpu[chosen] -= demand[operator]
            memory[chosen] -= size[operator]
            last = chosen
        return list(placed)


def _breadth_first(items: InstanceItems) -> Iterator[int]:
    """Operators breadth-first from the sources, an instance of each in turn, until all have been named."""
    order = [place for place in range(len(items.names)) if not items.feeds[place].any()]
    for place in order:
        order += [each for each in np.flatnonzero(items.feeds[:, place]).tolist() if each not in order]
    left = items.count.copy()
    while left.any():
        for place in order:
            if left[place]:
                left[place] -= 1
                yield place


@dataclass(frozen=True, slots=True)
class Metis:
    """METIS: partitions of the graph of instances, balanced by work, with few rows between them.

    Reference: L. Fischer and A. Bernstein, *Workload scheduling in distributed stream processors using graph
    partitioning*, 2015; the comparison of P-DEPLOY, section 7.4.
    """

    name: str = "metis"

    def spread(self, problem: PackingProblem, machines: int) -> list[Ints]:
        items = problem.items
        placed = np.zeros((machines, len(items.names)), dtype=np.int64)
        operator = np.repeat(np.arange(len(items.names)), items.count)
        if machines == 1:
            placed[0] = items.count
            return list(placed)
        for instance, part in enumerate(_parts(items, operator, machines)):
            placed[part, operator[instance]] += 1
        return list(placed)


def _parts(items: InstanceItems, operator: Ints, machines: int) -> list[int]:
    try:
        import pymetis
    except ImportError:
        raise missing_package("NO_METIS", "the METIS packer", "pymetis", "planning") from None
    joined = items.feeds[np.ix_(operator, operator)] + items.feeds.T[np.ix_(operator, operator)] > 0
    rows, columns = np.nonzero(joined)
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(operator)))])
    traffic = items.saving[operator[rows], operator[columns]]
    options = pymetis.Options(seed=1)
    _, parts = pymetis.part_graph(
        machines,
        pymetis.CSRAdjacency(start.tolist(), columns.tolist()),
        vweights=_whole(items.largest[operator]),
        eweights=_whole(traffic),
        options=options,
    )
    return list(parts)


def _whole(weights: Floats) -> list[int]:
    """Weights as METIS takes them: whole numbers above 0."""
    top = float(weights.max()) if len(weights) else 0.0
    scaled = weights / top * 1_000 if top > 0 else weights
    return [max(1, round(float(each))) for each in scaled]
