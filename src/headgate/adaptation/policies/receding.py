"""The receding horizon: a program over the forecast for the rest of the period, of which one step is applied."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.policies.levelling import least_served, levelled
from headgate.adaptation.policies.reactive import Core, Reactive
from headgate.adaptation.speed_estimates import SpeedEstimates
from headgate.errors import BadValue
from headgate.forecasting.forecast import Forecast
from headgate.forecasting.forecaster import Forecaster
from headgate.forecasting.guard import Guarded
from headgate.model.arrays import Floats, Ints
from headgate.planning.objective import BreakEven
from headgate.planning.programs.horizon import Group, Horizon, HorizonSteps, Scenario, blocks_of

__all__ = ["Receding"]

LEVELS = (0.1, 0.5, 0.9)
WEIGHTS = (0.25, 0.5, 0.25)
"""The quantiles that are the scenarios, and how much each counts."""

LEARNS = 0.2
"""The weight of the last observation in the estimated shortfall of throughput."""

ALIKE = 0.04
"""Machines whose relative speeds differ by less than this are kept or released together."""

FAR = 144
"""The longest horizon, in steps."""


@dataclass(slots=True)
class Receding:
    r"""Maximises :math:`\Gamma - \sigma\mu` of a period, with a mean throughput of :math:`\hat\Omega` over it.

    Scenarios are quantiles of the forecast. The program (:mod:`headgate.planning.programs.horizon`) knows start-up
    times, billing periods and the cost of changes, and may serve more in cheap hours and less in expensive ones. It
    says which machines are acquired, renewed and released. Cores are shared again only where the least served task
    gains ``stay`` of its demand. Where the forecaster fails, or there is no plan after ``budget_s`` seconds, the
    reactive policy decides, and a sentence says so.
    """

    forecaster: Forecaster
    """Of all sources; :class:`headgate.forecasting.guard.Guarded` reports when it fails."""

    sources: Sequence[int]
    break_even: BreakEven
    """Per hour."""

    interval_s: float
    period: int
    """Steps of the period."""

    counts_queues: bool = False
    margin: float = 0.012
    stay: float = 0.02
    switch_costs: float = 2e-5
    plan_every: int = 3
    """Decisions between two programs, unless machines are due or what comes is off by ``surprise`` of the forecast."""

    surprise: float = 0.2
    budget_s: float = 1.5
    shared: bool = False
    """Whether tasks share cores."""

    reactive: Core = field(default_factory=Reactive)
    took_s: list[float] = field(default_factory=list)
    """CPU seconds of each decision."""

    name: str = "receding"
    _seen: float = 0.0
    _count: int = 0
    _promised: float | None = None
    _short: float = 0.0
    """Mean shortfall of throughput below the program's: cores are whole, and forecasts err."""

    _since: int = 1_000_000
    _machines: SpeedEstimates = field(init=False)
    _foreseen: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.period < 1 or self.budget_s <= 0:
            raise BadValue(f"a period of {self.period} steps, {self.budget_s:g} s for each", "at least 1, above 0")
        self._machines = SpeedEstimates(max(1, round(3_600 / self.interval_s)))

    def decide(self, now: ClusterView, turn: int) -> None:
        began = time.process_time()
        if self._promised is not None:
            self._short += LEARNS * (float(np.clip(self._promised - now.omega, 0.0, 0.2)) - self._short)
        self._seen += now.omega
        self._count += 1
        self._watch(now)
        self.forecaster.update(now.external[list(self.sources)])
        trouble = self._decided(now)
        if trouble:
            now.reasons.append(f"reactive: {trouble}")
            self.reactive.decide(now, turn)
        self.took_s.append(time.process_time() - began)

    def _decided(self, now: ClusterView) -> str:
        """Decide by the program; returns the reason if that was not possible."""
        left = max(self.period - self._count, 1)
        ahead = min(left, FAR)
        forecast = self.forecaster.forecast(ahead)
        if isinstance(self.forecaster, Guarded) and self.forecaster.failing.any():
            return self.forecaster.complaints[-1].sentence() if self.forecaster.complaints else "no forecast"
        if not np.isfinite(forecast.quantiles).all():
            return "no input rate was observed yet"
        if not self._is_time(now, forecast):
            self._share(now, forecast, [])
            return ""
        asked = self._asked(now.level.throughput_min, ahead)
        hour = max(1, round(now.cloud.billing.period_s / self.interval_s))
        blocks = blocks_of(ahead, hour)
        groups, rows = self._groups(now)
        horizon = Horizon(
            now.shape,
            now.cloud,
            groups,
            self._scenarios(now, forecast, blocks),
            blocks,
            self.interval_s,
            hour,
            now.active,
            self._machines.usual,
            asked,
            min(now.level.throughput_min + self.margin, 1.0) if self.counts_queues else 0.0,
            self.break_even.sigma / (ahead * self.interval_s / 3_600),
            self.switch_costs,
            ahead == left,
            self.shared,
        )
        steps = horizon.solved(self.budget_s)
        if steps is None:
            return f"no plan was found within {self.budget_s:g} s"
        self._since, self._foreseen, self._promised = 0, forecast.mean.copy(), float(steps.omega[0])
        self._enact(now, steps, rows, forecast)
        now.reasons.append(self._sentence(now, steps, groups, asked, blocks))
        return ""

    def _is_time(self, now: ClusterView, forecast: Forecast) -> bool:
        """Whether it is time for another program."""
        self._since += 1
        if self._since >= self.plan_every or (now.left_s < now.period_s).any():
            return True
        expected = self._foreseen[:, self._since :][:, : forecast.mean.shape[1]]
        if not expected.size:
            return True
        off = np.abs(forecast.mean[:, 0] - expected[:, 0])
        return bool((off > self.surprise * np.maximum(expected[:, 0], 1e-9)).any())

    def _asked(self, least: float, ahead: int) -> float:
        """The mean throughput needed from now on to meet the requirement over the whole period."""
        # Towards the end less is left that may go wrong.
        margin = self.margin * max(min(1.0, ahead / 24), 0.6)
        wanted = (least + margin) * (self._count + ahead) - self._seen
        return float(np.clip(wanted / ahead + self._short, 0.0, 1.0))

    def _scenarios(self, now: ClusterView, forecast: Forecast, blocks: list[int]) -> list[Scenario]:
        starts = np.cumsum([0, *blocks[:-1]])
        scenarios = []
        for level, weight in zip(LEVELS, WEIGHTS, strict=True):
            external = np.zeros((now.shape.tasks, len(blocks)))
            rates = np.maximum(forecast.at(level), 0.0)
            external[list(self.sources)] = np.add.reduceat(rates, starts, axis=1) / np.array(blocks)
            # What waits is to be worked off first.
            external[:, 0] += now.waiting / blocks[0]
            scenarios.append(Scenario(external, weight))
        return scenarios

    def _groups(self, now: ClusterView) -> tuple[list[Group], list[Ints]]:
        """Machines by class, remaining paid steps and, at the end of their period, speed, with their rows."""
        paid = np.floor(now.left_s / self.interval_s + 1e-6).astype(np.int64)
        paid[now.left_s < now.period_s] = 0
        groups, rows = [], []
        speed = self._expected(now)
        rated = np.array([each.core_power for each in now.cloud.classes])[now.kind]
        alike = np.where(paid > 0, 0, np.round(speed / rated / ALIKE)).astype(np.int64)
        for kind, steps, pace in sorted({*zip(now.kind.tolist(), paid.tolist(), alike.tolist(), strict=True)}):
            there = np.flatnonzero((now.kind == kind) & (paid == steps) & (alike == pace))
            groups.append(Group(kind, float(speed[there].mean()), steps, len(there)))
            rows.append(there)
        return groups, rows

    def _watch(self, now: ClusterView) -> None:
        """Record the speeds of working machines: a slow moment does not make a slow machine."""
        rated = np.array([each.core_power for each in now.cloud.classes])[now.kind]
        shares = (now.speed / rated).tolist()
        working = zip(now.machine, shares, now.starts_s.tolist(), strict=True)
        self._machines.see((name, share) for name, share, starts_s in working if starts_s <= 0)

    def _expected(self, now: ClusterView) -> Floats:
        """Power of a core of each machine over the next hours."""
        rated = np.array([each.core_power for each in now.cloud.classes])[now.kind]
        return np.asarray(rated * np.array([self._machines.expected(name) for name in now.machine]))

    def _enact(self, now: ClusterView, steps: HorizonSteps, rows: list[Ints], forecast: Forecast) -> None:
        now.active[:] = steps.active
        # The slowest go: what runs there finds its cores elsewhere.
        leaving = [row for place, stay in steps.kept.items() for row in self._slowest(now, rows[place], stay)]
        now.placed[leaving] = 0
        for kind, count in steps.bought.items():
            if count:
                vm = now.cloud.classes[kind]
                works = max(1.0 - vm.boot_s / self.interval_s, 0.0)
                now.open(kind, count, vm.core_power * self._machines.usual * max(works, 1e-3))
        self._share(now, forecast, leaving)

    def _slowest(self, now: ClusterView, rows: Ints, stay: int) -> list[int]:
        speed = self._expected(now)[rows]
        return [int(row) for row in rows[np.argsort(-speed, kind="stable")][stay:]]

    def _share(self, now: ClusterView, forecast: Forecast, leaving: list[int]) -> None:
        """Share cores for the demand of the next step; machines to release get none."""
        before = now.external.copy()
        now.external[list(self.sources)] = np.maximum(forecast.at(0.75)[:, 0], 0.0)
        demand = now.achievable() * now.cost
        now.external[:] = before
        free = now.cores - now.placed.sum(axis=1)
        staying = np.setdiff1d(np.arange(len(now.kind)), leaving)
        placed, speed = now.placed[staying].copy(), now.speed[staying]
        served = least_served(placed, speed, demand)
        levelled(placed, free[staying], speed, demand)
        if least_served(placed, speed, demand) > served + self.stay:
            now.placed[staying] = placed

    def _sentence(
        self, now: ClusterView, steps: HorizonSteps, groups: list[Group], asked: float, blocks: list[int]
    ) -> str:
        classes = now.cloud.classes
        actions = [f"acquire {count} {classes[kind].name}" for kind, count in steps.bought.items() if count]
        gone = sum(groups[place].count - stay for place, stay in steps.kept.items())
        actions += [f"release {gone} machines at the end of their billing period"] if gone else []
        hours = sum(blocks) * self.interval_s / 3_600
        what = " and ".join(actions) or "keep the machines"
        aims = f"target throughput {asked:.2f} over the next {hours:.1f} h, {steps.omega[0]:.2f} in the next step"
        return f"{what}: {aims}"
