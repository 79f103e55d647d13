"""The state of a cluster as arrays, for policies that place instances: machines, their cores, input rates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headgate.adaptation.policy import PlannedAction
from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.cluster.vm_class import Cloud
from headgate.model.service_level import ServiceLevel

__all__ = ["ClusterView"]


@dataclass(slots=True)
class ClusterView:
    """The state of one deployment. Policies change it in place; the difference becomes actions.

    Machines are rows: first those that exist (``held`` of them), then those that a decision adds.
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
    """Backlog of each task, in messages per second if processed within one interval; 0 if queues do not count."""

    active: Ints
    kind: Ints
    speed: Floats
    """Measured power of one core; the rated power while a machine starts."""

    placed: Ints
    left_s: Floats
    """Seconds until the next billing period of a machine begins."""

    machine: tuple[str, ...] = ()
    """Names of the existing machines, for policies that track them across decisions."""

    starts_s: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds until an existing machine is ready; 0 if it is."""

    counts_queues: bool = False
    """Whether the backlog counts as achievable output."""

    reasons: list[str] = field(default_factory=list)
    """The reasons of the decision, in sentences."""

    planned: list[PlannedAction] = field(default_factory=list)
    """What the decision plans, now and later; the next one may replace what is not yet done."""

    held: int = field(init=False)

    def __post_init__(self) -> None:
        self.held = len(self.kind)
        self.machine = self.machine or tuple(f"vm-{row}" for row in range(self.held))
        if len(self.starts_s) != self.held:
            self.starts_s = np.zeros(self.held)

    @property
    def cores(self) -> Ints:
        """Cores of each machine."""
        return np.asarray(np.array([each.cores for each in self.cloud.classes], dtype=np.int64)[self.kind])

    @property
    def cost(self) -> Floats:
        """Core-seconds of a message, by task."""
        return self.shape.cost_of(self.active)

    @property
    def power(self) -> Floats:
        """Reference cores by task."""
        return np.asarray(self.speed @ self.placed)

    def aim(self, margin: float) -> float:
        """The target throughput: ``margin`` above the required one, the upper end of the band if there is a backlog.

        A backlog also lowers the throughput of the next interval, so falling short costs more.
        """
        more = max(margin, self.level.throughput_tolerance) if self.waiting.any() else margin
        return min(self.level.throughput_min + more, 1.0)

    def achievable(self) -> Floats:
        """Messages per second into each task if no task is a bottleneck."""
        return self.shape.achievable(self.external + self.waiting, self.shape.out_of(self.active))

    def open(self, kind: int, count: int, speed: float) -> None:
        """Add rows for machines to acquire."""
        self.kind = np.concatenate([self.kind, np.full(count, kind, dtype=np.int64)])
        self.speed = np.concatenate([self.speed, np.full(count, speed)])
        self.placed = np.concatenate([self.placed, np.zeros((count, self.shape.tasks), dtype=np.int64)])
        self.left_s = np.concatenate([self.left_s, np.full(count, self.cloud.billing.period_s)])

    def without_empty_new(self) -> None:
        """Drop machines to acquire that no task uses."""
        keep = np.ones(len(self.kind), dtype=np.bool_)
        keep[self.held :] = self.placed[self.held :].sum(axis=1) > 0
        self.kind, self.speed, self.left_s = self.kind[keep], self.speed[keep], self.left_s[keep]
        self.placed = self.placed[keep]

    def to_release(self) -> Ints:
        """Idle machines whose next billing period begins before the next decision."""
        idle = (self.placed[: self.held].sum(axis=1) == 0) & (self.left_s[: self.held] < self.period_s)
        return np.flatnonzero(idle)
