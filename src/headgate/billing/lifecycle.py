r"""What machines cost from when they were asked for until they are gone, and who pays it. Pure, in exact fractions.

A machine costs ``price / 3600`` a second from being asked for to being gone. When it goes, what its whole billing
periods cost beyond that is *paid, not used*:

.. math:: \mu_{vm} = \lceil (t_{gone} - t_{asked}) / period \rceil \cdot period \cdot price

A second of a machine is split equally over the tasks that then run, and a task over its users; what is paid and not
used is for the users of the machine's last moment. Machines without a user are idle. So lines and idle time add up to
what the machines cost, and the bills of two spans to that of both.

Reference: Kumbhare et al., DYN, Eq. 2; Chaturvedi et al., SHARE, section 6, with a pool of cores as one worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from headgate.billing.usage import Interval
from headgate.capacity.cover import cheapest_cover
from headgate.model.cluster.vm_class import BillingPeriod, VmClass
from headgate.model.names import DataflowName

__all__ = ["BEGUN_SECONDS", "MachineCharges", "PaidMachine", "charged"]

BEGUN_SECONDS = BillingPeriod(1.0)
"""Every begun second is paid."""

HOUR_S = 3_600

Tasks = Mapping[tuple[DataflowName, ...], int]
"""How many tasks each set of users has."""


@dataclass(frozen=True, slots=True)
class PaidMachine:
    """A machine that is or was held; times are seconds since 1970."""

    name: str
    vm_class: str
    cores: int
    price_per_h: Decimal
    acquired: float
    gone: float | None = None
    known_until: float | None = None
    """Until when it is known to have been held, where it is not known to be gone."""


@dataclass(slots=True)
class MachineCharges:
    """What dataflows pay for machines; what nobody pays is idle."""

    shares: dict[DataflowName, Fraction] = field(default_factory=dict)
    unused: dict[DataflowName, Fraction] = field(default_factory=dict)
    """The part of each share that was paid and not used."""

    idle: Fraction = Fraction()
    alone: dict[DataflowName, Fraction] = field(default_factory=dict)
    """What the machines would have cost that each dataflow needs for its tasks alone."""

    @property
    def total(self) -> Fraction:
        return sum(self.shares.values(), self.idle)

    def _split(self, cost: Fraction, tasks: Tasks, *, unused: bool = False) -> None:
        count = sum(tasks.values())
        if not count:
            self.idle += cost
        for users, number in tasks.items():
            for user in users:
                part = cost * number / count / len(users)
                self.shares[user] = self.shares.get(user, Fraction()) + part
                if unused:
                    self.unused[user] = self.unused.get(user, Fraction()) + part


def charged(
    machines: Sequence[PaidMachine],
    usage: Iterable[Interval],
    since: float,
    until: float,
    period: BillingPeriod = BEGUN_SECONDS,
) -> MachineCharges:
    """What machines cost from one moment to another, by who used them; ``usage`` says that, in order."""
    charges, spans = MachineCharges(), _Usage(usage)
    first, last = Fraction(since), Fraction(until)
    for machine in machines:
        held_from, held_until = Fraction(machine.acquired), Fraction(_end(machine, until))
        a_second = Fraction(machine.price_per_h) / HOUR_S
        for begins, ends, tasks in spans.between(max(held_from, first), min(held_until, last)):
            charges._split(a_second * (ends - begins), tasks)
        if machine.gone is not None and first < held_until <= last:
            held_s = held_until - held_from
            whole_s = period.periods(float(held_s)) * Fraction(period.period_s)
            charges._split(a_second * (whole_s - held_s), spans.just_before(held_until), unused=True)
    _add_alone(charges, machines, spans, first, last)
    return charges


def _end(machine: PaidMachine, now: float) -> float:
    """Until when a machine is known to have been held."""
    known = machine.gone if machine.gone is not None else machine.known_until
    return max(now if known is None else known, machine.acquired)


def _add_alone(
    charges: MachineCharges, machines: Sequence[PaidMachine], usage: _Usage, first: Fraction, last: Fraction
) -> None:
    """What each dataflow would have paid: for machines that cover its share of the cores, were it alone.

    Its tasks are to all tasks as the cores that it needs are to all cores, as in the split; at least one machine, and
    of the classes that were there the cheapest.
    """
    held = [(machine, Fraction(_end(machine, float(last)))) for machine in machines]
    edges = {first, last, *(Fraction(machine.acquired) for machine, _ in held), *(end for _, end in held)}
    moments = sorted(moment for moment in edges if first <= moment <= last)
    for begin, end in pairwise(moments):
        there = [machine for machine, gone in held if Fraction(machine.acquired) <= begin and gone >= end]
        if there:
            for begins, ends, tasks in usage.between(begin, end):
                for user in {user for users in tasks for user in users}:
                    cost = _alone_per_h(there, tasks, user) / HOUR_S * (ends - begins)
                    charges.alone[user] = charges.alone.get(user, Fraction()) + cost


def _alone_per_h(there: Sequence[PaidMachine], tasks: Tasks, user: DataflowName) -> Fraction:
    mine = sum(number for users, number in tasks.items() if user in users)
    needed = sum(machine.cores for machine in there) * mine / sum(tasks.values())
    classes = {
        (machine.vm_class, machine.cores, machine.price_per_h): VmClass(
            f"{machine.vm_class} {machine.cores} {machine.price_per_h}", machine.cores, 1.0, 1.0, machine.price_per_h
        )
        for machine in there
        if machine.price_per_h > 0
    }
    counts = cheapest_cover(list(classes.values()), needed)
    prices = {each.name: Fraction(each.price_per_h) for each in classes.values()}
    return sum((prices[name] * count for name, count in counts.items()), Fraction())


class _Usage:
    """Who used how many tasks, over time."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        self._known = [
            (Fraction(interval.start.timestamp()), Fraction(interval.end.timestamp()), _tasks(interval))
            for interval in sorted(intervals, key=lambda interval: interval.start)
        ]

    def between(self, since: Fraction, until: Fraction) -> Iterator[tuple[Fraction, Fraction, Tasks]]:
        """Spans that fill the time between two moments; nobody uses anything in those that no interval has."""
        at = since
        for begin, end, tasks in self._known:
            if end <= at or begin >= until:
                continue
            if begin > at:
                yield at, begin, {}
                at = begin
            if at < min(end, until):
                yield at, min(end, until), tasks
                at = min(end, until)
        if at < until:
            yield at, until, {}

    def just_before(self, moment: Fraction) -> Tasks:
        """Who used what as a moment came."""
        return next((tasks for begin, end, tasks in self._known if begin < moment <= end), {})


def _tasks(interval: Interval) -> Tasks:
    counts: Counter[tuple[DataflowName, ...]] = Counter()
    for vm in interval.vms:
        for worker in vm.workers:
            counts.update(users for users in worker.tasks.values() if users)
    return counts
