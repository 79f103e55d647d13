"""What a policy that places instances knows when it decides, as arrays: machines, their cores, what comes in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.cluster.vm_class import Cloud
from headgate.model.service_level import ServiceLevel

__all__ = ["ClusterView"]


@dataclass(slots=True)
class ClusterView:
    """The state of one deployment. Policies change it in place; what differs afterwards is to be done.

    Machines are rows: first those that are there, then those that a decision adds (``held`` tells how many are there).
    """

    shape: Shape
    cloud: Cloud
    level: ServiceLevel
    period_s: float
    """Seconds until the next decision."""

    omega: float
    """Relative throughput that was observed last."""

    external: Floats
    """Messages per second from outside, by task."""

    waiting: Floats
    """What waits for each task, in messages per second if worked off in one interval; 0 where it does not count."""

    active: Ints
    kind: Ints
    speed: Floats
    """Power of one core as it was measured, as it is rated for machines that still start."""

    placed: Ints
    left_s: Floats
    """Seconds until a machine must be paid anew."""

    machine: tuple[str, ...] = ()
    """What the machines that are there are called; needed by who remembers them from decision to decision."""

    starts_s: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds until a machine that is there works; 0 for those that do."""

    counts_queues: bool = False
    """Whether what waits counts as output that could be achieved."""

    reasons: list[str] = field(default_factory=list)
    """Why what is done is done, in sentences."""

    held: int = field(init=False)
    first: Ints = field(init=False)
    is_output: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = field(init=False)

    def __post_init__(self) -> None:
        self.held = len(self.kind)
        self.machine = self.machine or tuple(f"vm-{row}" for row in range(self.held))
        if len(self.starts_s) != self.held:
            self.starts_s = np.zeros(self.held)
        tasks = self.shape.tasks
        self.first = np.searchsorted(self.shape.stream_source, np.arange(tasks + 1)).astype(np.int64)
        self.is_output = np.zeros(tasks, dtype=np.bool_)
        self.is_output[list(self.shape.outputs)] = True

    @property
    def cores(self) -> Ints:
        """Cores of each machine."""
        cores: Ints = np.array([each.cores for each in self.cloud.classes], dtype=np.int64)[self.kind]
        return cores

    @property
    def cost(self) -> Floats:
        """Core-seconds of a message, by task."""
        cost: Floats = self.shape.cost_s[np.arange(self.shape.tasks), self.active]
        return cost

    @property
    def out(self) -> Floats:
        selectivity: Floats = self.shape.selectivity[np.arange(self.shape.tasks), self.active]
        return selectivity

    @property
    def power(self) -> Floats:
        """Reference cores by task."""
        power: Floats = self.speed @ self.placed
        return power

    def aim(self, margin: float) -> float:
        """The throughput to aim at: ``margin`` above what is asked, at the end of the band where something waits.

        What waits counts against the throughput of the next interval as well, so that falling short is dearer.
        """
        more = max(margin, self.level.throughput_tolerance) if self.waiting.any() else margin
        return min(self.level.throughput_min + more, 1.0)

    def achievable(self) -> Floats:
        """Messages per second into each task when nothing holds them up."""
        shape, out = self.shape, self.out
        rates = self.external + self.waiting
        for source, target, share in zip(shape.stream_source, shape.stream_target, shape.stream_share, strict=True):
            rates[target] += rates[source] * out[source] * share
        return rates

    def open(self, kind: int, count: int, speed: float) -> None:
        """Add machines that are still to be acquired."""
        self.kind = np.concatenate([self.kind, np.full(count, kind, dtype=np.int64)])
        self.speed = np.concatenate([self.speed, np.full(count, speed)])
        self.placed = np.concatenate([self.placed, np.zeros((count, self.shape.tasks), dtype=np.int64)])
        self.left_s = np.concatenate([self.left_s, np.full(count, self.cloud.billing.period_s)])

    def without_empty_new(self) -> None:
        """Forget machines that were to be acquired and on which nobody has cores."""
        keep = np.ones(len(self.kind), dtype=np.bool_)
        keep[self.held :] = self.placed[self.held :].sum(axis=1) > 0
        self.kind, self.speed, self.left_s = self.kind[keep], self.speed[keep], self.left_s[keep]
        self.placed = self.placed[keep]

    def to_release(self) -> Ints:
        """Machines without instances that would be paid anew before the next decision."""
        idle = (self.placed[: self.held].sum(axis=1) == 0) & (self.left_s[: self.held] < self.period_s)
        return np.flatnonzero(idle)
