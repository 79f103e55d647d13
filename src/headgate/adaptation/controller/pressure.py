"""What a window asks of each pool, and what the pool can give: D and U."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.adaptation.window import Window
from headgate.capacity.epochs import usable_power
from headgate.model.arrays import Bools, Floats, Ints
from headgate.model.capacity import CoreShare, Pool

__all__ = ["Pressure", "pool_of", "pressure_of", "tasks_work"]


@dataclass(frozen=True, slots=True)
class Pressure:
    """Reference cores, over all pools."""

    demand: float
    """For all that comes (D)."""

    usable: float
    """Of machines that work (U)."""

    coming: float
    """Usable when those that start are ready."""

    backlog: float
    """Core-seconds that wait."""

    @property
    def is_short(self) -> bool:
        """Whether more comes than can be done."""
        return self.demand >= self.usable


def tasks_work(seen: Window, active: Ints | None = None, catch_up_s: float | None = None) -> Floats:
    """Reference cores that each task needs for all that comes, with given alternates or those that are active.

    With ``catch_up_s`` also for what waits, to be done within that time.
    """
    ways = seen.active if active is None else active
    external = seen.external if catch_up_s is None else seen.external + seen.waiting / catch_up_s
    rates = seen.shape.achievable(external, seen.shape.out_of(ways))
    return np.asarray(rates * seen.shape.cost_of(ways))


def pool_of(seen: Window, place: int, *, starting: bool = False, without: Bools | None = None) -> Pool:
    """A pool with the machines that work, and those that start if so wanted."""
    machines, known = seen.machines, seen.sharing
    counts = machines.cores[:, place]
    takes = counts > 0 if starting else (counts > 0) & (machines.starts_s <= 0)
    if without is not None:
        takes &= ~without
    rows = np.flatnonzero(takes).tolist()
    shares = tuple(CoreShare(machines.names[row], int(counts[row]), float(machines.speed[row])) for row in rows)
    name = seen.capabilities.pools[place]
    same = next((pool for pool in known.pools if pool.name == name), None) if known is not None else None
    return Pool(name, shares, 0.0 if same is None else same.epoch_s, None if same is None else same.used)


def usable(seen: Window, *, starting: bool = False, without: Bools | None = None) -> float:
    """Reference cores that rows can have, of all pools; of some machines less if so wanted."""
    total = 0.0
    for place, name in enumerate(seen.capabilities.pools):
        pool = pool_of(seen, place, starting=starting, without=without)
        known = () if seen.sharing is None else seen.sharing.fragments
        loads = [load for load in known if load.pool == name and load.fixed_s > 0]
        total += usable_power(pool, loads, pool.epoch_s) if loads else pool.power
    return total


def pressure_of(seen: Window) -> Pressure:
    """Demand against what can be had, and what waits."""
    ways = seen.active
    waiting = seen.shape.achievable(seen.waiting, seen.shape.out_of(ways), feedback=False)
    backlog = float((waiting * seen.shape.cost_of(ways)).sum())
    return Pressure(float(tasks_work(seen).sum()), usable(seen), usable(seen, starting=True), backlog)
