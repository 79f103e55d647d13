"""Carrying out a decision, a step at a time. A step can be done again after the process was killed anywhere in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.adaptation.controller.plant import ControlledCluster
from headgate.adaptation.controller.records import RecordedDecision
from headgate.adaptation.controller.steps import Acquire, AwaitReady, Publish, Release
from headgate.errors import HeadgateError, InputError
from headgate.machines.provider import AcquiredMachine, MachineState, Provider
from headgate.store.decision_entries import DecisionEnded, DecisionOutcome, StepChanged, StepState
from headgate.store.journal import Journal

__all__ = ["ATTEMPTS", "Enacting", "Refused", "key_of"]

ATTEMPTS = 3
"""How often a provider is asked for the same thing before it counts as refused."""


class Refused(NamedTuple):
    """A provider did not give a machine."""

    vm_class: str
    reason: str


def key_of(engine: str, decision: int, step: int) -> str:
    """With what a machine is asked for: asked for again, it is the same machine.

    >>> key_of("e1", 12, 0)
    'e1/12/0'
    """
    return f"{engine}/{decision}/{step}"


@dataclass(slots=True)
class Enacting:
    """A decision on its way."""

    record: RecordedDecision
    cluster: ControlledCluster
    provider: Provider | None
    journal: Journal
    engine: str
    _attempts: dict[int, int] = field(default_factory=dict)

    def advance(self, now: float) -> Refused | None:
        """Do the next step, or ask whether it is done; never waits."""
        place = self.record.next_step
        if place is None:
            self._end(now, DecisionOutcome.DONE)
            return None
        step = self.record.steps[place]
        try:
            match step:
                case Publish():
                    self._publish(now, place, step)
                case Acquire():
                    self._acquire(now, place, step)
                case AwaitReady():
                    self._await(now, place, step)
                case Release():
                    self._release(now, place, step)
        except HeadgateError as error:
            return self._failed(now, place, error)
        if self.record.next_step is None:
            self._end(now, DecisionOutcome.DONE)
        return None

    @property
    def is_waiting(self) -> bool:
        """Whether all that it does now is to wait for machines."""
        place = self.record.next_step
        return place is not None and isinstance(self.record.steps[place], AwaitReady)

    def abandon(self, now: float, reason: str) -> None:
        """Do no more of it. Machines that it has asked for stay, and the next decision sees them."""
        self._end(now, DecisionOutcome.ABANDONED, reason)

    def _publish(self, now: float, place: int, step: Publish) -> None:
        done: list[StepChanged] = []

        def entries(snapshot: int) -> list[StepChanged]:
            done.append(self._entry(now, place, StepState.DONE, f"snapshot {snapshot}"))
            return done

        made = self.record.made
        sentences = "; ".join(made.guarded["sentences"])
        self.cluster.publish(step.actions, f"policy {made.policy}", f"decision {made.number}: {sentences}", entries)
        self.record = self.record.with_step(done[0])

    def _acquire(self, now: float, place: int, step: Acquire) -> None:
        self._begun(now, place)
        key = key_of(self.engine, self.record.number, place)
        machine = self._provider().acquire(step.vm_class, key)
        self._put(now, place, StepState.DONE, machine.name)

    def _await(self, now: float, place: int, step: AwaitReady) -> None:
        machines = {machine.name: machine for machine in self._provider().list(gone=True)}
        awaited = [machines.get(self.record.result(each)) for each in step.steps]
        lost = [machine for machine in awaited if machine is None or not _comes(machine)]
        if lost:
            names = ", ".join("one that nobody knows" if machine is None else machine.name for machine in lost)
            raise InputError("MACHINE_NOT_READY", f"a machine was gone before it could be used: {names}")
        if all(machine is not None and machine.state is MachineState.READY for machine in awaited):
            self._put(now, place, StepState.DONE, ", ".join(self.record.result(each) for each in step.steps))

    def _release(self, now: float, place: int, step: Release) -> None:
        self._begun(now, place)
        there = {machine.name: machine.state for machine in self._provider().list()}
        if there.get(step.machine, MachineState.DRAINING) is not MachineState.DRAINING:
            self._provider().release(step.machine)
        self._put(now, place, StepState.DONE, step.machine)

    def _failed(self, now: float, place: int, error: HeadgateError) -> Refused | None:
        """Try again, or give the decision up. Answers whether a provider has refused a machine."""
        step = self.record.steps[place]
        self._attempts[place] = self._attempts.get(place, 0) + 1
        if isinstance(step, Acquire | Release) and self._attempts[place] < ATTEMPTS:
            return None
        self._put(now, place, StepState.FAILED, error.message)
        self.abandon(now, error.message)
        return Refused(step.vm_class, error.message) if isinstance(step, Acquire) else None

    def _begun(self, now: float, place: int) -> None:
        if place not in self.record.progress:
            self._put(now, place, StepState.BEGUN)

    def _put(self, now: float, place: int, state: StepState, result: str = "") -> None:
        entry = self._entry(now, place, state, result)
        self.journal.append(entry)
        self.record = self.record.with_step(entry)

    def _entry(self, now: float, place: int, state: StepState, result: str) -> StepChanged:
        return StepChanged(self.record.number, place, state, now, result)

    def _end(self, now: float, outcome: DecisionOutcome, reason: str = "") -> None:
        ended = DecisionEnded(self.record.number, now, outcome, reason)
        self.journal.append(ended)
        self.record = RecordedDecision(self.record.made, self.record.progress, ended)

    def _provider(self) -> Provider:
        if self.provider is None:
            raise InputError("NO_PROVIDER", "this engine has no provider of machines any more")
        return self.provider


def _comes(machine: AcquiredMachine) -> bool:
    return machine.state in (MachineState.STARTING, MachineState.READY)
