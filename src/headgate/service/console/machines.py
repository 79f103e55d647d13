"""Machines and what runs on them: price, speed and use of each, and the fragments of their pool."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from headgate.model.cluster.machine_observations import MachineRow
from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.service.console.bottleneck import busy_share
from headgate.service.console.hourly import MachinePrice
from headgate.service.console.recent import Recent

__all__ = ["FragmentFacts", "MachineFacts", "MachinesView", "machines_view"]


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """A machine, and how busy it was."""

    name: str
    vm_class: str | None
    state: str
    cores: int
    speed: float | None
    busy: float | None
    workers: int
    pool: str
    price_per_h: float | None
    asked: float | None
    ready: float | None
    busy_series: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class FragmentFacts:
    """What one streaming query runs, and where its time goes: parts of a batch in seconds, on average."""

    id: str
    name: str
    kind: str
    tasks: int
    rows_per_s: float
    waiting: int | None
    busy: float
    batch_s: float | None
    planning_s: float | None
    scheduling_s: float | None
    execution_s: float | None
    commit_s: float | None


@dataclass(frozen=True, slots=True)
class MachinesView:
    """Machines and fragments in the last interval."""

    at: float | None
    times: tuple[float, ...]
    machines: tuple[MachineFacts, ...]
    fragments: tuple[FragmentFacts, ...]
    cost_per_h: float
    currency: str


def machines_view(recent: Recent, prices: tuple[list[MachinePrice], str]) -> MachinesView:
    """What the last observation says; a machine without a price of its own has the one that the bill counts."""
    seen = recent.last()
    total = float(sum((price.price_per_h for price in prices[0]), Decimal()))
    if seen is None:
        return MachinesView(None, (), (), (), total, prices[1])
    only = total if len(seen.machines) == 1 else None
    return MachinesView(
        seen.ended,
        tuple(recent.times(120)),
        tuple(_machine(machine, recent, only) for machine in seen.machines),
        tuple(_fragment(fragment, seen) for fragment in sorted(seen.fragments, key=lambda one: -one.batch_s)),
        total,
        prices[1],
    )


def _machine(machine: MachineRow, recent: Recent, billed: float | None) -> MachineFacts:
    price = billed if machine.price_per_h is None else float(machine.price_per_h)
    return MachineFacts(
        machine.name,
        machine.vm_class,
        machine.state.value,
        machine.cores,
        machine.speed,
        machine.busy,
        machine.workers,
        machine.pool,
        price,
        machine.asked,
        machine.ready,
        tuple(recent.machine(machine.name)),
    )


def _fragment(part: FragmentObservation, seen: Observation) -> FragmentFacts:
    names = {task.task: task.name for task in seen.tasks}
    name = next((names[task] for task in part.tasks if task in names), part.id)

    def mean(total_s: float) -> float | None:
        return total_s / part.batches if part.batches else None

    return FragmentFacts(
        part.id,
        name,
        part.kind,
        len(part.tasks),
        part.rows_in / seen.seconds,
        part.rows_behind,
        busy_share(part, seen),
        mean(part.batch_s),
        mean(part.planning_s),
        mean(part.scheduling_s),
        mean(part.execution_s),
        mean(part.commit_s),
    )
