"""Proportional billing: the cost of an interval, split over the dataflows that used its machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from headgate.billing.usage import Interval
from headgate.model.names import DataflowName

__all__ = ["CENT", "Attribution", "apportion", "attribute", "rounded_money"]

CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Attribution:
    """The exact share of each dataflow, and the idle cost."""

    shares: Mapping[DataflowName, Fraction]
    idle: Fraction

    @property
    def total(self) -> Fraction:
        return sum(self.shares.values(), self.idle)

    def plus(self, shares: Mapping[DataflowName, Fraction], idle: Fraction) -> Attribution:
        """With what else is paid."""
        names = {**self.shares, **shares}
        both = {name: self.shares.get(name, Fraction()) + shares.get(name, Fraction()) for name in names}
        return Attribution(both, self.idle + idle)


def attribute(intervals: Iterable[Interval]) -> Attribution:
    """Split what machines cost over the dataflows that used them.

    In an interval, the cost ``gamma`` of a machine is split equally over its active workers ``r*``, a worker's over its
    active tasks, a task's over the dataflows that use it::

        c_k = gamma / (r* . |W(w)| . |D(t_k)|)

    A machine without an active worker is idle: nobody pays for it. Shares are exact fractions; they add up to the cost
    of the machines whatever is rounded later.

    >>> from datetime import datetime
    >>> from headgate.billing.usage import VmUsage, WorkerUsage
    >>> vms = (
    ...     VmUsage("v1", Decimal("0.60"), (WorkerUsage({"A": ("D1", "D3"), "B": ("D1",)}), WorkerUsage({}))),
    ...     VmUsage("v2", Decimal("0.60")),
    ... )
    >>> found = attribute([Interval(datetime(2026, 1, 1), 60, vms)])
    >>> found.shares["D1"], found.shares["D3"], found.idle
    (Fraction(3, 400), Fraction(1, 400), Fraction(1, 100))

    Reference: Chaturvedi, Tyagi, Simmhan, "Cost-effective sharing of streaming dataflows for IoT applications", IEEE
    Transactions on Cloud Computing, 2019, section 6.
    """
    shares: dict[DataflowName, Fraction] = {}
    idle = Fraction()
    for interval in intervals:
        for vm in interval.vms:
            cost = Fraction(vm.price_per_h) * interval.hours
            active = [worker for worker in vm.workers if worker.is_active]
            if not active:
                idle += cost
            for worker in active:
                used = {task: users for task, users in worker.tasks.items() if users}
                per_task = cost / len(active) / len(used)
                for users in used.values():
                    for name in users:
                        shares[name] = shares.get(name, Fraction()) + per_task / len(users)
    return Attribution(shares, idle)


def apportion(
    shares: Mapping[str, Fraction], unit: Decimal = CENT, billed: Decimal | None = None
) -> dict[str, Decimal]:
    """Round amounts so that they add up to their rounded sum (largest remainder, or Hamilton's method).

    Parts of an amount that was rounded already add up to that: ``billed``, which is within a unit of their sum.

    Every amount is rounded down to whole units; the units that are then missing go one each to those who lost most,
    and between equals to the first by name, so that the outcome is always the same.

    >>> apportion({"a": Fraction(1, 3), "b": Fraction(1, 3), "c": Fraction(1, 3)})
    {'a': Decimal('0.34'), 'b': Decimal('0.33'), 'c': Decimal('0.33')}
    """
    whole = Fraction(unit)
    amount = sum(shares.values(), Fraction()) if billed is None else Fraction(billed)
    total = round(amount / whole)  # exactly half goes to the even neighbour
    floors = {name: share // whole for name, share in shares.items()}
    missing = total - sum(floors.values())
    by_loss = sorted(shares, key=lambda name: (floors[name] * whole - shares[name], name))
    for name in by_loss[:missing]:
        floors[name] += 1
    return {name: floors[name] * unit for name in shares}


def rounded_money(amount: Fraction, unit: Decimal = CENT) -> Decimal:
    """An amount in whole units, by itself."""
    return (round(amount / Fraction(unit)) * unit).quantize(unit, ROUND_HALF_EVEN)
