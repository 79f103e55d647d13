"""At the end of a billing period: whether to keep a machine, and how to use spare cores until then."""

from __future__ import annotations

import numpy as np

from headgate.adaptation.policies.increments import IncrementPrices, better_way, cheaper_way
from headgate.adaptation.trajectory import Trajectory

PATIENCE = 3
"""After so many machines that must stay, similar ones are not tried."""

__all__ = ["renew", "use_spare"]


def renew(trajectory: Trajectory, prices: IncrementPrices, low: float) -> None:
    """Release machines whose billing period ends before the next decision, unless they are worth their price.

    What ran on one moves to free cores; where they do not suffice, tasks do with less, or with cheaper alternates, as
    long as throughput over the interval stays. A machine is worth its price if those alternates would lose more value
    in the time that the price is for.
    """
    held = trajectory.now.held
    due = np.flatnonzero(trajectory.left_s[:held] < trajectory.now.period_s)
    # The slowest for their price first.
    speed = trajectory.speed.mean(axis=0)[due] / trajectory.price[trajectory.kind[due]]
    refused = 0
    for machine in due[np.argsort(speed, kind="stable")].tolist():
        if refused == PATIENCE or trajectory.mean() < low:
            return
        tried = trajectory.tried()
        lost = _emptied(tried, prices, machine, low)
        if lost is not None and lost < prices.money(float(trajectory.price[trajectory.kind[machine]])):
            trajectory.takes(tried)
            # Its cores are no longer free: nothing is put there again.
            trajectory.speed[:, machine] = 0.0
        else:
            refused += 1


def _emptied(trajectory: Trajectory, prices: IncrementPrices, machine: int, low: float) -> float | None:
    """Move all instances off a machine; returns the value that this loses, none if it is impossible."""
    for task in np.flatnonzero(trajectory.placed[machine]).tolist():
        for _ in range(int(trajectory.placed[machine, task])):
            trajectory.take(0, task, machine)
    held = trajectory.now.held
    # Machines that stay come before those that may be released next; released ones have no speed.
    rank = trajectory.speed[:, :held].mean(axis=0) + 1e3 * (trajectory.left_s[:held] >= trajectory.now.period_s)
    rank[(trajectory.speed[:, :held].sum(axis=0) <= 0) | (np.arange(held) == machine)] = 0.0
    lost = 0.0
    for _ in range(200):
        if trajectory.mean() >= low and (trajectory.power[:, trajectory.cost > 0] > 0).all():
            return lost
        ratios = trajectory.ratios(0)
        task = int(np.argmin(ratios))
        if ratios[task] >= 1 - 1e-9:
            return None
        free = np.where(trajectory.free()[:held] > 0, rank, 0.0)
        if free.max() > 0:
            trajectory.give(0, task, int(np.argmax(free)))
            continue
        way = _least_loss(trajectory)
        if way is None:
            return None
        task, to = way
        value = trajectory.shape.value[task]
        lost += prices.value(float(value[trajectory.active[task]] - value[to]), prices.period_h)
        trajectory.switch(0, task, to)
        _freed(trajectory, task)
    return None


def _least_loss(trajectory: Trajectory) -> tuple[int, int] | None:
    """The task and cheaper alternate that lose the least value per freed power."""
    best, choice = np.inf, None
    for task, ways in enumerate(trajectory.shape.alternates):
        way = cheaper_way(trajectory, task) if len(ways) > 1 else -1
        if way >= 0:
            cost, value, now = trajectory.shape.cost_s[task], trajectory.shape.value[task], trajectory.active[task]
            power = float(cost[now] - cost[way]) * float(trajectory.offered[:, task].mean())
            loss = float(value[now] - value[way]) / max(power, 1e-9)
            if loss < best:
                best, choice = loss, (task, way)
    return choice


def _freed(trajectory: Trajectory, task: int) -> None:
    """Remove the instances that a task does not need, to free their cores."""
    held = trajectory.now.held
    while trajectory.placed[:held, task].sum() > 1:
        trajectory.omegas()
        need = float(trajectory.offered[:, task].mean() * trajectory.cost[task])
        rows = np.flatnonzero(trajectory.placed[:held, task])
        row = int(rows[np.argmin(trajectory.speed[:, rows].mean(axis=0))])
        if float(trajectory.power[:, task].mean() - trajectory.speed[:, row].mean()) < need:
            return
        trajectory.take(0, task, row)


def use_spare(trajectory: Trajectory, low: float) -> None:
    """Better alternates where free cores suffice, the most value per core first."""
    skipped: set[int] = set()
    while True:
        trajectory.omegas()
        best, chosen = 0.0, -1
        for task, ways in enumerate(trajectory.shape.alternates):
            way = better_way(trajectory, task) if len(ways) > 1 and task not in skipped else -1
            if way >= 0:
                cost, value, now = trajectory.shape.cost_s[task], trajectory.shape.value[task], trajectory.active[task]
                power = float(cost[way] - cost[now]) * float(trajectory.offered[:, task].mean())
                gain = float(value[way] - value[now]) / max(power, 1e-9)
                if gain > best:
                    best, chosen = gain, task
        if chosen < 0:
            return
        tried = trajectory.tried()
        tried.switch(0, chosen, better_way(trajectory, chosen))
        if _filled(tried, low):
            trajectory.takes(tried)
        else:
            skipped.add(chosen)


def _filled(trajectory: Trajectory, low: float) -> bool:
    """Give free cores to bottlenecks until throughput is reached; returns whether it is."""
    for _ in range(100):
        if trajectory.mean() >= low:
            return True
        held = trajectory.now.held
        free = np.flatnonzero((trajectory.free()[:held] > 0) & (trajectory.speed[:, :held].sum(axis=0) > 0))
        ratios = trajectory.ratios(0)
        task = int(np.argmin(ratios))
        if not len(free) or ratios[task] >= 1 - 1e-9:
            return False
        trajectory.give(0, task, int(free[np.argmax(trajectory.speed[:, free].mean(axis=0))]))
    return False
