"""Policies on shared pools in a simulation: one memory for each replication, windows from what was simulated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from headgate.adaptation.actions import AcquireMachine, Action, ReleaseMachine, SwitchAlternate
from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policy import Capabilities, Decision, Memory, Policy, Terms
from headgate.adaptation.pooled.catalogue import pooled_policy
from headgate.adaptation.window import MachineColumns, Window
from headgate.capacity.pooled import PooledGraph, PoolLimits
from headgate.errors import BadValue
from headgate.model.arrays import Floats, Ints
from headgate.sharing.signature import sign
from headgate.simulation.run import PlanStep
from headgate.simulation.setting import Setting

if TYPE_CHECKING:
    from headgate.simulation.simulator import Simulator, VectorPolicy

__all__ = ["PooledSimulated", "pool_limits", "pooled_simulated", "terms_of"]

KINDS = frozenset({"switch_alternate", "acquire_machine", "release_machine"})
"""What a simulation does on shared pools: stages have the partitions that they begin with."""


def terms_of(setting: Setting) -> Terms:
    """What a policy is to achieve in a simulation."""
    return Terms(
        setting.dataflow,
        sign(setting.dataflow),
        setting.cloud,
        setting.interval_s,
        setting.intervals,
        setting.counts_queues,
        setting.levels,
        {name: tuple(tasks) for name, tasks in setting.owners.items()},
    )


def pooled_simulated(name: str, setting: Setting, settings: PolicySettings | None = None) -> PooledSimulated:
    """A policy by name for a setting with shared pools; what a simulation knows of its future goes to oracles."""
    chosen, shape = settings or PolicySettings(), setting.shape()
    names = [str(shape.names[place]) for place in shape.sources]
    mean, peak = setting.mean_rates(), setting.peak_rates()
    chosen = replace(chosen, usual=np.array([mean[n] for n in names]), peak=np.array([peak[n] for n in names]))
    policies = []
    for row in range(setting.replications):
        future = setting.external(shape)[row].T[: len(names)] if chosen.forecaster.startswith("oracle") else None
        policies.append(pooled_policy(name, replace(chosen, future=future)))
        if future is None:
            policies *= setting.replications
            break
    return PooledSimulated(tuple(policies), name)


@dataclass(slots=True)
class PooledSimulated:
    """Runs a policy on every replication of a simulation with shared pools."""

    policies: tuple[Policy, ...]
    """By replication."""

    name: str
    every: int | None = 1
    decided: list[Decision] = field(default_factory=list)
    """The decisions of the first replication."""

    begins: VectorPolicy | None = None
    """What there is at the beginning, in place of a first decision on mean rates."""

    _memories: list[Memory] = field(default_factory=list)
    _terms: Terms | None = None
    _capabilities: Capabilities | None = None

    def begin(self, simulator: Simulator) -> None:
        if simulator.setting.sharing is None:
            raise BadValue("a setting without shared pools", "Setting(sharing=...)")
        self._terms = terms_of(simulator.setting)
        self._capabilities = Capabilities(tuple(simulator.columns), KINDS)
        self._memories = [policy.begin(self._terms, self._capabilities) for policy in self.policies]
        if self.begins is not None:
            self.begins.begin(simulator)
            return
        mean = simulator.setting.mean_rates()
        external = np.array([mean.get(str(name), 0.0) for name in simulator.shape.names])
        for row in range(simulator.setting.replications):
            self._decide(simulator, row, external)

    def decide(self, simulator: Simulator) -> None:
        shape = simulator.shape
        for row in range(simulator.setting.replications):
            external = np.zeros(shape.tasks)
            external[list(shape.sources)] = simulator.external[row, simulator.step - 1, : len(shape.sources)]
            self._decide(simulator, row, external)

    def _decide(self, simulator: Simulator, row: int, external: Floats) -> None:
        assert self._terms is not None
        assert self._capabilities is not None
        window = window_of(simulator, row, self._terms, self._capabilities, external)
        decision, self._memories[row] = self.policies[row].decide(window, self._memories[row])
        first = simulator.step == 0
        if row == 0:
            self.decided.append(decision)
        for action in decision.actions:
            _enact(simulator, row, action)
            if not first or row == 0:
                simulator.note_pooled(None if first else row, action)
        for sentence in decision.reason.sentences if decision.actions else ():
            simulator.record_reason(row, sentence)
        simulator.plans += [PlanStep(simulator.now_s, row, action) for action in decision.planned]


def _enact(simulator: Simulator, row: int, action: Action) -> None:
    match action:
        case SwitchAlternate(task, alternate):
            signatures = sign(simulator.setting.dataflow)
            place = next(p for p, name in enumerate(simulator.shape.names) if signatures[name] == task)
            simulator.switch(row, place, simulator.shape.alternates[place].index(alternate))
        case AcquireMachine(vm_class, _, pool):
            kind = simulator.setting.cloud.place(vm_class)
            slot = int(simulator.acquire(row, kind)[0])
            column = 0 if pool is None else simulator.columns.index(pool)
            simulator.place(row, column, slot, simulator.setting.cloud.classes[kind].cores)
        case ReleaseMachine(machine):
            place_of = simulator.fleet.slot_of(row, machine, simulator.now_s)
            if place_of is None:
                raise BadValue(f"there is no machine '{machine}'", "one that works or starts")
            simulator.release(row, place_of)
        case _:
            raise BadValue(f"an action {action!r} on a simulated pool", "one of the kinds in its capabilities")


def window_of(simulator: Simulator, row: int, terms: Terms, capabilities: Capabilities, external: Floats) -> Window:
    """What a policy sees of a replication."""
    setting, fleet, shape = simulator.setting, simulator.fleet, simulator.shape
    slots, speed = _machines(simulator, row)
    held_s, period = simulator.now_s - fleet.acquired[row, slots], setting.cloud.billing.period_s
    left_s = np.ceil(np.maximum(held_s, setting.cloud.billing.least_s) / period - 1e-9) * period - held_s
    machines = MachineColumns(
        tuple(f"vm-{number}" for number in fleet.number[row, slots].tolist()),
        fleet.kind[row, slots].astype(np.int64),
        speed,
        np.where(held_s > 0, left_s, period),
        np.maximum(fleet.ready[row, slots] - simulator.now_s, 0.0),
        fleet.placed[row, slots].astype(np.int64),
    )
    omega = float(simulator.omega[row, simulator.step - 1]) if simulator.step else 1.0
    window = Window(
        terms,
        capabilities,
        simulator.now_s,
        shape,
        simulator.active[row].copy(),
        external,
        simulator.queue[row].copy(),
        omega,
        machines,
        setting.sharing,
    )
    asked = [terms.level, *terms.levels.values()]
    if simulator.step and any(each.latency_max_s is not None for each in asked):
        window.latency_s.update(_latencies(simulator, row, window))
    return window


def _machines(simulator: Simulator, row: int) -> tuple[Ints, Floats]:
    """Slots of the machines of a replication, and the power of their cores as it was in the last interval."""
    fleet = simulator.fleet
    slots = fleet.working(row, simulator.now_s)
    speed = fleet.power[row, slots].copy()
    seen = fleet.ready[row, slots] < simulator.now_s
    speed[seen] *= simulator.speeds()[row, slots][seen]
    return slots, speed


def _latencies(simulator: Simulator, row: int, window: Window) -> dict[str, float]:
    """Latency as the model of micro-batches has it, and the time for which what came last waits behind the backlog."""
    speeds, graph = _speeds(simulator, row), _graph(simulator)
    limits = graph.limits(window.active, window.external, speeds)
    late_s = float((graph.rates(window.active, window.waiting) * window.shape.cost_of(window.active)).sum())
    late_s /= max(float(limits.usable.sum()), 1e-9)
    values = graph.latencies(window.active, window.external, speeds)
    names = list(window.terms.owners) or [str(window.terms.dataflow.name)]
    known = np.where(np.isfinite(values), values, simulator.setting.interval_s)
    return {name: float(value) + late_s for name, value in zip(names, known, strict=True)}


def _graph(simulator: Simulator) -> PooledGraph:
    if simulator.pooled is None:
        raise BadValue("a simulation without shared pools", "Setting(sharing=...)")
    return simulator.pooled


def _speeds(simulator: Simulator, row: int) -> list[Floats]:
    """Power of the cores of every pool that worked in the last interval."""
    slots, speed = _machines(simulator, row)
    works = simulator.fleet.ready[row, slots] < simulator.now_s
    cores = simulator.fleet.placed[row, slots]
    return [np.repeat(speed[works], cores[works, pool]) for pool in range(len(simulator.columns))]


def pool_limits(simulator: Simulator, row: int) -> PoolLimits:
    """Demand of the last interval, and what was usable in it."""
    shape = simulator.shape
    external = np.zeros(shape.tasks)
    external[list(shape.sources)] = simulator.external[row, simulator.step - 1, : len(shape.sources)]
    return _graph(simulator).limits(simulator.active[row], external, _speeds(simulator, row))
