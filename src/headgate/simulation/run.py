"""The results of a simulation, as a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from headgate.adaptation.actions import Action
from headgate.adaptation.policy import PlannedAction
from headgate.model.arrays import Floats
from headgate.model.cluster.deployment import Deployment
from headgate.model.names import TaskId
from headgate.planning.objective import BreakEven
from headgate.simulation.machines import Booked, HeldMachine
from headgate.simulation.setting import Setting

__all__ = ["Decided", "Interrupted", "PlanStep", "RecordedReason", "Run", "Summary"]


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision: when, in which replication (all if none), and what."""

    at_s: float
    replication: int | None
    what: Action | Deployment


@dataclass(frozen=True, slots=True)
class RecordedReason:
    """The reason of a decision, or a notice of the policy, in one sentence."""

    at_s: float
    replication: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of the plan that a decision made; the next decision may replace what is not yet done."""

    at_s: float
    replication: int
    action: PlannedAction


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A spot machine that was taken back."""

    at_s: float
    replication: int
    machine: str


@dataclass(frozen=True, slots=True)
class Summary:
    """A replication in a few numbers."""

    omega: float
    gamma: float
    cost: float
    theta: float | None
    """Profit over the whole period; none if the dataflow names no break-even costs."""

    within: float
    """Share of the intervals in which relative throughput was not below the band."""

    left_band: int
    """Intervals in which it was outside of the band, on either side (chi of PLAN-AHEAD)."""

    in_band: float
    """Share of the intervals in which it was within the band."""

    changes: int
    """Actions, after the first deployment."""

    changes_per_day: float
    core_hours: float
    backlog: float
    """Messages that waited at the end."""


@dataclass(frozen=True, eq=False)
class Run:
    """Every interval of every replication: arrays of intervals by replications (by tasks)."""

    setting: Setting
    policy: str
    tasks: tuple[TaskId, ...]
    omega: Floats = field(repr=False)
    gamma: Floats = field(repr=False)
    mu: Floats = field(repr=False)
    """Cost so far, at the end of the interval."""

    input_per_s: Floats = field(repr=False)
    output_per_s: Floats = field(repr=False)
    cores: Floats = field(repr=False)
    """Cores at work for some task."""

    queues: Floats = field(repr=False)
    """Messages that wait for a task at the end of the interval."""

    in_transit: Floats = field(repr=False)
    """Messages that waited for the network at the very end, by replication."""

    decisions: tuple[Decided, ...] = field(repr=False)
    interruptions: tuple[Interrupted, ...] = field(repr=False)
    booked: tuple[Booked, ...] = field(repr=False)
    break_even: BreakEven | None
    """That of one hour."""

    reasons: tuple[RecordedReason, ...] = field(default=(), repr=False)
    plans: tuple[PlanStep, ...] = field(default=(), repr=False)
    by_dataflow: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)
    """Omega and Gamma of each of several dataflows."""

    demand: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)), repr=False)
    """Reference cores asked of shared pools: intervals × replications × pools; no pools where none are shared."""

    usable: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)), repr=False)
    """Reference cores of them that were usable."""

    @property
    def title(self) -> str:
        setting = self.setting
        many = f", {setting.replications} replications" if setting.replications > 1 else ""
        return f"{setting.dataflow.name} on {setting.cloud.name}, machines: {setting.pool.source}{many}"

    @property
    def currency(self) -> str:
        return self.setting.cloud.currency

    @property
    def throughput_band(self) -> tuple[float, float]:
        return self.setting.dataflow.service_level.throughput_band

    @cached_property
    def hours(self) -> Floats:
        """Hours since the start, at the end of each interval."""
        return (np.arange(len(self.omega)) + 1.0) * self.setting.interval_s / 3_600

    @cached_property
    def theta(self) -> Floats | None:
        """Profit of the time up to the end of each interval; none without break-even costs."""
        if self.break_even is None:
            return None
        value = np.cumsum(self.gamma, axis=0) / (np.arange(len(self.gamma)) + 1.0)[:, None]
        return self.break_even.profits(value, self.mu, self.hours[:, None])

    @cached_property
    def machines(self) -> tuple[HeldMachine, ...]:
        """The machines that were paid for, by replication and in the order in which they were acquired."""
        return tuple(each.held(self.setting.cloud) for each in self.booked)

    @cached_property
    def _changes(self) -> Counter[int | None]:
        return Counter(each.replication for each in self.decisions)

    def bill(self, replication: int = 0) -> Decimal:
        """What the machines of a replication cost, to the last digit."""
        return sum((each.cost for each in self.machines if each.replication == replication), Decimal())

    def summary(self, replication: int = 0) -> Summary:
        low, high = self.throughput_band
        omega = self.omega[:, replication]
        theta = self.theta
        return Summary(
            float(omega.mean()),
            float(self.gamma[:, replication].mean()),
            float(self.mu[-1, replication]),
            None if theta is None else float(theta[-1, replication]),
            float((omega >= low).mean()),
            int(((omega < low) | (omega > high)).sum()),
            float(((omega >= low) & (omega <= high)).mean()),
            self._changes[replication],
            float(self._changes[replication] / self.hours[-1] * 24),
            float(self.cores[:, replication].sum() * self.setting.interval_s / 3_600),
            float(self.queues[-1, replication].sum() + self.in_transit[replication]),
        )

    def totals(self) -> Mapping[str, Any]:
        """Means over the replications, and half the width of their 95 % confidence intervals."""
        totals: dict[str, Any] = {}
        summaries = [self.summary(row) for row in range(self.setting.replications)]
        for name in Summary.__dataclass_fields__:
            values = [getattr(each, name) for each in summaries]
            if any(value is None for value in values):
                totals[name] = None
                continue
            totals[name] = float(np.mean(values))
            if len(values) > 1:
                totals[f"{name}_error"] = float(1.96 * np.std(values, ddof=1) / len(values) ** 0.5)
        return totals
