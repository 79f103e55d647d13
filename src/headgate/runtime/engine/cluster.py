"""Spark as a cluster that policies observe and act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    AssignCores,
    ReleaseMachine,
    SetPartitions,
    SwitchAlternate,
)
from headgate.errors import HeadgateError, InputError
from headgate.machines.provider import AcquiredMachine
from headgate.model.cluster.observation import Observation
from headgate.model.names import Signature
from headgate.runtime.engine.choices import Choices
from headgate.runtime.engine.engine import Engine

__all__ = ["SparkCluster"]


class SparkCluster:
    """An engine, behind the protocol :class:`headgate.adaptation.cluster.Cluster`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._observer = engine.observer()

    def observe(self) -> Observation:
        return self._observer.observe()

    def apply(self, actions: Sequence[Action]) -> None:
        """Do all of some actions or, if one cannot be done, none.

        What can be refused comes first: machines are asked for, then tasks are changed, all of them in one plan
        snapshot; what was acquired is given back if that fails. Machines are released last.
        """
        if any(isinstance(action, AssignCores) for action in actions):
            message = "Spark decides itself on which machine a task's partitions run; set their number instead"
            raise InputError("ACTION_REFUSED", message)
        engine = self._engine
        switched: Mapping[Signature, str] = {a.task: a.alternate for a in actions if isinstance(a, SwitchAlternate)}
        partitions = {action.task: action.partitions for action in actions if isinstance(action, SetPartitions)}
        acquired = [action.vm_class for action in actions if isinstance(action, AcquireMachine)]
        released = list(dict.fromkeys(action.machine for action in actions if isinstance(action, ReleaseMachine)))
        engine.scaling.check(acquired, released)
        got: list[AcquiredMachine] = []
        try:
            for vm_class in acquired:
                got.append(engine.scaling.acquire(vm_class))  # noqa: PERF401  (what came before a refusal counts)
            if switched or partitions:
                engine.change(Choices(switched, partitions))
        except BaseException:
            for machine in got:
                with suppress(HeadgateError):
                    engine.scaling.release(machine.name)
            raise
        for name in released:
            engine.scaling.release(name)
