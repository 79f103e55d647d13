"""A graph whose fragments share pools, at given rates: whether it keeps up, what it does, how long rows take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from headgate.capacity.epochs import overhead_s, partitions_of
from headgate.capacity.filling import water_filling
from headgate.capacity.latency import EpochWork, epoch_seconds, saturated_epoch_s, sojourn_s
from headgate.capacity.power import stage_power
from headgate.capacity.serve import NO_NETWORK, serve
from headgate.capacity.sharing import Sharing, limits_of, shared_work
from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.capacity import FragmentLoad

__all__ = ["PoolLimits", "PooledGraph", "Served", "Speeds"]

Speeds = Sequence[Floats]
"""The power of each core, by pool."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolLimits:
    """What is asked of pools and fragments, and what they can use; all in reference cores."""

    demand: Floats
    """By pool (D)."""

    usable: Floats
    """By pool (U)."""

    work: Floats
    """By fragment."""

    cap: Floats
    """What each fragment can use, were it alone: more cores than its partitions do not help it."""

    def keeps_up(self, margin: float = 0.0) -> bool:
        """Whether pools and fragments have ``margin`` more than what is asked of them."""
        asked = 1.0 + margin
        pools = bool((self.demand * asked <= self.usable * (1 + 1e-9) + 1e-12).all())
        return pools and bool((self.work * asked <= self.cap * (1 + 1e-9) + 1e-12).all())

    def held_up(self, margin: float = 0.0) -> Ints:
        """Fragments that cannot use what they need, even alone."""
        return np.flatnonzero(self.work * (1.0 + margin) > self.cap * (1 + 1e-9) + 1e-12)


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """What happens in an interval."""

    omega: float
    omega_of: Floats
    """By dataflow."""

    waiting: Floats
    """Messages that wait at the end, by task."""


@dataclass(frozen=True, slots=True, eq=False)
class PooledGraph:
    """A graph, its fragments and its pools; which cores pools have is said with every question."""

    shape: Shape
    sharing: Sharing
    arrays: tuple[Any, ...] = field(init=False)
    loads: tuple[FragmentLoad, ...] = field(init=False)
    """The fragments, in the order of the shape."""

    before: tuple[tuple[int, ...], ...] = field(init=False)
    """By fragment, those that feed it."""

    def __post_init__(self) -> None:
        shape = self.shape
        of_task = {task: load for load in self.sharing.fragments for task in load.tasks}
        loads = tuple(of_task[str(shape.names[first])] for first in shape.fragments[:-1])
        object.__setattr__(self, "arrays", self.sharing.arrays(shape))
        object.__setattr__(self, "loads", loads)
        home = self.fragment_of
        ends = zip(shape.stream_source, shape.stream_target, shape.stream_returns, strict=True)
        edges = {(int(home[s]), int(home[t])) for s, t, returns in ends if not returns and home[s] != home[t]}
        before = tuple(tuple(sorted(s for s, t in edges if t == g)) for g in range(len(loads)))
        object.__setattr__(self, "before", before)

    @property
    def fragment_of(self) -> Ints:
        """By task."""
        return np.searchsorted(self.shape.fragments, np.arange(self.shape.tasks), side="right") - 1

    @property
    def pool_of(self) -> Ints:
        """By fragment, the place of its pool."""
        return np.asarray(self.arrays[0])

    def rates(self, active: Ints, external: Floats) -> Floats:
        """Messages per second into each task if nothing holds them up."""
        return self.shape.achievable(external, self.shape.out_of(active))

    def limits(self, active: Ints, external: Floats, speeds: Speeds) -> PoolLimits:
        """Demand and what is usable, when messages come at given rates from outside."""
        rates = self.rates(active, external)
        flow = self.shape.flow(active)
        cap, usable, factor = limits_of(flow, self.arrays, _matrix(speeds), rates)
        by_task = rates * self.shape.cost_of(active) * factor[self.arrays[5]]
        work, demand = np.zeros(len(self.loads)), np.zeros(len(self.sharing.pools))
        np.add.at(work, self.fragment_of, by_task)
        np.add.at(demand, self.pool_of, work)
        return PoolLimits(demand, usable, work, cap)

    def served(
        self, active: Ints, external: Floats, waiting: Floats, speeds: Speeds, seconds: float, counts_queues: bool
    ) -> Served:
        """An interval as the simulator runs it (:func:`headgate.capacity.sharing.shared_work`)."""
        shape, flow = self.shape, self.shape.flow(active)
        arrived, queue = external * seconds, waiting.astype(np.float64)
        could, work = arrived.copy(), np.zeros(shape.tasks)
        returning, done, made, rows, rest = (np.zeros(shape.tasks) for _ in range(5))
        pending, moved = (np.zeros(len(shape.stream_target)) for _ in range(2))
        omega_of = np.zeros(shape.owners)
        lost = np.zeros(max(len(self.sharing.pools), shape.tasks))
        shared_work(flow, self.arrays, _matrix(speeds), arrived, queue, seconds, lost, work)
        load = (arrived, queue, pending, returning, work, counts_queues)
        results = (could, done, made, moved, omega_of, rows, rest)
        omega = float(serve(flow, load, np.zeros(shape.tasks), NO_NETWORK, results))
        return Served(omega, omega_of, queue)

    def latencies(self, active: Ints, external: Floats, speeds: Speeds) -> Floats:
        """Mean seconds of a row through each dataflow, by the longest way; infinite where pools do not keep up."""
        sojourns = self.sojourns(active, external, speeds)
        home, shape = self.fragment_of, self.shape
        results = np.zeros(shape.owners)
        for owner, members in enumerate(shape.members):
            mine = {int(home[task]) for task in members}
            until: dict[int, float] = {}
            for g in sorted(mine):
                until[g] = sojourns[g] + max((until[b] for b in self.before[g] if b in mine), default=0.0)
            results[owner] = max(until[int(home[task])] for task in shape.outputs_of(owner))
        return results

    def sojourns(self, active: Ints, external: Floats, speeds: Speeds) -> list[float]:
        """Mean seconds from a row's arrival before a fragment to the end of its epoch, by fragment."""
        costs = self.rates(active, external) * self.shape.cost_of(active)
        limits = self.limits(active, external, speeds)
        seconds = [inf] * len(self.loads)
        for pool, cores in enumerate(speeds):
            mine = np.flatnonzero(self.pool_of == pool).tolist()
            if not len(cores):
                continue
            epochs = [self._epoch(g, costs, limits, cores) for g in mine]
            if limits.demand[pool] < limits.usable[pool] and (limits.work[mine] < limits.cap[mine]).all():
                took = epoch_seconds(epochs, float(cores.sum()))
                seconds_of = [sojourn_s(each, epoch.trigger_s) for each, epoch in zip(took, epochs, strict=True)]
            else:
                seconds_of = self._saturated(mine, epochs, limits, pool, len(cores))
            for g, value in zip(mine, seconds_of, strict=True):
                seconds[g] = value
        return seconds

    def _epoch(self, g: int, costs: Floats, limits: PoolLimits, cores: Floats) -> EpochWork:
        load, first = self.loads[g], int(self.arrays[6][g])
        power, stage_of = 0.0, self.arrays[5]
        works = [float(costs[stage_of == first + number].sum()) for number in range(len(load.stages))]
        total = sum(works)
        if total > 0:
            power = total / sum(
                each / stage_power(stage.partitions or 0, cores) for each, stage in zip(works, load.stages, strict=True)
            )
        started = sum(partitions_of(load, len(cores))) * load.task_s
        return EpochWork(float(limits.work[g]), started, power or float(cores.sum()), load.fixed_s, load.trigger_s)

    def _saturated(
        self, mine: list[int], epochs: list[EpochWork], limits: PoolLimits, pool: int, cores: int
    ) -> list[float]:
        """Beside backlogged fragments only those that ask for less than their share have an end."""
        asked = np.minimum(limits.work[mine], limits.cap[mine])
        weights = np.array([self.loads[g].weight for g in mine])
        shares = water_filling(float(limits.usable[pool]), asked, weights)
        every = float(self.sharing.pools[pool].epoch_s)
        short = shares < limits.work[mine] - 1e-9
        level = float((shares / weights)[short].max()) if short.any() else float(limits.usable[pool])
        heavy = [(share, self.loads[g]) for share, g, late in zip(shares, mine, short, strict=True) if late]
        longest = max((share * every / max(partitions_of(load, cores)) for share, load in heavy), default=0.0)
        results = []
        for place, epoch in enumerate(epochs):
            interval = max(every, epoch.trigger_s)
            work = epoch.work * interval + epoch.started
            took = saturated_epoch_s(overhead_s(self.loads[mine[place]], cores), work, max(level, 1e-9), longest)
            results.append(inf if short[place] else sojourn_s(took, interval))
        return results


def _matrix(speeds: Speeds) -> tuple[Floats, Ints]:
    """Speeds by pool in rows, and how many there are."""
    count = np.array([len(each) for each in speeds], dtype=np.int64)
    matrix = np.zeros((len(speeds), max(int(count.max(initial=0)), 1)))
    for row, each in enumerate(speeds):
        matrix[row, : len(each)] = each
    return matrix, count
