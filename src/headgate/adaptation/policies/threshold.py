"""Scale each task by its utilisation, as common autoscalers do: a baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from headgate.adaptation.cluster import AcquireMachine, Action, PlaceInstances, ReleaseMachine
from headgate.adaptation.policies.static import deploying
from headgate.errors import BadValue
from headgate.model.cluster.deployment import Deployment
from headgate.model.cluster.observation import Observation, TaskObservation, WorkerObservation
from headgate.model.cluster.vm_class import Cloud

__all__ = ["Threshold"]


@dataclass(slots=True)
class Threshold:
    """Keep the utilisation of every task's cores between two thresholds.

    Where it is outside, the task gets the cores with which it would be at ``target``: as many as now, times its
    utilisation over the target (the rule of Kubernetes' horizontal autoscaler). What waits counts as demand that is to
    be worked off within ``drain_s``. Free cores of machines that are there come first, then new machines of one class;
    empty machines are released at the end of their billing period.
    """

    cloud: Cloud
    deployment: Deployment
    target: float = 0.7
    low: float = 0.5
    high: float = 0.85
    drain_s: float = 600.0
    period_s: float = 120.0
    """Seconds until the next decision: a machine whose billing period ends before then is released now."""

    name: str = "threshold"
    _began: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.low < self.target < self.high <= 1:
            message = f"thresholds of {self.low:g}, {self.target:g} and {self.high:g}"
            raise BadValue(message, "0 < low < target < high, at most 1")

    def decide(self, observed: Observation) -> Sequence[Action]:
        if not self._began:
            self._began = True
            return deploying(self.deployment, observed)
        machines = _Machines(observed)
        actions: list[Action] = []
        wanted = {task.task: self._cores(observed, task, machines) for task in observed.tasks}
        for task in observed.tasks:
            actions += machines.fewer(task, wanted[task.task])
        kind = self.cloud.largest
        for task in observed.tasks:
            actions += machines.more(task, wanted[task.task], kind.name, kind.cores)
        actions += [
            ReleaseMachine(worker.machine)
            for worker in observed.workers
            if machines.is_empty(worker.machine) and self._is_paid_anew_soon(worker, observed.ended)
        ]
        return actions

    def _cores(self, observed: Observation, task: TaskObservation, machines: _Machines) -> int:
        has = sum(cores for _, cores in task.placed)
        cost_s = task.profile.cpu_s_per_row if task.profile is not None else 0.0
        if cost_s <= 0 or observed.seconds <= 0:
            return has
        power = machines.power(task)
        offered = (task.rows_in / observed.seconds + (task.rows_waiting or 0.0) / self.drain_s) * cost_s
        if has and power > 0 and self.low <= offered / power <= self.high:
            return has
        each = power / has if has and power > 0 else self.cloud.largest.core_power
        return max(1, ceil(offered / self.target / each - 1e-9))

    def _is_paid_anew_soon(self, worker: WorkerObservation, now_s: float) -> bool:
        if worker.acquired is None:
            return True
        held_s = now_s - worker.acquired
        return self.cloud.billing.paid_until_s(held_s) - held_s < self.period_s


class _Machines:
    """The machines during a decision: cores by task, and free cores."""

    def __init__(self, observed: Observation) -> None:
        self._speed = {
            worker.machine: worker.speed if worker.speed is not None and worker.ready else 0.0
            for worker in observed.workers
        }
        self._rated = {worker.machine: worker.speed or 1.0 for worker in observed.workers}
        self._cores = {worker.machine: worker.cores for worker in observed.workers}
        self._free = dict(self._cores)
        self._has: dict[str, dict[str, int]] = defaultdict(dict)
        for task in observed.tasks:
            for machine, cores in task.placed:
                self._free[machine] -= cores
                self._has[task.task][machine] = cores
        self._new = 0

    def power(self, task: TaskObservation) -> float:
        """Of a task's cores; those of machines that still start count as if they were there."""
        return sum(cores * self._rated[machine] for machine, cores in task.placed)

    def is_empty(self, machine: str) -> bool:
        return self._free[machine] == self._cores[machine]

    def fewer(self, task: TaskObservation, cores: int) -> list[Action]:
        """Take cores away, from machines where the task has the fewest."""
        placed = self._has[task.task]
        actions: list[Action] = []
        surplus = sum(placed.values()) - cores
        for machine in sorted(placed, key=lambda each: placed[each]):
            if surplus <= 0:
                break
            step = min(surplus, placed[machine])
            actions.append(self._place(task, machine, placed[machine] - step))
            surplus -= step
        return actions

    def more(self, task: TaskObservation, cores: int, vm_class: str, size: int) -> list[Action]:
        """Give cores: on machines where the task is already, then on others, then on new ones."""
        placed = self._has[task.task]
        missing = cores - sum(placed.values())
        actions: list[Action] = []
        if missing <= 0:
            return actions
        for machine in sorted((m for m, free in self._free.items() if free > 0), key=lambda m: -placed.get(m, 0)):
            if missing <= 0:
                break
            step = min(missing, self._free[machine])
            actions.append(self._place(task, machine, placed.get(machine, 0) + step))
            missing -= step
        while missing > 0:
            machine = f"new-{self._new}"
            self._new += 1
            self._free[machine] = size
            actions.append(AcquireMachine(vm_class, machine))
            step = min(missing, size)
            actions.append(self._place(task, machine, step))
            missing -= step
        return actions

    def _place(self, task: TaskObservation, machine: str, cores: int) -> Action:
        placed = self._has[task.task]
        self._free[machine] -= cores - placed.get(machine, 0)
        placed[machine] = cores
        return PlaceInstances(task.task, machine, cores)
