"""The machines of a running engine: what there is, and machines by hand."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from headgate.machines.provider import AcquiredMachine, Provider
from headgate.model.cluster.vm_class import VmClass
from headgate.model.table import Table, TableColumn
from headgate.store.journal import Journal

__all__ = ["EngineScaling", "ScaledEngine", "machine_facts", "machines_facts", "machines_table"]


class EngineScaling(Protocol):
    """How much an engine has to run on (:class:`headgate.runtime.engine.scaling.Scaling`)."""

    longest_epoch_s: float | None

    @property
    def provider(self) -> Provider | None: ...
    @property
    def executors(self) -> Any: ...
    def check(self, acquired: Sequence[str], released: Sequence[str]) -> None: ...
    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine: ...


class ScaledEngine(Protocol):
    """An engine whose machines and executors are changed while it runs."""

    @property
    def scaling(self) -> EngineScaling: ...
    @property
    def journal(self) -> Journal: ...
    def release(self, machine: str) -> None: ...
    def scale(self, executors: int) -> None: ...


COLUMNS = (
    TableColumn("name", "machine"),
    TableColumn("vm_class", "class"),
    TableColumn("state", "state"),
    TableColumn("cores", "cores"),
    TableColumn("startup_s", "start-up", "s", ".1f"),
    TableColumn("price_per_h", "price", "USD/h"),
    TableColumn("cost", "cost so far"),
    TableColumn("decision", "decision"),
)


def machines_facts(engine: ScaledEngine, everything: bool = False) -> dict[str, Any]:
    """The machines of an engine's provider, with those that are gone if so asked; and its executors."""
    now, provider = time.time(), engine.scaling.provider
    machines = () if provider is None else provider.list(gone=everything)
    executors = [{"id": each.id, "host": each.host, "cores": each.cores} for each in engine.scaling.executors.list()]
    return {
        "provider": provider is not None,
        "machines": [
            {**machine_facts(machine, now), "executors": sum(each["host"] == machine.host for each in executors)}
            for machine in machines
        ],
        "executors": executors,
        "wanted_executors": engine.scaling.executors.target,
        "classes": [] if provider is None else [_class_facts(each) for each in provider.classes()],
    }


def _class_facts(kind: VmClass) -> dict[str, Any]:
    return {
        "name": kind.name,
        "cores": kind.cores,
        "core_power": kind.core_power,
        "price_per_h": str(kind.price_per_h),
        "memory_bytes": kind.memory_bytes,
    }


def machine_facts(machine: AcquiredMachine, now: float) -> dict[str, Any]:
    """One machine."""
    return {
        "name": machine.name,
        "vm_class": machine.vm_class.name,
        "state": machine.state.value,
        "cores": machine.vm_class.cores,
        "price_per_h": str(machine.vm_class.price_per_h),
        "acquired_at": machine.acquired_at,
        "startup_s": None if machine.startup_s is None else round(machine.startup_s, 3),
        "gone_at": machine.gone_at,
        "cost": f"{machine.cost(now):.6f}",
        "decision": _decision(machine.key),
    }


def _decision(key: str | None) -> int | None:
    """The decision that has asked for a machine, from its key."""
    parts = (key or "").split("/")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else None


def machines_table(facts: Mapping[str, Any]) -> Table:
    """Machines, and how many executors are on them."""
    cores = sum(executor["cores"] for executor in facts["executors"])
    notes = [f"{len(facts['executors'])} executors with {cores} cores take work."]
    if not facts["provider"]:
        notes.append("This engine acquires no machines; run it with --cluster, after 'headgate cluster up'.")
    return Table("Machines", COLUMNS, tuple(facts["machines"]), tuple(notes))
