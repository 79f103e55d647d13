"""Bills: the cost of each dataflow and owner for a period, and its cost without sharing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from headgate.billing.attribution import CENT, apportion, attribute, rounded_money
from headgate.billing.lifecycle import MachineCharges
from headgate.billing.usage import Customer, Interval, Prices
from headgate.errors import InputError
from headgate.model.names import DataflowName, Owner

__all__ = ["Bill", "Line", "OwnerLine", "draw_up"]

_IDLE = "\x00idle"  # sorts before every name, and is none


@dataclass(frozen=True, slots=True)
class Line:
    """What a dataflow pays, and what it would have paid alone."""

    dataflow: DataflowName
    owner: Owner
    tasks: int
    hours: Fraction
    """How long it ran."""

    cost: Decimal
    alone: Decimal
    unused: Decimal = Decimal()
    """The part of the cost that was paid and not used: the rest of the billing periods of machines that went."""

    @property
    def saved(self) -> Decimal:
        return self.alone - self.cost


@dataclass(frozen=True, slots=True)
class OwnerLine:
    """What an owner pays for all dataflows together."""

    owner: Owner
    dataflows: int
    cost: Decimal
    alone: Decimal

    @property
    def saved(self) -> Decimal:
        return self.alone - self.cost


@dataclass(frozen=True, slots=True)
class Bill:
    """The bills of a period. The lines and ``idle`` add up to ``total``, the cluster's cost, to the last cent."""

    start: datetime
    end: datetime
    currency: str
    lines: tuple[Line, ...]
    idle: Decimal
    """The cost of idle machines, which is in no line."""

    total: Decimal

    @property
    def unused(self) -> Decimal:
        """What was paid and not used, of all lines."""
        return sum((line.unused for line in self.lines), Decimal())

    @property
    def owners(self) -> tuple[OwnerLine, ...]:
        """The lines by owner."""
        by_owner: dict[Owner, list[Line]] = {}
        for line in self.lines:
            by_owner.setdefault(line.owner, []).append(line)
        return tuple(
            OwnerLine(
                owner, len(lines), sum((x.cost for x in lines), Decimal()), sum((x.alone for x in lines), Decimal())
            )
            for owner, lines in sorted(by_owner.items())
        )


def draw_up(
    intervals: Sequence[Interval],
    customers: Iterable[Customer],
    prices: Prices,
    unit: Decimal = CENT,
    machines: MachineCharges | None = None,
) -> Bill:
    """Draw up the bills of some intervals; raises :class:`InputError` for a dataflow that no customer stands for.

    "Alone" is what the dataflow's own machines would have cost for as long as it ran: its tasks packed as the prices
    say, on machines of its own. What was paid for ``machines`` of a provider comes on top.
    """
    charges = machines or MachineCharges()
    if not intervals:
        raise InputError("NOTHING_TO_BILL", "no interval to draw up a bill for; the period holds no usage")
    known = {customer.dataflow: customer for customer in customers}
    attribution = attribute(intervals).plus(charges.shares, charges.idle)
    strangers = sorted(set(attribution.shares) - set(known))
    if strangers:
        message = f"usage of dataflow '{strangers[0]}', which is not among those to be billed"
        raise InputError("UNKNOWN_DATAFLOW", message, {"dataflow": strangers[0]})
    hours = _hours(intervals)
    # Who has used nothing for a whole second is on the bill, with nothing to pay.
    shares = {**dict.fromkeys(known, Fraction()), **attribution.shares}
    owed: dict[str, Fraction] = {_IDLE: attribution.idle} | {str(name): share for name, share in shares.items()}
    amounts = apportion(owed, unit)
    lines = tuple(
        Line(
            name,
            known[name].owner,
            known[name].tasks,
            hours.get(name, Fraction()),
            amounts[name],
            rounded_money(
                Fraction(prices.alone_per_h(known[name].tasks)) * hours.get(name, Fraction())
                + charges.alone.get(name, Fraction()),
                unit,
            ),
            rounded_money(charges.unused.get(name, Fraction()), unit),
        )
        for name in sorted(shares)
    )
    start, end = min(interval.start for interval in intervals), max(interval.end for interval in intervals)
    return Bill(start, end, prices.currency, lines, amounts[_IDLE], sum(amounts.values(), Decimal()))


def _hours(intervals: Iterable[Interval]) -> dict[DataflowName, Fraction]:
    hours: dict[DataflowName, Fraction] = {}
    for interval in intervals:
        names = {
            name for vm in interval.vms for worker in vm.workers for users in worker.tasks.values() for name in users
        }
        for name in names:
            hours[name] = hours.get(name, Fraction()) + interval.hours
    return hours
