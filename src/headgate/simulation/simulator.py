"""The simulator: all replications of a setting, taken from decision to decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headgate.adaptation.actions import Action
from headgate.capacity.pooled import PooledGraph
from headgate.capacity.sharing import NOT_SHARED
from headgate.errors import BadValue
from headgate.model.arrays import Floats, Ints
from headgate.model.cluster.deployment import Deployment
from headgate.planning.objective import BreakEven
from headgate.simulation.kernel import run_intervals
from headgate.simulation.machines import MachinePool
from headgate.simulation.pooled import pool_limits
from headgate.simulation.run import Decided, Interrupted, PlanStep, RecordedReason, Run
from headgate.simulation.setting import Setting

__all__ = ["Simulator", "VectorPolicy", "simulate"]


class VectorPolicy(Protocol):
    """Decides for all replications at once, by changing the simulator's deployment between intervals."""

    name: str
    every: int | None
    """Intervals between two decisions; none if it decides nothing after the beginning."""

    def begin(self, simulator: Simulator) -> None:
        """Deploy, before the first interval."""

    def decide(self, simulator: Simulator) -> None:
        """Change the deployment at the end of an interval."""


@dataclass(slots=True)
class _Last:
    """What happened in the last interval, by replication and task or stream."""

    arrived: Floats
    done: Floats
    made: Floats
    moved: Floats
    capacity: Floats


class Simulator:
    """The state of all replications. Policies read it, and change it through the methods that are verbs."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.shape = shape = setting.shape()
        self.external = setting.external(shape)
        self.pool = setting.pool.every(setting.interval_s)
        count, tasks = setting.replications, shape.tasks
        streams = len(shape.stream_target)
        sharing = setting.sharing
        self.columns = [str(name) for name in shape.names] if sharing is None else [each.name for each in sharing.pools]
        """Who has cores: the tasks or, where they share them, the pools."""

        self.fleet = MachinePool(setting.cloud, self.pool, count, len(self.columns), setting.seed)
        self.step = 0
        self.active: Ints = np.zeros((count, tasks), dtype=np.int64)
        self.queue, self.returning = np.zeros((count, tasks)), np.zeros((count, tasks))
        self.pending = np.zeros((count, streams))
        self._lost_power_s, self._idle_s = np.zeros((count, tasks)), np.zeros((count, tasks))
        by_task = [np.zeros((count, tasks)) for _ in range(4)]
        self.last = _Last(by_task[0], by_task[1], by_task[2], np.zeros((count, streams)), by_task[3])
        self.entered, self.finished, self.sent = (np.zeros((count, tasks)) for _ in range(3))
        n = setting.intervals
        self.omega, self.gamma, self.mu, self.cores, self.output = (np.zeros((count, n)) for _ in range(5))
        self.queues = np.zeros((count, n, tasks))
        owners = len(setting.owners)
        self.omega_of, self.gamma_of = (np.zeros((count, n, owners)) for _ in range(2))
        self.decisions: list[Decided] = []
        self.reasons: list[RecordedReason] = []
        self.plans: list[PlanStep] = []
        self.interruptions: list[Interrupted] = []
        self._source_of = np.full(tasks, -1, dtype=np.int64)
        self._source_of[list(shape.sources)] = np.arange(len(shape.sources))
        outputs = np.array(shape.outputs, dtype=np.int64)
        first = np.cumsum([0, *map(len, shape.members)], dtype=np.int64)
        owned = first, np.concatenate(shape.members).astype(np.int64)
        self._flow = (shape.cost_s, shape.selectivity, shape.value, outputs, *owned, shape.structure)
        self._pools = NOT_SHARED if sharing is None else sharing.arrays(shape)
        self.pooled = None if sharing is None else PooledGraph(shape, sharing)
        pools = 0 if sharing is None else len(sharing.pools)
        self.demand, self.usable = (np.zeros((count, n, pools)) for _ in range(2))
        """Reference cores by pool: what was asked for in each interval, and what was usable."""

    @property
    def now_s(self) -> float:
        return self.step * self.setting.interval_s

    @property
    def over(self) -> bool:
        return self.step >= self.setting.intervals

    def advance(self, intervals: int = 1) -> None:
        """Let time pass; machines that were taken back meanwhile are gone afterwards."""
        setting, fleet, last = self.setting, self.fleet, self.last
        until = min(self.step + intervals, setting.intervals)
        billing = setting.cloud.billing
        series = (self.omega, self.gamma, self.mu, self.queues)
        clock = (float(setting.interval_s), setting.counts_queues, float(setting.message_bytes))
        run_intervals(
            self.step,
            until,
            (*clock, float(billing.period_s), float(billing.least_s)),
            self._flow,
            self._pools,
            (self.external, self._source_of, self.pool.speed, self.pool.bandwidth),
            fleet.kernel_arguments(),
            (self.active, self.queue, self.pending, self.returning, self._lost_power_s, self._idle_s),
            (last.arrived, last.done, last.made, last.moved, last.capacity, self.entered, self.finished, self.sent),
            (*series, self.cores, self.output, self.omega_of, self.gamma_of),
        )
        first, self.step = self.step, until
        if self.pooled is not None and until > first:
            for row in range(setting.replications):
                limits = pool_limits(self, row)
                self.demand[row, first:until], self.usable[row, first:until] = limits.demand, limits.usable
        self.interruptions += [Interrupted(self.now_s, row, f"vm-{n}") for row, n in fleet.settle(self.now_s)]

    # Verbs. They check nothing.

    def deploy(self, deployment: Deployment) -> None:
        """Acquire the machines of a deployment in every replication and place its instances."""
        try:
            deployment.check(self.setting.cloud)
            for task, alternate in deployment.alternates.items():
                place = self.shape.place(task)
                self.active[:, place] = self.shape.alternates[place].index(alternate)
        except ValueError as error:
            reason = (
                str(error) if isinstance(error, BadValue) else "a task or alternate that the dataflow does not have"
            )
            raise BadValue(f"invalid deployment: {reason}") from None
        rows = np.arange(self.setting.replications)
        kinds = np.array([self.setting.cloud.place(each.vm_class) for each in deployment.machines], dtype=np.int64)
        booted = self.setting.warm and self.step == 0
        slots = self.fleet.acquire(rows, kinds, self.now_s, booted)
        index = {name: place for place, name in enumerate(self.columns)}
        for machine, column in zip(deployment.machines, slots.T, strict=True):
            for task, cores in machine.cores.items():
                if task not in index:
                    what = "task" if self.setting.sharing is None else "pool"
                    raise BadValue(f"invalid deployment: there is no {what} '{task}'")
                self.fleet.placed[rows, column, index[task]] = cores
        self.decisions.append(Decided(self.now_s, None, deployment))

    def place(self, row: int, task: int, slot: int, cores: int) -> None:
        """Set the cores of a task on a machine."""
        fleet = self.fleet
        more = cores - int(fleet.placed[row, slot, task])
        fleet.placed[row, slot, task] = cores
        if self.setting.deploy_s > 0 and more > 0 and self.step > 0 and fleet.ready[row, slot] <= self.now_s:
            speed = self.pool.speed[fleet.trace[row, slot], (fleet.offset[row, slot] + self.step) % self._moments]
            self._lost_power_s[row, task] += more * fleet.power[row, slot] * speed * self.setting.deploy_s

    def switch(self, row: int, task: int, alternate: int) -> None:
        """Make another alternate the active one."""
        if self.active[row, task] != alternate:
            self.active[row, task] = alternate
            if self.step > 0:
                self._idle_s[row, task] = self.setting.switch_s

    def acquire(self, row: int, kind: int, count: int = 1) -> Ints:
        """Start machines in one replication; returns their slots."""
        booted = self.setting.warm and self.step == 0
        return np.asarray(self.fleet.acquire(np.array([row]), np.full(count, kind), self.now_s, booted)[0])

    def release(self, row: int, slot: int) -> None:
        """Release a machine."""
        self.fleet.release(row, slot, self.now_s)
        self.fleet.close(row, slot, self.now_s)

    def note(self, row: int, action: Action) -> None:
        """Record a decision."""
        self.decisions.append(Decided(self.now_s, row, action))

    def note_pooled(self, row: int | None, action: Action) -> None:
        """Record a decision on pools; of none in particular if it is part of the first deployment."""
        self.decisions.append(Decided(self.now_s, row, action))

    def record_reason(self, row: int, reason: str) -> None:
        """Record the reason of a decision."""
        self.reasons.append(RecordedReason(self.now_s, row, reason))

    @property
    def _moments(self) -> int:
        return int(self.pool.speed.shape[1])

    def speeds(self) -> Floats:
        """The coefficient of every machine in the last interval, by replication and slot."""
        moment = (self.fleet.offset + max(self.step - 1, 0)) % self._moments
        return np.asarray(self.pool.speed[self.fleet.trace, moment])

    def run(self, policy: str) -> Run:
        """The results so far, as a value."""
        n, shape = self.step, self.shape
        return Run(
            self.setting,
            policy,
            shape.names,
            # Views: what is recorded of an interval does not change any more.
            self.omega[:, :n].T,
            self.gamma[:, :n].T,
            self.mu[:, :n].T,
            self.external[:, :n].sum(axis=2).T,
            self.output[:, :n].T,
            self.cores[:, :n].T,
            self.queues[:, :n].swapaxes(0, 1),
            self.pending.sum(axis=1),
            tuple(self.decisions),
            tuple(self.interruptions),
            self.fleet.booked(self.now_s),
            BreakEven.of(self.setting.dataflow),
            tuple(self.reasons),
            tuple(self.plans),
            {
                name: (self.omega_of[:, :n, place].T, self.gamma_of[:, :n, place].T)
                for place, name in enumerate(self.setting.owners)
            },
            self.demand[:, :n].swapaxes(0, 1),
            self.usable[:, :n].swapaxes(0, 1),
        )


def simulate(setting: Setting, policy: VectorPolicy, progress: Callable[[int, int], None] | None = None) -> Run:
    """Run a policy on a setting to its end.

    >>> from decimal import Decimal
    >>> from headgate import parse
    >>> from headgate.model.cluster.deployment import Machine
    >>> from headgate.model.cluster.vm_class import Cloud, VmClass
    >>> from headgate.simulation.policies import Deployed
    >>> from headgate.simulation.rates import Constant
    >>> text = "tasks: [{id: a, type: opaque, cost_s: 0.5, ports: {outputs: [out]}}]"
    >>> cloud = Cloud("one", (VmClass("small", 1, 1.0, 100, Decimal("0.06")),))
    >>> setting = Setting(parse(text, "yaml").dataflow, cloud, {"a": Constant(2.5)}, intervals=60, counts_queues=False)
    >>> seen = simulate(setting, Deployed(Deployment((Machine("small", {"a": 1}),))))
    >>> round(float(seen.omega.mean()), 9), float(seen.mu[-1, 0]), float(seen.queues[-1, 0, 0])
    (0.8, 0.12, 3600.0)
    """
    simulator = Simulator(setting)
    policy.begin(simulator)
    while not simulator.over:
        # Without decisions, some intervals at a time: progress is reported between.
        simulator.advance(policy.every or max(1, min(setting.intervals // 10, 60)))
        if policy.every is not None and not simulator.over:
            policy.decide(simulator)
        if progress is not None:
            progress(simulator.step, setting.intervals)
    return simulator.run(policy.name)
