"""The machines of all replications: acquired, working, released, paid."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.model.arrays import Floats, Ints
from headgate.model.cluster.vm_class import Cloud
from headgate.simulation.random_streams import INTERRUPTION, machine_trace, uniform_numbers
from headgate.simulation.variability import TracePool

__all__ = ["Booked", "HeldMachine", "MachinePool"]


class Booked(NamedTuple):
    """A machine in the books; its cost is computed on demand."""

    replication: int
    number: int
    kind: int
    acquired_s: float
    until_s: float
    interrupted: bool

    def held(self, cloud: Cloud) -> HeldMachine:
        kind, billing = cloud.classes[self.kind], cloud.billing
        periods = billing.periods(self.until_s - self.acquired_s)
        cost = kind.price_per_h * periods * Decimal(str(billing.period_s)) / 3_600
        name = f"vm-{self.number}"
        return HeldMachine(
            self.replication, name, kind.name, self.acquired_s, self.until_s, periods, cost, self.interrupted
        )


@dataclass(frozen=True, slots=True)
class HeldMachine:
    """A machine that was paid for: from when to when, and how many billing periods."""

    replication: int
    machine: str
    vm_class: str
    acquired_s: float
    released_s: float
    periods: int
    cost: Decimal
    interrupted: bool = False


class MachinePool:
    """Machines in arrays: a row for each replication, a column (slot) for each machine that is still paid for.

    ``power`` is 0 in slots that are free. A machine's number counts those that its replication has acquired; its
    trace and its interruption depend on seed, replication and number alone.
    """

    def __init__(self, cloud: Cloud, pool: TracePool, replications: int, tasks: int, seed: int) -> None:
        self.cloud, self.seed = cloud, seed
        self._pool_shape = pool.speed.shape
        self.replications = replications
        self.slots: Ints = np.zeros(replications, dtype=np.int64)
        self.issued: Ints = np.zeros(replications, dtype=np.int64)
        self.closed_cost: Floats = np.zeros(replications)
        self.closed: list[Booked] = []
        self._interrupted: set[tuple[int, int]] = set()
        room = 4
        self.number: Ints = np.zeros((replications, room), dtype=np.int64)
        self.kind: Ints = np.full((replications, room), -1, dtype=np.int64)
        self.trace: Ints = np.zeros((replications, room), dtype=np.int64)
        self.offset: Ints = np.zeros((replications, room), dtype=np.int64)
        self.power, self.bandwidth, self.price = (np.zeros((replications, room)) for _ in range(3))
        self.acquired, self.ready = (np.zeros((replications, room)) for _ in range(2))
        self.stopped, self.paid_to = (np.full((replications, room), np.inf) for _ in range(2))
        self.placed: npt.NDArray[np.int32] = np.zeros((replications, room, tasks), dtype=np.int32)
        self._cores = np.array([each.cores for each in cloud.classes], dtype=np.int64)
        self._power = np.array([each.core_power for each in cloud.classes])
        self._bandwidth = np.array([each.bandwidth_mbit_per_s for each in cloud.classes])
        self._boot_s = np.array([each.boot_s for each in cloud.classes])
        self._shut_down_s = np.array([each.shut_down_s for each in cloud.classes])
        self._interruptions = np.array([each.interruptions_per_h for each in cloud.classes])
        hours = cloud.billing.period_s / 3_600
        self._price = np.array([float(each.price_per_h) * hours for each in cloud.classes])

    @property
    def room(self) -> int:
        return self.power.shape[1]

    def acquire(self, rows: Ints, kinds: Ints, now_s: float, booted: bool = False) -> Ints:
        """Start a machine of each of some classes in each of some replications; returns their slots by row."""
        rows, kinds = np.asarray(rows, dtype=np.int64), np.asarray(kinds, dtype=np.int64)
        slots = np.empty((len(rows), len(kinds)), dtype=np.int64)
        for place, row in enumerate(rows):
            free = np.flatnonzero(self.power[row, : self.slots[row]] == 0.0)[: len(kinds)]
            more = len(kinds) - len(free)
            slots[place, : len(free)] = free
            slots[place, len(free) :] = self.slots[row] + np.arange(more)
            self.slots[row] += more
        self._grow(int(self.slots.max()))
        at = (rows[:, None], slots)
        number = self.issued[rows, None] + np.arange(len(kinds))
        self.issued[rows] += len(kinds)
        self.number[at], self.kind[at] = number, kinds
        self.trace[at], self.offset[at] = machine_trace(self.seed, rows[:, None], number, self._pool_shape)
        self.power[at], self.bandwidth[at], self.price[at] = (
            self._power[kinds],
            self._bandwidth[kinds],
            self._price[kinds],
        )
        self.acquired[at] = now_s
        ready = np.broadcast_to(now_s + (0.0 if booted else self._boot_s[kinds]), slots.shape)
        self.ready[at] = ready
        stopped = np.full(slots.shape, np.inf)
        if self._interruptions[kinds].any():
            lot = uniform_numbers(self.seed, INTERRUPTION, rows[:, None], number)
            with np.errstate(divide="ignore"):
                stopped = ready - np.log1p(-lot) * 3_600 / self._interruptions[kinds]
            # A share of a billing period that the provider takes back is paid to the moment.
            self._interrupted |= {
                (int(row), int(n))
                for row, line in zip(rows, number[np.isfinite(stopped)].reshape(len(rows), -1), strict=True)
                for n in line
            }
        self.stopped[at] = self.paid_to[at] = stopped
        self.placed[at] = 0
        return slots

    def _grow(self, needed: int) -> None:
        if needed <= self.room:
            return
        room = max(needed, 2 * self.room)
        for name in ("number", "kind", "trace", "offset", "power", "bandwidth", "price", "acquired", "ready"):
            old = getattr(self, name)
            new = np.full((self.replications, room), -1 if name == "kind" else 0, dtype=old.dtype)
            new[:, : old.shape[1]] = old
            setattr(self, name, new)
        for name in ("stopped", "paid_to"):
            old = getattr(self, name)
            new = np.full((self.replications, room), np.inf)
            new[:, : old.shape[1]] = old
            setattr(self, name, new)
        placed = np.zeros((self.replications, room, self.placed.shape[2]), dtype=np.int32)
        placed[:, : self.placed.shape[1]] = self.placed
        self.placed = placed

    def release(self, row: int, slot: int, now_s: float) -> None:
        """Release a machine; it is paid until it has shut down, at least for one period."""
        self.placed[row, slot] = 0
        self.stopped[row, slot] = now_s
        # Otherwise machines could be drawn for nothing until a fast one came.
        shut_s = now_s + self._shut_down_s[self.kind[row, slot]]
        self.paid_to[row, slot] = max(shut_s, self.acquired[row, slot] + 1.0)
        self._interrupted.discard((row, int(self.number[row, slot])))

    def settle(self, now_s: float) -> list[tuple[int, int]]:
        """Close the books of machines that are paid to the end; returns (replication, number) of those taken back."""
        if not (self.stopped <= now_s).any():
            return []
        over = np.argwhere((self.stopped <= now_s) & (self.power > 0)).tolist()
        closed = [booked for row, slot in over if (booked := self.close(row, slot, now_s)) is not None]
        return [(booked.replication, booked.number) for booked in closed if booked.interrupted]

    def close(self, row: int, slot: int, now_s: float) -> Booked | None:
        """Take the tasks off a machine that has stopped, and close its books if it is paid to the end."""
        self.placed[row, slot] = 0
        if self.paid_to[row, slot] > now_s:
            return None
        booked = self._book(row, slot, now_s)
        self.closed.append(booked)
        held_s = booked.until_s - booked.acquired_s
        self.closed_cost[row] += self.cloud.billing.periods(held_s) * self.price[row, slot]
        self.power[row, slot] = 0.0
        self.stopped[row, slot] = self.paid_to[row, slot] = np.inf
        self._interrupted.discard((row, booked.number))
        return booked

    def _book(self, row: int, slot: int, now_s: float) -> Booked:
        acquired, until = float(self.acquired[row, slot]), float(min(self.paid_to[row, slot], now_s))
        number = int(self.number[row, slot])
        interrupted = (row, number) in self._interrupted and bool(self.stopped[row, slot] <= now_s)
        return Booked(row, number, int(self.kind[row, slot]), acquired, until, interrupted)

    def booked(self, now_s: float) -> tuple[Booked, ...]:
        """All machines paid for so far; those still held as if released now."""
        rows, slots = np.nonzero(self.power > 0)
        order = np.lexsort((self.number[rows, slots], rows))
        at = rows[order], slots[order]
        columns = [at[0], *(each[at] for each in (self.number, self.kind, self.acquired))]
        until, gone = np.minimum(self.paid_to[at], now_s), (self.stopped[at] <= now_s).tolist()
        if any(gone):
            pairs = zip(columns[0].tolist(), columns[1].tolist(), gone, strict=True)
            gone = [over and (row, number) in self._interrupted for row, number, over in pairs]
        still = map(Booked._make, zip(*(each.tolist() for each in (*columns, until)), gone, strict=True))
        return tuple(sorted((*self.closed, *still)))

    def kernel_arguments(self) -> tuple[Any, ...]:
        """The arrays that the compiled loop reads and changes."""
        rated = (self.slots, self.power, self.bandwidth, self.price)
        times = (self.acquired, self.ready, self.stopped, self.paid_to)
        return (*rated, *times, self.trace, self.offset, self.closed_cost, self.placed)

    def working(self, row: int, now_s: float) -> Ints:
        """Slots of the machines of a replication that were not released."""
        count = int(self.slots[row])
        return np.flatnonzero((self.power[row, :count] > 0) & (self.stopped[row, :count] > now_s))

    def free_cores(self, row: int) -> Ints:
        """Cores that no task has, by slot."""
        count = int(self.slots[row])
        kinds = np.maximum(self.kind[row, :count], 0)
        free: Ints = self._cores[kinds] - self.placed[row, :count].sum(axis=1)
        return np.where(self.power[row, :count] > 0, free, 0)

    def slot_of(self, row: int, name: str, now_s: float) -> int | None:
        """The slot of a machine that works or starts, by its name."""
        if not name.startswith("vm-") or not name[3:].isdecimal():
            return None
        working = self.working(row, now_s)
        slots = working[self.number[row, working] == int(name[3:])]
        return int(slots[0]) if len(slots) else None
