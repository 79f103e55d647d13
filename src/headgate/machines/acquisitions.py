"""The record of acquisitions: every machine that was asked for, when it was ready, when it was gone, what it costs.

An append-only file of JSON lines. It is what machines are known from, what is billed, and what the simulator learns
start-up times from; it outlives the machines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.machines.processes import Process
from headgate.machines.provider import AcquiredMachine, MachineState
from headgate.model.cluster.vm_class import VmClass
from headgate.store.files import append_line

__all__ = ["Acquisitions", "as_dict", "vm_class_of"]


class Acquisitions:
    """The record in a file; only who holds the cluster's lock writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def machines(self) -> dict[str, AcquiredMachine]:
        """All machines there ever were, by name, in the order in which they were asked for."""
        machines: dict[str, AcquiredMachine] = {}
        for event in self._events():
            name, at = event["machine"], event["at"]
            if event["event"] == "acquired":
                machines[name] = AcquiredMachine(
                    name, vm_class_of(event["vm_class"]), event["host"], MachineState.STARTING, at, key=event.get("key")
                )
            elif name in machines:
                machines[name] = _after(machines[name], event["event"], at)
        return machines

    def processes(self) -> dict[str, Process]:
        """The process of each machine that was started."""
        return {
            event["machine"]: Process(**event["process"]) for event in self._events() if event["event"] == "started"
        }

    def changed_at(self, name: str) -> float:
        """When a machine last became what it is."""
        return max((event["at"] for event in self._events() if event["machine"] == name), default=0.0)

    def acquired(self, name: str, vm_class: VmClass, host: str, at: float, key: str | None = None) -> None:
        event = {"event": "acquired", "machine": name, "at": at, "host": host, "vm_class": as_dict(vm_class)}
        self._append(event if key is None else {**event, "key": key})

    def of_key(self, key: str) -> AcquiredMachine | None:
        """The machine that was asked for with a key."""
        return next((machine for machine in self.machines().values() if machine.key == key), None)

    def started(self, name: str, process: Process, at: float) -> None:
        self._append({"event": "started", "machine": name, "at": at, "process": process.as_dict()})

    def became(self, name: str, state: MachineState, at: float) -> None:
        self._append({"event": state.value, "machine": name, "at": at})

    def _events(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # half a line, of a process that was killed as it wrote
                continue

    def _append(self, event: dict[str, Any]) -> None:
        append_line(self.path, json.dumps(event), "machine")


def _after(machine: AcquiredMachine, event: str, at: float) -> AcquiredMachine:
    if event == "started":
        return machine
    state = MachineState(event)
    if state is MachineState.READY:
        return replace(machine, state=state, ready_at=at)
    return replace(machine, state=state, gone_at=at if state in (MachineState.RELEASED, MachineState.LOST) else None)


def as_dict(vm_class: VmClass) -> dict[str, Any]:
    """A VM class as JSON has it."""
    return {**asdict(vm_class), "price_per_h": str(vm_class.price_per_h)}


def vm_class_of(stored: dict[str, Any]) -> VmClass:
    """A VM class from JSON."""
    return VmClass(**{**stored, "price_per_h": Decimal(stored["price_per_h"])})
