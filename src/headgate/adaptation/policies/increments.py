"""The increments of PLAN-AHEAD's Alg. 1: one alternate or one instance, whichever gives more profit.

Profit is in value × hours over the rest of the interval, as in the paper: an hour with one alternate of value 1 less in
P tasks loses 1/P, and a price of C loses σC.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.adaptation.core_moves import least_weight
from headgate.adaptation.trajectory import Trajectory

__all__ = ["IncrementPrices", "scale_down", "scale_up"]


@dataclass(frozen=True, slots=True, eq=False)
class IncrementPrices:
    """Prices of value and machines."""

    sigma: float
    """Value for money, of one hour."""

    kind: int
    """The class of new machines."""

    per_core: float
    """What a core of it costs for a billing period."""

    period_h: float
    tasks: int

    @classmethod
    def of(cls, trajectory: Trajectory) -> IncrementPrices:
        """As a trajectory's cloud and service level have it."""
        level, shape = trajectory.now.level, trajectory.shape
        best, worst = level.break_even_at_best_per_h, level.break_even_at_worst_per_h
        sigma = 0.0
        if best is not None and worst is not None and best > worst:
            least = np.array([row[: len(ways)].min() for row, ways in zip(shape.value, shape.alternates, strict=True)])
            sigma = (1.0 - float(least.mean())) / float(best - worst)
        classes = trajectory.now.cloud.classes
        # Of those that are as good for money the one with the strongest cores, and the fewest of them.
        kind = min(
            range(len(classes)),
            key=lambda each: (classes[each].price_per_power_h, -classes[each].core_power, classes[each].cores),
        )
        period_h = trajectory.now.cloud.billing.period_s / 3_600
        return cls(sigma, kind, float(trajectory.price[kind]) / classes[kind].cores, period_h, shape.tasks)

    def value(self, gamma: float, hours: float) -> float:
        """Of one task's alternates, for some time."""
        return gamma / self.tasks * hours

    def money(self, cost: float) -> float:
        return self.sigma * cost


def _cheaper_way(trajectory: Trajectory, task: int) -> int:
    """The most expensive alternate of a task below the active one; -1 if there is none."""
    cost = trajectory.shape.cost_s[task, : len(trajectory.shape.alternates[task])]
    less = np.flatnonzero(cost < cost[trajectory.active[task]])
    return int(less[np.argmax(cost[less])]) if len(less) else -1


def _better_way(trajectory: Trajectory, task: int) -> int:
    """The cheapest alternate of a task above the active one's value; -1 if there is none."""
    cost, value = trajectory.shape.cost_s[task], trajectory.shape.value[task, : len(trajectory.shape.alternates[task])]
    more = np.flatnonzero(value > value[trajectory.active[task]])
    return int(more[np.argmin(cost[more])]) if len(more) else -1


def _rest_h(trajectory: Trajectory, step: int) -> float:
    return (trajectory.steps - step) * trajectory.step_s / 3_600


def scale_up(trajectory: Trajectory, prices: IncrementPrices, step: int) -> bool:
    """A cheaper alternate or one more instance for the bottleneck; returns whether there was one.

    The two are compared for the same relief: as many instances as take as much work off. Those on free cores cost
    nothing; others cost what their cores do, for a billing period at least.
    """
    ratios = trajectory.ratios(step)
    task = int(np.argmin(ratios))
    if ratios[task] >= 1 - 1e-9:
        return False
    free = trajectory.free()
    way = _cheaper_way(trajectory, task)
    hours = _rest_h(trajectory, step)
    if way >= 0:
        shape = trajectory.shape
        offered = float(trajectory.offered[step:, task].mean())
        relief = float(shape.cost_s[task, trajectory.active[task]] - shape.cost_s[task, way]) * offered
        cores = relief / (trajectory.now.cloud.classes[prices.kind].core_power * trajectory.usual)
        bought = max(cores - float(free.sum()), 0.0)
        periods = max(hours / prices.period_h, 1.0)
        lost = prices.value(float(shape.value[task, trajectory.active[task]] - shape.value[task, way]), hours)
        if lost < prices.money(bought * prices.per_core * periods):
            trajectory.switch(step, task, way)
            return True
    speed = np.where(free > 0, trajectory.speed[step:].mean(axis=0), -1.0)
    machine = int(np.argmax(speed)) if len(speed) else -1
    if machine < 0 or speed[machine] <= 0:
        machine = trajectory.open(step, _fitting(trajectory, prices, step, task))
    trajectory.give(step, task, machine)
    return True


def _fitting(trajectory: Trajectory, prices: IncrementPrices, step: int, task: int) -> int:
    """The class of a new machine: the cheapest that covers the missing power, else the best power per price."""
    classes = trajectory.now.cloud.classes
    asked = trajectory.now.level.throughput_min
    lacks = float(
        (trajectory.offered[step:, task] * asked).mean() * trajectory.cost[task] - trajectory.power[step:, task].mean()
    )
    enough = [each for each, kind in enumerate(classes) if kind.core_power * trajectory.usual >= lacks]
    best = min(enough, key=lambda each: (classes[each].price_per_h, -classes[each].core_power), default=None)
    return prices.kind if best is None else best


def scale_down(trajectory: Trajectory, prices: IncrementPrices, step: int, low: float) -> bool:
    """A better alternate or one instance less for the task with most spare capacity, while throughput stays.

    An instance less saves its core's price where a new billing period begins before the interval ends.
    """
    ratios = trajectory.ratios(step)
    hours = _rest_h(trajectory, step)
    due = trajectory.left_s[: trajectory.now.held] <= trajectory.steps * trajectory.step_s
    saved = prices.money(prices.per_core) if due.any() else 0.0
    for task in np.argsort(-ratios, kind="stable").tolist():
        if ratios[task] < 1:
            return False
        way = _better_way(trajectory, task)
        gain = -1.0
        if way >= 0:
            value = trajectory.shape.value[task]
            gain = prices.value(float(value[way] - value[trajectory.active[task]]), hours)
        choices = sorted([(gain, "better"), (saved, "fewer")], reverse=True)
        for worth, what in choices:
            if worth < 0:
                continue
            tried = trajectory.tried()
            if what == "better":
                tried.switch(step, task, way)
            elif not _one_less(tried, step, task):
                continue
            if tried.mean(step) >= low:
                trajectory.takes(tried)
                return True
    return False


def _one_less(trajectory: Trajectory, step: int, task: int) -> bool:
    """Remove an instance from the existing machine of least weight (DYN, Eq. 10)."""
    held = trajectory.now.held
    placed = trajectory.placed[:held]
    if placed[:, task].sum() <= (1 if trajectory.cost[task] > 0 else 0):
        return False
    cores = trajectory.cores[trajectory.kind[:held]]
    worth = cores * trajectory.speed[step:, :held].mean(axis=0) / trajectory.price[trajectory.kind[:held]]
    left = np.maximum(trajectory.left_s[:held] - step * trajectory.step_s, 0.0)
    machine = int(least_weight(placed, trajectory.free()[:held], cores, left, worth, task, held))
    if machine < 0:
        return False
    trajectory.take(step, task, machine)
    return True
