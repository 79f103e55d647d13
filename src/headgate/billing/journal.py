"""The usage of a running engine, kept in its journal: who used which machines from when to when.

An entry is appended whenever what runs has changed, and one when the engine stops. Beside the journal, a small file is
renewed all the time and says how long usage is known to have gone on: after a crash it ends there, and the time until
the next start is nobody's. Tasks with the same users are counted together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from headgate.billing.lifecycle import PaidMachine
from headgate.billing.usage import Customer, Interval, VmUsage, WorkerUsage
from headgate.errors import InputError
from headgate.model.names import DataflowName, Owner
from headgate.store.entries import MachineNoted, UsageChanged
from headgate.store.files import write_text
from headgate.store.journal import Journal, read_journal

__all__ = ["BilledMachine", "Usage", "UsageJournal", "UsageRecord", "read_usage"]

Users = tuple[DataflowName, ...]


@dataclass(frozen=True, slots=True)
class BilledMachine:
    """A machine that is paid for: its price, and the number of tasks for each set of users."""

    name: str
    price_per_h: Decimal
    tasks: Mapping[Users, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage from a moment until the next change."""

    machines: tuple[BilledMachine, ...]
    customers: tuple[Customer, ...]
    currency: str = "USD"


class UsageJournal:
    """The usage in the journal of one engine; times are whole seconds since 1970."""

    def __init__(self, journal: Journal) -> None:
        """The usage of a killed engine is closed."""
        self._journal, self._until = journal, _until_file(journal.path.parent)
        self._open: dict[str, Any] | None = None
        last, until = journal.latest(UsageChanged), _until(journal.path.parent)
        self._machines = {entry.key: entry for entry in journal.every(MachineNoted)}
        self._let_go(until)
        if last is not None and last.usage is not None:
            self._append(max(last.at_s, until), None)

    def changed(self, at_s: int, usage: Usage) -> None:
        """From now on this is used; nothing is written if it was used before."""
        facts = _facts(usage)
        if facts != self._open:
            self._append(at_s, facts)
        self.goes_on(at_s)

    def held(self, machines: Iterable[PaidMachine]) -> None:
        """These machines are held, or were; nothing is written of those that are as they were."""
        entries = {entry.key: entry for entry in map(_noted, machines)}
        changed = [entry for key, entry in entries.items() if self._machines.get(key) != entry]
        if changed:
            self._journal.append(*changed)
            self._machines |= {entry.key: entry for entry in changed}

    def _let_go(self, until: int) -> None:
        """Nobody watches machines from now on: those that are not gone were held until now."""
        open_ones = [one for one in self._machines.values() if one.gone is None and one.known_until is None]
        closed = [replace(one, known_until=max(float(until), one.acquired)) for one in open_ones]
        if closed:
            self._journal.append(*closed)
            self._machines |= {entry.key: entry for entry in closed}

    def goes_on(self, at_s: int) -> None:
        """Usage has gone on until now."""
        write_text(self._until, f"{at_s}\n")

    def ended(self, at_s: int) -> None:
        """Nothing is used from now on."""
        self._let_go(at_s)
        if self._open is not None:
            self._append(at_s, None)

    def _append(self, at_s: int, facts: dict[str, Any] | None) -> None:
        self._journal.append(UsageChanged(at_s, facts))
        self._open = facts


def _facts(usage: Usage) -> dict[str, Any]:
    return {
        "currency": usage.currency,
        "machines": [
            {
                "name": machine.name,
                "price_per_h": str(machine.price_per_h),
                "tasks": [[sorted(users), count] for users, count in sorted(machine.tasks.items())],
            }
            for machine in usage.machines
        ],
        "customers": [[customer.dataflow, customer.owner, customer.tasks] for customer in usage.customers],
    }


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """The content of a journal, from which bills are computed."""

    intervals: tuple[Interval, ...]
    customers: tuple[Customer, ...]
    currency: str = "USD"
    price_per_h: Decimal = Decimal("0.10")
    """What the last machine costs."""

    machines: tuple[PaidMachine, ...] = ()
    """Those of a provider, gone ones too."""

    until: float = 0.0
    """Until when usage is known."""

    positions: tuple[int, ...] = ()
    """Where in the journal each interval begins; the snapshot before it is what ran."""


def read_usage(state: Path) -> UsageRecord:
    """Read the usage in a state directory, also while an engine runs; raises :class:`InputError` if there is none."""
    journal = state / "journal"
    placed = list(read_journal(journal, UsageChanged)) if journal.exists() else []
    entries = [entry for _, entry in placed]
    if not entries:
        raise InputError("NOTHING_TO_BILL", f"{state} has no record of usage: no engine has run there yet")
    if entries[-1].usage is not None:
        entries.append(UsageChanged(max(entries[-1].at_s, _until(state))))
    known = _Customers()
    intervals, positions = [], []
    for (position, _), (entry, after) in zip(placed, pairwise(entries), strict=False):
        if entry.usage is None:
            continue
        # Who has run for less than a second is on the bill too, with nothing to pay.
        names = known.named(entry.usage["customers"])
        if (length_s := after.at_s - entry.at_s) > 0:
            vms = tuple(_vm(machine, names) for machine in entry.usage["machines"])
            intervals.append(Interval(datetime.fromtimestamp(entry.at_s, UTC), length_s, vms))
            positions.append(position)
    paid = [entry.usage for entry in entries if entry.usage and entry.usage["machines"]]
    price = Decimal(paid[-1]["machines"][0]["price_per_h"]) if paid else Decimal("0.10")
    currency = paid[-1]["currency"] if paid else "USD"
    until = float(entries[-1].at_s)
    noted = {entry.key: entry for _, entry in read_journal(journal, MachineNoted)}
    held = tuple(map(_held, noted.values()))
    return UsageRecord(tuple(intervals), known.all, currency, price, held, until, tuple(positions))


def _noted(machine: PaidMachine) -> MachineNoted:
    facts = {name: getattr(machine, name) for name in ("name", "vm_class", "cores", "acquired", "gone", "known_until")}
    return MachineNoted(price_per_h=str(machine.price_per_h), **facts)


def _held(entry: MachineNoted) -> PaidMachine:
    price, gone = Decimal(entry.price_per_h), entry.gone
    return PaidMachine(entry.name, entry.vm_class, entry.cores, price, entry.acquired, gone, entry.known_until)


class _Customers:
    """Dataflows as bills name them: the owner is added where two owners use one name."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], Customer] = {}

    @property
    def all(self) -> tuple[Customer, ...]:
        return tuple(self._by_key.values())

    def named(self, listed: Iterable[list[Any]]) -> dict[str, DataflowName]:
        names = {}
        for dataflow, owner, tasks in listed:
            known = self._by_key.get((dataflow, owner))
            taken = any(name == dataflow for name, _ in self._by_key)
            name = known.dataflow if known else DataflowName(f"{dataflow} ({owner})" if taken else dataflow)
            most = max(tasks, known.tasks if known else 0)
            self._by_key[dataflow, owner] = Customer(name, Owner(owner), most)
            names[dataflow] = name
        return names


def _vm(machine: Mapping[str, Any], names: Mapping[str, DataflowName]) -> VmUsage:
    tasks: dict[str, Users] = {}
    for users, count in machine["tasks"]:
        tasks |= {f"{len(tasks) + n}": tuple(names[user] for user in users) for n in range(count)}
    workers = (WorkerUsage(tasks),) if tasks else ()
    return VmUsage(machine["name"], Decimal(machine["price_per_h"]), workers)


def _until_file(state: Path) -> Path:
    return state / "used_until"


def _until(state: Path) -> int:
    try:
        return int(_until_file(state).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0
