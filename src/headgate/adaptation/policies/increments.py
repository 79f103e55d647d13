"""The increments of PLAN-AHEAD's Alg. 1: one alternate or one instance, whichever gives more profit.

Profit is in value × hours over the rest of the interval, as in the paper: an hour with one alternate of value 1 less in
P tasks loses 1/P, and a price of C loses σC.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

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
    """The class of new machines: the largest, as in DYN's initial deployment."""

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
        cloud = trajectory.now.cloud
        return cls(sigma, cloud.place(cloud.largest.name), cloud.billing.period_s / 3_600, shape.tasks)

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

    An instance on a free core costs nothing, else what a new machine does for the billing periods that are left.
    """
    ratios = trajectory.ratios(step)
    task = int(np.argmin(ratios))
    if ratios[task] >= 1 - 1e-9:
        return False
    speed = np.where(trajectory.free() > 0, trajectory.speed[step:].mean(axis=0), -1.0)
    machine = int(np.argmax(speed)) if len(speed) else -1
    spare = machine >= 0 and speed[machine] > 0
    way, value = _cheaper_way(trajectory, task), trajectory.shape.value[task]
    hours = _rest_h(trajectory, step)
    periods = ceil(hours / prices.period_h - 1e-9)
    price = 0.0 if spare else prices.money(float(trajectory.price[prices.kind]) * periods)
    if way >= 0 and prices.value(float(value[trajectory.active[task]] - value[way]), hours) < price:
        trajectory.switch(step, task, way)
        return True
    trajectory.give(step, task, machine if spare else trajectory.open(step, prices.kind))
    return True


def scale_down(trajectory: Trajectory, prices: IncrementPrices, step: int, low: float) -> bool:
    """A better alternate or one instance less for the task with most spare capacity, while throughput stays.

    An instance less saves the price of its machine if it is the last one there, and a new billing period would begin
    before the interval ends.
    """
    ratios = trajectory.ratios(step)
    hours = _rest_h(trajectory, step)
    for task in np.argsort(-ratios, kind="stable").tolist():
        if ratios[task] < 1:
            return False
        way = _better_way(trajectory, task)
        gain = -1.0
        if way >= 0:
            value = trajectory.shape.value[task]
            gain = prices.value(float(value[way] - value[trajectory.active[task]]), hours)
        machine = _least_needed(trajectory, step, task)
        saved = prices.money(_saved(trajectory, machine)) if machine >= 0 else -1.0
        for worth, better in sorted([(gain, True), (saved, False)], reverse=True):
            if worth < 0:
                continue
            tried = trajectory.tried()
            if better:
                tried.switch(step, task, way)
            else:
                tried.take(step, task, machine)
            if tried.mean(step) >= low:
                trajectory.takes(tried)
                return True
    return False


def _saved(trajectory: Trajectory, machine: int) -> float:
    """What is not paid if an instance leaves an existing machine."""
    last = trajectory.placed[machine].sum() == 1
    due = trajectory.left_s[machine] <= trajectory.steps * trajectory.step_s
    return float(trajectory.price[trajectory.kind[machine]]) if last and due else 0.0


def _least_needed(trajectory: Trajectory, step: int, task: int) -> int:
    """The existing machine of least weight (DYN, Eq. 10) that can do without an instance of a task; -1 if none can."""
    held = trajectory.now.held
    placed = trajectory.placed[:held]
    if placed[:, task].sum() <= (1 if trajectory.cost[task] > 0 else 0):
        return -1
    cores = trajectory.cores[trajectory.kind[:held]]
    worth = cores * trajectory.speed[step:, :held].mean(axis=0) / trajectory.price[trajectory.kind[:held]]
    left = np.maximum(trajectory.left_s[:held] - step * trajectory.step_s, 0.0)
    return int(least_weight(placed, trajectory.free()[:held], cores, left, worth, task, held))
