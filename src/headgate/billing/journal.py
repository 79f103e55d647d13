"""The usage of a running engine, kept in a file: who used which machines from when to when.

A line is written whenever what runs has changed, and one when the engine stops. Beside it, a small file is renewed all
the time and says how long usage is known to have gone on: after a crash it ends there, and the time until the next
start is nobody's. Tasks with the same users are one entry, so a line is as long as there are different sets of users.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from headgate.billing.usage import Customer, Interval, VmUsage, WorkerUsage
from headgate.errors import InputError
from headgate.model.names import DataflowName, Owner
from headgate.store.files import append_line, damaged, write_text

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
    """The journal in a folder, written by one engine; times are whole seconds since 1970."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._lines, self._until = folder / "usage.jsonl", folder / "until"
        self._open: dict[str, Any] | None = None
        self._mend()

    def changed(self, at_s: int, usage: Usage) -> None:
        """From now on this is used; nothing is written if it was used before."""
        facts = _facts(usage)
        if facts != self._open:
            self._append({"at_s": at_s, **facts})
            self._open = facts
        self.goes_on(at_s)

    def goes_on(self, at_s: int) -> None:
        """Usage has gone on until now."""
        write_text(self._until, f"{at_s}\n")

    def ended(self, at_s: int) -> None:
        """Nothing is used from now on."""
        if self._open is not None:
            self._append({"at_s": at_s})
            self._open = None

    def _append(self, line: Mapping[str, Any]) -> None:
        append_line(self._lines, json.dumps(line, ensure_ascii=False), "usage")

    def _mend(self) -> None:
        """Close the usage of a killed engine, and cut off an incomplete line."""
        if not self._lines.exists():
            return
        text = self._lines.read_bytes()
        whole = text.rpartition(b"\n")
        if whole[2]:
            os.truncate(self._lines, len(whole[0]) + len(whole[1]))
        last = _parsed(self._lines)[-1:]
        if last and "machines" in last[0]:
            self._append({"at_s": max(last[0]["at_s"], _until(self._until))})


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


def read_usage(folder: Path) -> UsageRecord:
    """Read a journal, also while an engine writes it; raises :class:`InputError` where there is none."""
    lines = _parsed(folder / "usage.jsonl")
    if not lines:
        raise InputError("NOTHING_TO_BILL", f"{folder.parent} has no record of usage: no engine has run there yet")
    if "machines" in lines[-1]:
        lines.append({"at_s": max(lines[-1]["at_s"], _until(folder / "until"))})
    known = _Customers()
    intervals = []
    for line, after in pairwise(lines):
        if "machines" not in line:
            continue
        # Who has run for less than a second is on the bill too, with nothing to pay.
        names = known.named(line["customers"])
        if (length_s := after["at_s"] - line["at_s"]) > 0:
            vms = tuple(_vm(machine, names) for machine in line["machines"])
            intervals.append(Interval(datetime.fromtimestamp(line["at_s"], UTC), length_s, vms))
    paid = [line for line in lines if line.get("machines")]
    price = Decimal(paid[-1]["machines"][0]["price_per_h"]) if paid else Decimal("0.10")
    currency = paid[-1]["currency"] if paid else "USD"
    return UsageRecord(tuple(intervals), known.all, currency, price)


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


def _parsed(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a journal, without one that is still being written."""
    try:
        text = path.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.rpartition("\n")[0].splitlines() if line]
    except FileNotFoundError:
        return []
    except ValueError:
        raise damaged(path) from None


def _until(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0
