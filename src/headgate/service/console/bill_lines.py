"""A bill that opens: what a dataflow pays for each of its tasks, and with whom it shares that task.

The lines of a dataflow add up to its amount on the bill, to the last unit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from headgate.billing.attribution import apportion
from headgate.billing.journal import UsageRecord, read_usage
from headgate.errors import unknown
from headgate.service.bill import UNIT, bill
from headgate.sharing.running import RunningSet
from headgate.store.entries import SnapshotPublished
from headgate.store.journal import Journal

__all__ = ["BillLine", "BillLines", "bill_lines"]

ACQUIRED = "its part of acquired machines"
GONE = "tasks of plan snapshots that are no longer kept"

TasksByUsers = Mapping[tuple[str, ...], list[str]]
"""The tasks that the same dataflows use, by name."""


@dataclass(frozen=True, slots=True)
class BillLine:
    """What a dataflow pays for a task, while it shared it with the same others."""

    task: str
    sharers: tuple[str, ...]
    """All that paid for it, this dataflow included."""

    hours: float
    cost: str
    """This dataflow's part, as a decimal."""


@dataclass(frozen=True, slots=True)
class BillLines:
    """All lines of a dataflow; they add up to ``total``, which is the dataflow's amount on the bill."""

    dataflow: str
    owner: str
    currency: str
    lines: tuple[BillLine, ...]
    total: str
    alone: str


def bill_lines(state: Path, journal: Journal, dataflow: str, running_at: Callable[[int], RunningSet]) -> BillLines:
    """Open the bill of a dataflow; ``running_at`` gives what ran at a snapshot that is still kept."""
    whole = bill(state)
    mine = next((line for line in whole.lines if line.dataflow == dataflow), None)
    if mine is None:
        names = [str(line.dataflow) for line in whole.lines]
        raise unknown("UNKNOWN_DATAFLOW", f"no dataflow '{dataflow}' is on the bill", dataflow, names)
    exact, hours = _exact(read_usage(state), dataflow, _Names(journal, running_at))
    rest = Fraction(mine.cost) - sum(exact.values(), Fraction())
    if abs(rest) > Fraction(UNIT):  # machines of a provider are charged by use, and not by task
        exact[ACQUIRED, (dataflow,)], hours[ACQUIRED, (dataflow,)] = rest, mine.hours
    keys = {f"{task}\0{chr(0).join(sharers)}": (task, sharers) for task, sharers in exact}
    amounts = apportion({key: exact[pair] for key, pair in keys.items()}, UNIT, mine.cost) if exact else {}
    lines = [BillLine(*keys[key], float(hours[keys[key]]), str(amounts[key])) for key in keys]
    lines.sort(key=lambda line: (-Decimal(line.cost), line.task))
    return BillLines(dataflow, str(mine.owner), whole.currency, tuple(lines), str(mine.cost), str(mine.alone))


Amounts = dict[tuple[str, tuple[str, ...]], Fraction]


def _exact(record: UsageRecord, dataflow: str, names: _Names) -> tuple[Amounts, Amounts]:
    """What a dataflow pays, and for how many hours, by task and sharers (see :func:`headgate.billing.attribute`)."""
    costs: Amounts = defaultdict(Fraction)
    hours: Amounts = defaultdict(Fraction)
    for interval, position in zip(record.intervals, record.positions, strict=True):
        for vm in interval.vms:
            active = [worker for worker in vm.workers if worker.is_active]
            for worker in active:
                used = [users for users in worker.tasks.values() if users]
                per_task = Fraction(vm.price_per_h) * interval.hours / len(active) / len(used)
                shared = defaultdict[tuple[str, ...], int](int)
                for users in used:
                    if dataflow in users:
                        shared[tuple(map(str, users))] += 1
                for group, count in shared.items():
                    for task in names.of(position, group, count, dataflow):
                        costs[task, group] += per_task / len(group)
                        hours[task, group] += interval.hours
    return costs, hours


class _Names:
    """The names of tasks at a position of the journal, by who used them."""

    def __init__(self, journal: Journal, running_at: Callable[[int], RunningSet]) -> None:
        placed = [(position, one.number) for position, one in journal.read(SnapshotPublished)]
        self._positions = [position for position, _ in placed]
        self._numbers = [number for _, number in placed]
        self._running_at = running_at
        self._known: dict[int, TasksByUsers] = {}

    def of(self, position: int, group: tuple[str, ...], count: int, dataflow: str) -> list[str]:
        """The tasks of a dataflow that a group used; if they are not known any more, a phrase for all of them."""
        before = bisect_left(self._positions, position) - 1
        if before < 0:
            return [GONE] * count
        number = self._numbers[before]
        if number not in self._known:
            self._known[number] = _tasks_by_users(self._running_at(number))
        # Two owners may use one name; the bill tells them apart, and a snapshot has the plain one.
        plain = tuple(sorted(name.partition(" (")[0] for name in group))
        own = dataflow.partition(" (")[0]
        names = [name.partition("\0")[2] for name in self._known[number].get(plain, ()) if name.startswith(f"{own}\0")]
        return names if len(names) == count else [GONE] * count


def _tasks_by_users(running: RunningSet) -> TasksByUsers:
    tasks: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for used in running.tasks.values():
        group = tuple(sorted(map(str, used.users)))
        tasks[group] += [f"{name}\0{task}" for name, task in used.users.items()]
    return tasks
