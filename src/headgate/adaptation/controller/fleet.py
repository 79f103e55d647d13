"""Watches a provider's machines: those that are lost, start for too long, or belong to nobody."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.adaptation.controller.records import recorded_decisions
from headgate.errors import HeadgateError
from headgate.machines.provider import AcquiredMachine, MachineState, Provider
from headgate.store.decision_entries import DecisionMade
from headgate.store.journal import Journal

__all__ = ["FleetWatch", "Seen"]

PATIENCE_S, BOOTS = 120.0, 3.0
"""A machine that is not ready after that, or after so many times its usual start, is given back."""

STRAY_S = 3_600.0
"""How long a machine of ours that no decision wants is left alone."""

REFUSED_S, REFUSED_MOST_S = 30.0, 900.0
"""How long a class is not asked for after a refusal; twice as long after each further one, up to the second."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at the machines has shown."""

    machines: tuple[AcquiredMachine, ...] = ()
    """Those that are not gone."""

    lost: tuple[str, ...] = ()
    """The classes of machines that have ended by themselves since the last look."""


@dataclass(slots=True)
class FleetWatch:
    """Looks at machines now and then. What it does, it does again after a restart: it keeps no record of its own."""

    provider: Provider
    journal: Journal
    engine: str
    refused: dict[str, float] = field(default_factory=dict)
    """Until when each class counts as not available."""

    _refusals: dict[str, int] = field(default_factory=dict)
    _alive: dict[str, str] = field(default_factory=dict)
    """The class of each machine that was there at the last look."""

    def look(self, now: float) -> Seen:
        """What is there; machines that start for too long and strays are given back."""
        every = self.provider.list(gone=True)
        gone = {machine.name: machine.state for machine in every if machine.is_gone}
        lost = [name for name in self._alive if gone.get(name) is MachineState.LOST]
        classes = tuple(self._alive[name] for name in lost)
        there = tuple(machine for machine in every if not machine.is_gone)
        self._alive = {machine.name: machine.vm_class.name for machine in there}
        for machine in there:
            if machine.state is MachineState.READY:
                self._refusals.pop(machine.vm_class.name, None)
            if self._is_late(machine, now):
                self.was_refused(machine.vm_class.name, now)
                self._release(machine)
            elif self._is_stray(machine, now):
                self._release(machine)
        return Seen(there, classes)

    def was_refused(self, vm_class: str, now: float) -> None:
        """The provider did not give a machine of a class."""
        count = self._refusals.get(vm_class, 0)
        self._refusals[vm_class] = count + 1
        self.refused[vm_class] = now + min(REFUSED_S * 2**count, REFUSED_MOST_S)

    def strays(self, machines: tuple[AcquiredMachine, ...]) -> list[AcquiredMachine]:
        """Machines with a key of ours that no decision has."""
        return [machine for machine in machines if self._is_unwanted(machine)]

    def _is_late(self, machine: AcquiredMachine, now: float) -> bool:
        if machine.state is not MachineState.STARTING or not self._is_ours(machine):
            return False
        return now - machine.acquired_at > max(PATIENCE_S, BOOTS * machine.vm_class.boot_s)

    def _is_stray(self, machine: AcquiredMachine, now: float) -> bool:
        waits = machine.state is MachineState.READY and now - machine.acquired_at > STRAY_S
        return waits and self._is_unwanted(machine)

    def _is_ours(self, machine: AcquiredMachine) -> bool:
        return machine.key is not None and machine.key.startswith(f"{self.engine}/")

    def _is_unwanted(self, machine: AcquiredMachine) -> bool:
        if not self._is_ours(machine) or machine.key is None:
            return False
        number = machine.key.split("/")[-2]
        if not number.isdigit() or self.journal.latest(DecisionMade, number) is not None:
            return not number.isdigit()
        oldest = next((record.number for record in recorded_decisions(self.journal)), 1)
        return int(number) >= oldest  # older ones were known once, and the journal has been compacted since

    def _release(self, machine: AcquiredMachine) -> None:
        try:
            self.provider.release(machine.name)
        except HeadgateError:
            return  # it is still there at the next look, and asked for again
