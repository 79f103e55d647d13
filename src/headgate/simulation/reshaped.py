"""Runs a policy core on the arrays of all replications of a simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from headgate.adaptation.actions import AcquireMachine, AssignCores, ReleaseMachine, SwitchAlternate
from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.policies.reactive import Core
from headgate.gc_paused import paused
from headgate.model.arrays import Ints
from headgate.model.cluster.deployment import Deployment
from headgate.model.names import Signature
from headgate.sharing.signature import sign
from headgate.simulation.run import PlanStep
from headgate.simulation.simulator import Simulator

__all__ = ["Reshaped"]


@dataclass(slots=True)
class Reshaped:
    """Starts with a deployment; a core changes it after every ``every`` intervals."""

    core: Core | Callable[[Simulator, int], Core]
    """One for all replications or, for cores that remember, what makes one for each."""

    deployment: Deployment
    name: str = ""
    every: int | None = 1
    _turn: int = 0
    _cores: list[Core] = field(default_factory=list)
    _signatures: list[Signature] = field(default_factory=list)

    def begin(self, simulator: Simulator) -> None:
        rows = range(simulator.setting.replications)
        core = self.core
        self._cores = [core(simulator, row) for row in rows] if callable(core) else [core for _ in rows]
        self.name = self.name or self._cores[0].name
        signatures = sign(simulator.setting.dataflow)
        self._signatures = [signatures[name] for name in simulator.shape.names]
        simulator.deploy(self.deployment)

    def decide(self, simulator: Simulator) -> None:
        self._turn += 1
        for row in range(simulator.setting.replications):
            slots, now = view_of(simulator, row, (self.every or 1) * simulator.setting.interval_s)
            before, active = now.placed.copy(), now.active.copy()
            self._cores[row].decide(now, self._turn)
            with paused():
                self._apply(simulator, row, slots, now, before, active)
            for sentence in now.reasons:
                simulator.record_reason(row, sentence)
            simulator.plans += [PlanStep(simulator.now_s, row, action) for action in now.planned]

    def _apply(self, sim: Simulator, row: int, slots: Ints, now: ClusterView, before: Ints, active: Ints) -> None:
        for task in np.flatnonzero(now.active != active).tolist():
            sim.switch(row, task, int(now.active[task]))
            way = sim.shape.alternates[task][int(now.active[task])]
            sim.note(row, SwitchAlternate(self._signatures[task], way))
        numbers = sim.fleet.number[row]
        after = now.placed[: now.held]
        difference = after - before
        # Cores are taken before they are given, so that none is ever given twice.
        for changed in (np.argwhere(difference < 0), np.argwhere(difference > 0)):
            machines, tasks = changed.T
            columns = (tasks, slots[machines], numbers[slots[machines]], after[machines, tasks])
            for task, slot, number, cores in zip(*(each.tolist() for each in columns), strict=True):
                sim.place(row, task, slot, cores)
                sim.note(row, AssignCores(sim.columns[task], f"vm-{number}", cores))
        for machine in now.to_release().tolist():
            sim.note(row, ReleaseMachine(f"vm-{numbers[slots[machine]]}"))
            sim.release(row, int(slots[machine]))
        self._acquire(sim, row, now)

    def _acquire(self, sim: Simulator, row: int, now: ClusterView) -> None:
        for kind in np.unique(now.kind[now.held :]).tolist():
            new = now.held + np.flatnonzero(now.kind[now.held :] == kind)
            got = sim.acquire(row, kind, len(new))
            for slot, machine in zip(got.tolist(), new.tolist(), strict=True):
                name = f"vm-{sim.fleet.number[row, slot]}"
                sim.note(row, AcquireMachine(sim.setting.cloud.classes[kind].name, name))
                for task in np.flatnonzero(now.placed[machine]).tolist():
                    cores = int(now.placed[machine, task])
                    sim.place(row, task, slot, cores)
                    sim.note(row, AssignCores(sim.columns[task], name, cores))


def view_of(sim: Simulator, row: int, period_s: float) -> tuple[Ints, ClusterView]:
    """The slots of the machines of a replication, and its view."""
    setting, fleet, shape = sim.setting, sim.fleet, sim.shape
    slots = fleet.working(row, sim.now_s)
    speed = fleet.power[row, slots].copy()
    seen = fleet.ready[row, slots] < sim.now_s
    speed[seen] *= sim.speeds()[row, slots][seen]
    held_s = sim.now_s - fleet.acquired[row, slots]
    period = setting.cloud.billing.period_s
    left_s = np.ceil(np.maximum(held_s, setting.cloud.billing.least_s) / period - 1e-9) * period - held_s
    external = np.zeros(shape.tasks)
    external[list(shape.sources)] = sim.external[row, max(sim.step - 1, 0), : len(shape.sources)]
    waiting = np.zeros(shape.tasks)
    if setting.counts_queues:
        waiting = sim.queue[row] / setting.interval_s
    view = ClusterView(
        shape,
        setting.cloud,
        setting.dataflow.service_level,
        period_s,
        float(sim.omega[row, max(sim.step - 1, 0)]),
        external,
        waiting,
        sim.active[row].copy(),
        fleet.kind[row, slots].copy(),
        speed,
        fleet.placed[row, slots].astype(np.int64),
        left_s,
        tuple(f"vm-{number}" for number in fleet.number[row, slots].tolist()),
        np.maximum(fleet.ready[row, slots] - sim.now_s, 0.0),
        setting.counts_queues,
    )
    return slots, view
