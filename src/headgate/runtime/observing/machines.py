"""Machines as columns: what a provider knows of them, and what their executors did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from headgate.machines.provider import AcquiredMachine
from headgate.model.cluster.machine_observations import MachineObservations, MachineRow

__all__ = ["ExecutorLoad", "machine_columns"]


@dataclass(frozen=True, slots=True)
class ExecutorLoad:
    """An executor in an interval."""

    id: str
    host: str
    cores: int
    busy: float
    """Share of its cores' time in which they were at work, from 0 to 1."""

    speed: float | None
    """One of its cores relative to the reference core; none until it was probed."""


def machine_columns(
    executors: Iterable[ExecutorLoad],
    machines: Sequence[AcquiredMachine],
    since: float,
    price_per_h: Decimal | None = None,
) -> MachineObservations:
    """Machines of the provider in the order in which they were acquired, then hosts that it does not know.

    Machines that were gone before ``since`` are left out. ``price_per_h`` is what a host costs that no provider knows.
    """
    on: dict[str, list[ExecutorLoad]] = defaultdict(list)
    for executor in executors:
        on[executor.host].append(executor)
    kept = [machine for machine in machines if machine.gone_at is None or machine.gone_at >= since]
    rows = [_acquired(machine, [] if machine.is_gone else on.pop(machine.host, [])) for machine in kept]
    strangers = [_row(host, sum(each.cores for each in there), there, price_per_h) for host, there in on.items()]
    return MachineObservations.of([*rows, *strangers])


def _acquired(machine: AcquiredMachine, there: Sequence[ExecutorLoad]) -> MachineRow:
    kind = machine.vm_class
    return MachineRow(
        machine.name,
        kind.name,
        machine.state,
        sum(each.cores for each in there) or kind.cores,
        _mean(there, "speed"),
        _mean(there, "busy"),
        machine.acquired_at,
        machine.ready_at,
        machine.gone_at,
        kind.price_per_h,
        machine.key,
        workers=len(there),
    )


def _row(host: str, cores: int, there: Sequence[ExecutorLoad], price_per_h: Decimal | None) -> MachineRow:
    busy, speed = _mean(there, "busy"), _mean(there, "speed")
    return MachineRow(host, None, cores=cores, speed=speed, busy=busy, price_per_h=price_per_h, workers=len(there))


def _mean(there: Sequence[ExecutorLoad], name: str) -> float | None:
    """The mean over cores, of those executors where it is known."""
    known = [(each.cores, value) for each in there if (value := getattr(each, name)) is not None]
    cores = sum(count for count, _ in known)
    return sum(count * value for count, value in known) / cores if cores else None
