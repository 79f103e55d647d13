"""Runs an array-based policy core on observations, for clusters that can place instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.adaptation.actions import AcquireMachine, Action, AssignCores, ReleaseMachine, SwitchAlternate
from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.policies.reactive import Core
from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.cluster.deployment import Deployment
from headgate.model.cluster.machine_observations import MachineRow
from headgate.model.cluster.observation import Observation
from headgate.model.cluster.vm_class import Cloud
from headgate.model.dataflow import Dataflow
from tests.adaptation.static import deploying

__all__ = ["Placing"]


@dataclass(slots=True)
class Placing:
    """Applies a deployment, then changes it by the core after every observation.

    What came in is what was processed and what waits more than before; relative throughput is what the outputs
    processed over what they could have been given.
    """

    core: Core
    dataflow: Dataflow
    cloud: Cloud
    deployment: Deployment
    period_s: float = 120.0
    """Seconds until the next decision."""

    counts_queues: bool = True
    name: str = ""
    reasons: tuple[str, ...] = ()
    """Why the last decision was taken."""

    _shape: Shape = field(init=False, repr=False)
    _waited: Floats | None = field(default=None, repr=False)
    _turn: int = 0

    def __post_init__(self) -> None:
        self._shape = Shape.of(self.dataflow)
        self.name = self.name or self.core.name

    def decide(self, observed: Observation) -> Sequence[Action]:
        if self._waited is None:
            self._waited = np.zeros(self._shape.tasks)
            return deploying(self.deployment, observed)
        self._turn += 1
        now = self._view(observed)
        before, active = now.placed.copy(), now.active.copy()
        self.core.decide(now, self._turn)
        self.reasons = tuple(now.reasons)
        return self._actions(observed, now, before, active)

    def _view(self, observed: Observation) -> ClusterView:
        shape = self._shape
        place = {str(name): index for index, name in enumerate(shape.names)}
        machine = {name: row for row, name in enumerate(observed.machines.name)}
        placed = np.zeros((len(machine), shape.tasks), dtype=np.int64)
        active = np.zeros(shape.tasks, dtype=np.int64)
        processed, waits = np.zeros(shape.tasks), np.zeros(shape.tasks)
        for task in observed.tasks:
            index = place[task.name]
            active[index] = shape.alternates[index].index(task.alternate)
            processed[index], waits[index] = task.rows_in, task.rows_waiting or 0.0
            for name, cores in task.placed:
                if name in machine:
                    placed[machine[name], index] = cores
        waited, self._waited = self._waited, waits
        assert waited is not None
        seconds = max(observed.seconds, 1e-9)
        external = np.zeros(shape.tasks)
        sources = list(shape.sources)
        external[sources] = np.maximum(processed + waits - waited, 0.0)[sources] / seconds
        late = waits / seconds if self.counts_queues else np.zeros(shape.tasks)
        view = ClusterView(
            shape,
            self.cloud,
            self.dataflow.service_level,
            self.period_s,
            1.0,
            external,
            late,
            active,
            np.array([self.cloud.place(each.vm_class or "") for each in observed.machines], dtype=np.int64),
            np.array([self._speed(each) for each in observed.machines]),
            placed,
            np.array([self._left_s(each, observed.ended) for each in observed.machines]),
            observed.machines.name,
            # Observations do not say when a machine will be ready: assume the boot time of its class.
            np.array([0.0 if each.works else self._boot_s(each) for each in observed.machines]),
            self.counts_queues,
        )
        view.omega = self._omega(view, processed / seconds, waited / seconds)
        return view

    def _omega(self, now: ClusterView, processed: Floats, waited: Floats) -> float:
        late = now.waiting
        now.waiting = waited if self.counts_queues else np.zeros_like(waited)
        could = now.achievable()
        now.waiting = late
        ends = list(now.shape.outputs)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(could[ends] > 0, np.minimum(processed[ends] / could[ends], 1.0), 1.0)
        return float(share.mean())

    def _speed(self, machine: MachineRow) -> float:
        rated = self.cloud.vm_class(machine.vm_class or "").core_power
        return machine.speed if machine.works and machine.speed is not None else rated

    def _boot_s(self, machine: MachineRow) -> float:
        return self.cloud.vm_class(machine.vm_class or "").boot_s

    def _left_s(self, machine: MachineRow, now_s: float) -> float:
        if machine.asked is None:
            return 0.0
        held_s = now_s - machine.asked
        return self.cloud.billing.paid_until_s(held_s) - held_s

    def _actions(self, observed: Observation, now: ClusterView, before: Ints, active: Ints) -> list[Action]:
        signature = {task.name: task.task for task in observed.tasks}
        tasks = [signature[str(name)] for name in now.shape.names]
        machines = observed.machines.name
        actions: list[Action] = [
            SwitchAlternate(tasks[task], now.shape.alternates[task][int(now.active[task])])
            for task in np.flatnonzero(now.active != active).tolist()
        ]
        difference = now.placed[: now.held] - before
        for changed in (np.argwhere(difference < 0), np.argwhere(difference > 0)):
            actions += [
                AssignCores(str(now.shape.names[task]), machines[row], int(now.placed[row, task]))
                for row, task in changed.tolist()
            ]
        actions += [ReleaseMachine(machines[row]) for row in now.to_release().tolist()]
        for row in range(now.held, len(now.kind)):
            name = f"new-{row}"
            actions.append(AcquireMachine(now.cloud.classes[int(now.kind[row])].name, name))
            actions += [
                AssignCores(str(now.shape.names[task]), name, int(now.placed[row, task]))
                for task in np.flatnonzero(now.placed[row]).tolist()
            ]
        return actions
