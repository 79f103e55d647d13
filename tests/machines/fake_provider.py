"""A provider of machines that are only lines in a file and outlive who uses it; it loses, delays, refuses at will."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from headgate.errors import HeadgateError, unknown
from headgate.machines.acquisitions import Acquisitions
from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.model.cluster.vm_class import VmClass

SMALL = machine_class("small", 1, 2**30, Decimal("0.05"), boot_s=5.0)
LARGE = machine_class("large", 4, 2**32, Decimal("0.20"), boot_s=20.0)


class FakeProvider:
    """Machines that are ready ``boot_s`` after they were asked for, and gone ``drain_s`` after their release."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        *,
        refuses: float = 0.0,
        forgets: float = 0.0,
        loses: float = 0.0,
        delays: float = 0.0,
        drain_s: float = 3.0,
        seed: int = 0,
    ) -> None:
        """The chances that a request is refused, its answer lost after it was heard, a machine lost or never ready."""
        self._record = Acquisitions(folder / "acquisitions.jsonl")
        self._clock, self._draw = clock, random.Random(seed)
        self._refuses, self._forgets, self._loses, self._delays = refuses, forgets, loses, delays
        self._drain_s = drain_s
        self._late: dict[str, float] = {}
        self.asked: list[tuple[str, str | None]] = []
        """Every request, with its key."""

    def classes(self) -> tuple[VmClass, ...]:
        return (SMALL, LARGE)

    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine:
        self.asked.append((vm_class, key))
        if self._draw.random() < self._refuses:
            raise HeadgateError("SOLD_OUT", f"no machine of class '{vm_class}' is left")
        known = None if key is None else self._record.of_key(key)
        if known is None:
            chosen = {each.name: each for each in self.classes()}[vm_class]
            number = len(self._record.machines()) + 1
            name = f"{vm_class}-{number}"
            self._record.acquired(name, chosen, f"10.0.0.{number}", self._clock(), key)
            known = self._record.machines()[name]
        if self._draw.random() < self._forgets:
            raise HeadgateError("NO_ANSWER", "the provider did not answer")
        return known

    def release(self, machine: str) -> None:
        there = {each.name: each for each in self.list()}
        if machine not in there:
            raise unknown("UNKNOWN_MACHINE", f"no machine '{machine}' runs", machine, there)
        if self._draw.random() < self._forgets:
            raise HeadgateError("NO_ANSWER", "the provider did not answer")
        if there[machine].state is not MachineState.DRAINING:
            self._record.became(machine, MachineState.DRAINING, self._clock())

    def list(self, *, gone: bool = False) -> tuple[AcquiredMachine, ...]:
        now = self._clock()
        for machine in self._record.machines().values():
            if machine.is_gone:
                continue
            since = self._record.changed_at(machine.name)
            late = self._late.setdefault(machine.name, 1e9 if self._draw.random() < self._delays else 0.0)
            if self._draw.random() < self._loses:
                self._record.became(machine.name, MachineState.LOST, now)
            elif machine.state is MachineState.STARTING and now >= since + machine.vm_class.boot_s + late:
                self._record.became(machine.name, MachineState.READY, now)
            elif machine.state is MachineState.DRAINING and now >= since + self._drain_s:
                self._record.became(machine.name, MachineState.RELEASED, now)
        machines = tuple(self._record.machines().values())
        return machines if gone else tuple(machine for machine in machines if not machine.is_gone)

    def lose(self, machine: str) -> None:
        """Let a machine end by itself."""
        self._record.became(machine, MachineState.LOST, self._clock())
