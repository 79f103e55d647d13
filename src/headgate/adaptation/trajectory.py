"""A deployment over the next timesteps: its throughput, and planned changes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.outlook import Outlook
from headgate.adaptation.policy import PlannedAction
from headgate.capacity.serve import offered_to, propagate, rates_of
from headgate.model.arrays import Floats, Ints
from headgate.queueing.compiled import compiled

__all__ = ["PlannedChange", "Trajectory", "explained"]


@compiled
def _through(
    begin: int, rates: Any, external: Any, late: Any, power: Any, offered: Any, omegas: Any, carries: bool
) -> None:
    """Relative throughput and input of each task, for every step from ``begin`` on.

    If queues count, the backlog of a step is added to the input of the next.
    """
    cost = rates[0][0]
    for k in range(begin, len(omegas)):
        rates[1][:] = external[k] + late[k]
        omegas[k] = propagate(rates, power[k])
        offered[k] = offered_to(rates)
        if carries:
            for p in range(len(cost)):
                late[k + 1, p] = 0.0
                if cost[p] > 0.0:
                    late[k + 1, p] = max(offered[k, p] - power[k, p] / cost[p], 0.0)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One change from a timestep on: an alternate (``way``), or one core more or less on a machine."""

    step: int
    task: int
    way: int = -1
    machine: int = -1
    more: int = 0


class Trajectory:
    """Machines, instances and alternates while changes are planned, and the power that tasks have in every step.

    Changes apply from their step to the end of the interval. Machines that a plan opens stand behind those that are
    there; one that is needed at a step is started so many steps before as it takes to start.
    """

    def __init__(self, now: ClusterView, outlook: Outlook) -> None:
        self.now, self.shape = now, now.shape
        self.steps, self.step_s = outlook.steps, now.period_s
        self.external = outlook.external
        # What waits before each step.
        self.late: Floats = np.zeros((self.steps + 1, self.shape.tasks))
        self.late[0] = now.waiting
        self.usual = outlook.usual
        self.active: Ints = now.active.copy()
        self.kind: Ints = now.kind.copy()
        self.placed: Ints = now.placed.copy()
        self.left_s: Floats = now.left_s.copy()
        self.started: list[int] = []
        """The step at which each machine that is opened is started."""

        works = np.clip((np.arange(1, self.steps + 1)[:, None] * self.step_s - now.starts_s) / self.step_s, 0.0, 1.0)
        self.speed: Floats = outlook.speed * works
        self.power: Floats = self.speed @ self.placed
        self.offered = np.zeros((self.steps, self.shape.tasks))
        self._omegas = np.zeros(self.steps)
        self.changes: list[PlannedChange] = []
        classes = now.cloud.classes
        self.cores: Ints = np.array([each.cores for each in classes], dtype=np.int64)
        self.price: Floats = np.array([float(each.price_per_h) for each in classes]) * (
            now.cloud.billing.period_s / 3_600
        )

    def tried(self) -> Trajectory:
        """A copy on which changes can be tried."""
        other = copy(self)
        for name in ("active", "kind", "placed", "left_s", "speed", "power", "late", "offered", "_omegas"):
            setattr(other, name, getattr(self, name).copy())
        other.started, other.changes = list(self.started), list(self.changes)
        return other

    def takes(self, other: Trajectory) -> None:
        """Take over the state of a copy."""
        self.__dict__.update(other.__dict__)

    @property
    def cost(self) -> Floats:
        return self.shape.cost_of(self.active)

    def omegas(self, begin: int = 0) -> Floats:
        """Relative throughput of each step from ``begin`` on; also updates ``offered``."""
        rates = rates_of(self.shape, self.active, self.external[0])
        late, carries = self.late, self.now.counts_queues
        _through(begin, rates, self.external, late, self.power, self.offered, self._omegas, carries)
        return self._omegas[begin:]

    def mean(self, begin: int = 0) -> float:
        """Relative throughput over the rest of the interval."""
        return float(self.omegas(begin).mean())

    def ratios(self, begin: int) -> Floats:
        """Capacity over demand of each task for the rest of the interval; infinite without demand."""
        could, asked = self.power[begin:].sum(axis=0), self.offered[begin:].sum(axis=0) * self.cost
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(asked > 0, could / asked, np.inf)

    def free(self) -> Ints:
        return np.asarray(self.cores[self.kind] - self.placed.sum(axis=1))

    # Changes.

    def switch(self, step: int, task: int, way: int) -> None:
        self.active[task] = way
        self.changes.append(PlannedChange(step, task, way=way))

    def give(self, step: int, task: int, machine: int) -> None:
        """One core more."""
        self.placed[machine, task] += 1
        self.power[step:, task] += self.speed[step:, machine]
        self.changes.append(PlannedChange(step, task, machine=machine, more=1))

    def take(self, step: int, task: int, machine: int) -> None:
        """One core less."""
        self.placed[machine, task] -= 1
        self.power[step:, task] -= self.speed[step:, machine]
        self.changes.append(PlannedChange(step, task, machine=machine, more=-1))

    def open(self, step: int, kind: int) -> int:
        """One machine more, started early enough to work at a step; returns its row."""
        vm_class = self.now.cloud.classes[kind]
        begun = max(0, step - ceil(vm_class.boot_s / self.step_s - 1e-9))
        ready_s = begun * self.step_s + vm_class.boot_s
        works = np.clip((np.arange(1, self.steps + 1) * self.step_s - ready_s) / self.step_s, 0.0, 1.0)
        self.kind = np.append(self.kind, kind)
        self.placed = np.concatenate([self.placed, np.zeros((1, self.shape.tasks), dtype=np.int64)])
        self.left_s = np.append(self.left_s, self.now.cloud.billing.period_s)
        speed = (vm_class.core_power * self.usual * works)[:, None]
        self.speed = np.concatenate([self.speed, speed], axis=1)
        self.started.append(begun)
        return len(self.kind) - 1

    def enact(self) -> None:
        """Apply the changes that are due now to the view, including machines that must start now.

        The rest stays planned; the next decision may replace it.
        """
        now, held = self.now, self.now.held
        rows = {}
        for number, begun in enumerate(self.started):
            if begun == 0:
                kind = int(self.kind[held + number])
                rows[held + number] = len(now.kind)
                now.open(kind, 1, float(now.cloud.classes[kind].core_power))
        for change in self.changes:
            if change.machine >= held:
                if change.machine in rows:
                    now.placed[rows[change.machine], change.task] += change.more
            elif change.step == 0:
                if change.way >= 0:
                    now.active[change.task] = change.way
                else:
                    now.placed[change.machine, change.task] += change.more
        now.without_empty_new()

    def actions(self) -> list[PlannedAction]:
        """The plan, in order of time; cores that come and go at one step on one machine are summed up."""
        cores: dict[tuple[int, int, int], int] = {}
        planned = []
        for change in self.changes:
            if change.way < 0:
                key = (change.step, change.task, change.machine)
                cores[key] = cores.get(key, 0) + change.more
        ways = {(change.step, change.task): change.way for change in self.changes if change.way >= 0}
        for (step, task), way in ways.items():
            planned.append(self._planned(step, task, f"to '{self.shape.alternates[task][way]}'"))
        for (step, task, machine), more in cores.items():
            if more:
                what = f"{more:+} core{'s' if abs(more) > 1 else ''}"
                planned.append(self._planned(step, task, what, self._machine_name(machine)))
        return sorted(planned, key=lambda each: each.in_s)

    def _planned(self, step: int, task: int, change: str, machine: str = "") -> PlannedAction:
        return PlannedAction(step * self.step_s, str(self.shape.names[task]), change, machine)

    def _machine_name(self, machine: int) -> str:
        number = machine - self.now.held
        if number < 0:
            return self.now.machine[machine]
        begun_min = self.started[number] * self.step_s / 60
        kind = self.now.cloud.classes[int(self.kind[machine])].name
        return f"new {kind} {number + 1}, started {f'in {begun_min:g} min' if begun_min else 'now'}"

    def is_now(self, change: PlannedChange) -> bool:
        """Whether a change is due now: at step 0, or on a machine that must be started now."""
        new = change.machine - self.now.held
        return self.started[new] == 0 if change.machine >= 0 and new >= 0 else change.step == 0


def explained(trajectory: Trajectory, at: int | None, low: float, high: float) -> list[str]:
    """The changes done and planned, in one sentence; empty if there are none, as without a first cross-over ``at``."""
    if at is None or not trajectory.changes:
        return []
    band = f"{low:.3f} to {high:.3f}"
    when = "now" if at == 0 else f"in {at * trajectory.step_s / 60:g} min"
    why = f"relative throughput would leave {band} {when}"
    done = [change for change in trajectory.changes if trajectory.is_now(change)]
    later = len(trajectory.changes) - len(done)
    parts = [_summed(trajectory, done)] if done else []
    started = sum(1 for begun in trajectory.started if begun == 0)
    if started:
        parts.append(f"{started} machine{'s' if started > 1 else ''} started")
    if later:
        parts.append(f"{later} change{'s' if later > 1 else ''} planned for later")
    return [f"{why}: {', '.join(parts)}"]


def _summed(trajectory: Trajectory, changes: list[PlannedChange]) -> str:
    """A summary of changed alternates and instances."""
    shape = trajectory.shape
    ways = {change.task: change.way for change in changes if change.way >= 0}
    parts = [f"'{shape.names[task]}' to '{shape.alternates[task][way]}'" for task, way in list(ways.items())[:3]]
    if len(ways) > len(parts):
        parts.append(f"{len(ways) - len(parts)} more alternates")
    more = sum(change.more for change in changes if change.more > 0)
    less = -sum(change.more for change in changes if change.more < 0)
    parts += [
        f"{count} instance{'s' if count > 1 else ''} {what}"
        for count, what in ((more, "more"), (less, "less"))
        if count
    ]
    return ", ".join(parts)
