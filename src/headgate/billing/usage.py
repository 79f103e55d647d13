"""Usage of an interval: machines, their workers, and the tasks on them by dataflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from headgate.model.names import DataflowName, Owner

__all__ = ["Customer", "Interval", "Prices", "VmUsage", "WorkerUsage"]


@dataclass(frozen=True, slots=True)
class Prices:
    """Price and capacity of a machine; enough to compute the cost of a dataflow without sharing."""

    price_per_h: Decimal = Decimal("0.10")
    workers_per_vm: int = 1
    tasks_per_worker: int = 8
    currency: str = "USD"

    def vms(self, tasks: int) -> int:
        """The machines that a dataflow of so many tasks needs when it shares none.

        >>> Prices(workers_per_vm=2).vms(17)
        2
        """
        workers = -(-tasks // self.tasks_per_worker)
        return -(-workers // self.workers_per_vm)

    def alone_per_h(self, tasks: int) -> Decimal:
        """What such a dataflow costs an hour on machines of its own."""
        return self.vms(tasks) * self.price_per_h


@dataclass(frozen=True, slots=True)
class WorkerUsage:
    """A worker's active tasks, each with the dataflows that use it; paused tasks and proxies are not among them."""

    tasks: Mapping[str, tuple[DataflowName, ...]]

    @property
    def is_active(self) -> bool:
        return any(self.tasks.values())


@dataclass(frozen=True, slots=True)
class VmUsage:
    """A machine that was paid for, and its workers."""

    name: str
    price_per_h: Decimal
    workers: tuple[WorkerUsage, ...] = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of billing (delta in SHARE) in which nothing changed."""

    start: datetime
    length_s: int
    vms: tuple[VmUsage, ...]

    @property
    def end(self) -> datetime:
        return self.start + timedelta(seconds=self.length_s)

    def within(self, since: float, until: float) -> Interval | None:
        """The part of it between two moments, in whole seconds; none if there is none."""
        begin = self.start.timestamp()
        first, last = max(int(since), int(begin)), min(int(until), int(begin) + self.length_s)
        if last <= first:
            return None
        return replace(self, start=self.start + timedelta(seconds=first - int(begin)), length_s=last - first)

    @property
    def hours(self) -> Fraction:
        return Fraction(self.length_s, 3_600)

    @property
    def cost(self) -> Fraction:
        """What the machines cost, used or not."""
        return sum((Fraction(vm.price_per_h) * self.hours for vm in self.vms), Fraction())


@dataclass(frozen=True, slots=True)
class Customer:
    """A dataflow as the bill knows it: whose it is, and of how many tasks."""

    dataflow: DataflowName
    owner: Owner
    tasks: int
