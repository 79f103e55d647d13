"""A deployment on shared pools while it is decided: made from a window, changed, and read off as actions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    ReleaseMachine,
    SetPartitions,
    SwitchAlternate,
)
from headgate.adaptation.policy import Rejected
from headgate.adaptation.pooled.worth import Worth
from headgate.adaptation.window import Window
from headgate.capacity.epochs import usable_line
from headgate.capacity.pooled import PooledGraph, PoolLimits
from headgate.capacity.power import partitions_for, stage_power
from headgate.capacity.sharing import Sharing
from headgate.errors import BadValue
from headgate.model.arrays import Bools, Floats, Ints
from headgate.model.names import Signature

__all__ = ["Draft"]

WORTHWHILE = 1.05
"""Partitions are only changed for at least this much more power."""


@dataclass(slots=True, eq=False)
class Draft:
    """What is to be; machines that are there are rows, as in the window, and new ones are counted by pool and class."""

    seen: Window
    graph: PooledGraph
    asked: Floats
    """Messages per second from outside, and of what waits as much as is to be worked off each second; by task."""

    active: Ints
    kept: Bools
    """By machine."""

    new: Ints
    """Pools × classes."""

    worth: Worth
    partitions: dict[str, int] = field(default_factory=dict)
    """That change, by the first task of a stage."""

    sentences: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)

    @classmethod
    def of(cls, seen: Window, catch_up_s: float) -> Draft:
        """What is there now, with a backlog to be worked off in so many seconds."""
        if seen.sharing is None:
            raise BadValue("a window without fragments and pools", "one of a platform on which tasks share cores")
        graph = PooledGraph(seen.shape, seen.sharing)
        pools, classes = len(seen.sharing.pools), len(seen.terms.cloud.classes)
        return cls(
            seen,
            graph,
            seen.external + seen.waiting / max(catch_up_s, seen.terms.interval_s),
            seen.active.copy(),
            np.ones(len(seen.machines.names), dtype=np.bool_),
            np.zeros((pools, classes), dtype=np.int64),
            Worth.of(seen.terms, seen.shape),
        )

    def tried(self) -> Draft:
        """A copy on which changes can be tried."""
        return replace(
            self,
            active=self.active.copy(),
            kept=self.kept.copy(),
            new=self.new.copy(),
            partitions=dict(self.partitions),
            sentences=[],
            figures={},
            rejected=[],
        )

    # What may be done.

    @property
    def may_acquire(self) -> bool:
        return "acquire_machine" in self.seen.capabilities.kinds

    @property
    def may_release(self) -> bool:
        return "release_machine" in self.seen.capabilities.kinds

    def signature(self, task: int) -> Signature:
        return self.seen.terms.signatures[self.seen.shape.names[task]]

    def ways(self, task: int) -> list[int]:
        """The alternates that a task may run: the active one, and those of known cost that it can be switched to."""
        names, accepts = self.seen.shape.alternates[task], self.seen.capabilities.accepts
        known = np.isfinite(self.seen.shape.cost_s[task])
        return [
            way
            for way, name in enumerate(names)
            if way == self.seen.active[task] or (known[way] and accepts(SwitchAlternate(self.signature(task), name)))
        ]

    # Machines.

    @property
    def pool_of(self) -> Ints:
        """The pool of each machine: that which has cores of it."""
        return np.asarray(self.seen.machines.cores.argmax(axis=1), dtype=np.int64)

    @property
    def prices(self) -> Floats:
        """Of an hour, by class."""
        return np.array([float(each.price_per_h) for each in self.seen.terms.cloud.classes])

    @property
    def usual(self) -> float:
        """What machines do of what they are rated for; 1 while nothing is known."""
        machines = self.seen.machines
        works = machines.starts_s <= 0
        if not works.any():
            return 1.0
        rated = np.array([each.core_power for each in self.seen.terms.cloud.classes])[machines.kind[works]]
        return float((machines.speed[works] / rated).mean())

    @property
    def due(self) -> Bools:
        """Machines whose paid time ends before the next decision."""
        return np.asarray(self.seen.machines.left_s < self.seen.terms.interval_s)

    def speeds(self, planned: bool = True, in_s: float | None = None, until_s: float = 0.0) -> list[Floats]:
        """Power of every core by pool, with what is ``planned``; of an interval only the part for which they work."""
        machines, classes, usual = self.seen.machines, self.seen.terms.cloud.classes, self.usual
        speed = machines.speed if in_s is None else machines.speed * _works(machines.starts_s, in_s, until_s)
        stays = self.kept if planned else machines.starts_s <= 0
        stays = stays & (speed > 0)
        result = []
        for pool in range(len(self.graph.sharing.pools)):
            parts = [np.repeat(speed[stays], machines.cores[stays, pool])]
            for kind, each in enumerate(classes):
                works = 1.0 if in_s is None else float(_works(np.array([each.boot_s]), in_s, until_s)[0])
                count = int(self.new[pool, kind]) * each.cores if planned and works > 0 else 0
                parts.append(np.full(count, each.core_power * usual * works))
            result.append(np.concatenate(parts))
        return result

    def machines_of(self, pool: int) -> int:
        """How many machines a pool will have."""
        return int((self.kept & (self.pool_of == pool)).sum() + self.new[pool].sum())

    @property
    def cores(self) -> int:
        """How many cores there will be."""
        classes = np.array([each.cores for each in self.seen.terms.cloud.classes], dtype=np.int64)
        return int(self.seen.machines.cores[self.kept].sum() + (self.new @ classes).sum())

    @property
    def cost_per_h(self) -> float:
        """Of the machines that there will be."""
        prices = self.prices
        return float(prices[self.seen.machines.kind[self.kept]].sum() + (self.new @ prices).sum())

    def gain(self, pool: int, cores: float, power: float) -> float:
        """What a machine with so many cores, of so much power together, adds to what a pool can use."""
        of = self.graph.sharing.pools[pool]
        loads = [load for load in self.graph.loads if load.pool == of.name]
        per_power, per_core, _ = usable_line(loads, of.epoch_s, of.used)
        return per_power * power - per_core * cores

    # What comes of it.

    def limits(self, external: Floats | None = None) -> PoolLimits:
        """With all machines at work."""
        return self.graph.limits(self.active, self.asked if external is None else external, self.speeds())

    def keeps_up(self, margin: float = 0.0) -> bool:
        return self.limits().keeps_up(margin)

    def latencies(self, waiting: bool = False) -> dict[str, float]:
        """Predicted mean seconds by dataflow, of what comes; or with what waits to be worked off too."""
        external = self.asked if waiting else self.seen.external
        values = self.graph.latencies(self.active, external, self.speeds()).tolist()
        names = list(self.seen.terms.owners)
        if len(values) != len(names):
            return {str(self.seen.terms.dataflow.name): max(values)}
        return dict(zip(names, values, strict=True))

    def late(self, latencies: dict[str, float], share: float = 1.0) -> str | None:
        """A dataflow that is predicted to exceed so much of its T_max; none if there is none."""
        terms = self.seen.terms
        for name, latency in latencies.items():
            most = terms.levels.get(name, terms.level).latency_max_s
            if most is not None and latency > share * most:
                return name
        return None

    # Partitions.

    def fit_partitions(self) -> None:
        """Cut stages into as many parts as use the planned cores best, where that can be changed while they run."""
        speeds, rates = self.speeds(), self.graph.rates(self.active, self.asked)
        costs = rates * self.seen.shape.cost_of(self.active)
        place = {str(name): task for task, name in enumerate(self.seen.shape.names)}
        pools = {pool.name: number for number, pool in enumerate(self.graph.sharing.pools)}
        for load in self.graph.sharing.fragments:
            cores, every = speeds[pools[load.pool]], self.graph.sharing.pools[pools[load.pool]].epoch_s
            for stage in load.stages:
                place_of = place[stage.tasks[0]]
                if stage.partitions is None or not len(cores) or not self.may_resize(place_of, stage.partitions):
                    continue
                work = sum(costs[place[task]] for task in stage.tasks) * max(every, load.trigger_s, 1e-3)
                wanted = partitions_for(cores, float(work), load.task_s)
                gain = stage_power(wanted, cores) / stage_power(stage.partitions, cores)
                if wanted != stage.partitions and gain > WORTHWHILE:
                    self.partitions[stage.tasks[0]] = wanted
        if self.partitions:
            self.graph = PooledGraph(self.graph.shape, _resized(self.graph.sharing, self.partitions))

    def _cut_for_those_there(self) -> dict[str, int]:
        """Partitions for the machines that work or start: whether those that are asked for come is not known yet."""
        graph = PooledGraph(self.graph.shape, self.seen.sharing) if self.seen.sharing is not None else self.graph
        draft = replace(self, new=np.zeros_like(self.new), partitions={}, graph=graph)
        draft.fit_partitions()
        return draft.partitions

    def may_resize(self, task: int, partitions: int) -> bool:
        return self.seen.capabilities.accepts(SetPartitions(self.signature(task), partitions))

    # Actions.

    def settle(self) -> None:
        """Leave out what the budget does not allow, and costlier alternates until there are the machines for them."""
        self._within_limits()
        self._at_least_one()
        if self.new.any() and self.partitions:
            self.partitions = self._cut_for_those_there()
        if self.partitions:
            parts = ", ".join(f"'{task}' {count}" for task, count in list(self.partitions.items())[:4])
            self.sentences.append(f"partitions that use the cores better: {parts}")
        ready = self.speeds(planned=False)
        waits = self.new.any() or bool((self.seen.machines.starts_s[self.kept] > 0).any())
        if not waits or self.graph.limits(self.active, self.asked, ready).keeps_up():
            return
        shape, now = self.seen.shape, self.seen.active
        costlier = np.flatnonzero(shape.cost_of(self.active) > shape.cost_of(now))
        if len(costlier):
            self.active[costlier] = now[costlier]
            self.sentences.append("costlier alternates wait until the machines for them have started")

    def _at_least_one(self) -> None:
        """Every pool has a machine, even while nothing comes: of those that are there, otherwise the cheapest."""
        for pool in range(len(self.new)):
            if self.machines_of(pool) > 0:
                continue
            rows = np.flatnonzero(self.pool_of == pool)
            if len(rows):
                self.kept[rows[np.argmin(self.prices[self.seen.machines.kind[rows]])]] = True
            elif self.may_acquire:
                self.new[pool, int(np.argmin(self.prices))] = 1
                self.sentences.append(f"pool '{self.graph.sharing.pools[pool].name}' has no machine: the cheapest")

    def _within_limits(self) -> None:
        level = self.seen.terms.level
        budget = None if level.budget_per_h is None else float(level.budget_per_h) * (1 + 1e-9)
        over = False
        while self.new.any():
            too_much = (budget is not None and self.cost_per_h > budget) or (
                level.processors_max is not None and self.cores > level.processors_max
            )
            if not too_much:
                break
            over = True
            pool, kind = (int(each[0]) for each in np.nonzero(self.new))
            self.new[pool, kind] -= 1
        if over:
            limit = f"the budget of {budget:g} an hour" if budget is not None else f"{level.processors_max} processors"
            self.rejected.append(Rejected("more machines", f"{limit} does not allow them"))
            self.sentences.append(f"{limit} does not allow all machines that are needed")

    def actions(self) -> tuple[Action, ...]:
        """What changes, in an order in which it can be done: first what adds, last what takes away."""
        seen, classes, pools = self.seen, self.seen.terms.cloud.classes, self.graph.sharing.pools
        actions: list[Action] = []
        for pool, kind in np.argwhere(self.new > 0).tolist():
            name = pools[pool].name if len(pools) > 1 else None
            actions += [AcquireMachine(classes[kind].name, pool=name)] * int(self.new[pool, kind])
        for task in np.flatnonzero(self.active != seen.active).tolist():
            actions.append(SwitchAlternate(self.signature(task), seen.shape.alternates[task][int(self.active[task])]))
        places = {str(name): task for task, name in enumerate(seen.shape.names)}
        actions += [SetPartitions(self.signature(places[task]), n) for task, n in sorted(self.partitions.items())]
        actions += [ReleaseMachine(seen.machines.names[row]) for row in np.flatnonzero(~self.kept).tolist()]
        return tuple(each for each in actions if seen.capabilities.accepts(each))


def _works(starts_s: Floats, begin_s: float, end_s: float) -> Floats:
    """The share of a span for which machines work that start in so many seconds."""
    return np.clip((end_s - np.maximum(starts_s, begin_s)) / max(end_s - begin_s, 1e-9), 0.0, 1.0)


def _resized(sharing: Sharing, partitions: dict[str, int]) -> Sharing:
    fragments = tuple(
        replace(
            load,
            stages=tuple(
                replace(stage, partitions=partitions.get(stage.tasks[0], stage.partitions)) for stage in load.stages
            ),
        )
        for load in sharing.fragments
    )
    return Sharing(fragments, sharing.pools)
