"""At the end of a paid hour: whether a machine is worth another one, and what spare cores are good for until then."""

from __future__ import annotations

import numpy as np

from headgate.adaptation.policies.increments import Prices, better_way, cheaper_way
from headgate.adaptation.trajectory import Course

PATIENCE = 3
"""Machines that must stay after which the others are not tried: they are alike."""

__all__ = ["renew", "use_spare"]


def renew(course: Course, prices: Prices, low: float) -> None:
    """Let machines go that must be paid anew before the next decision, unless they are worth it.

    What ran on one moves to free cores; where they do not suffice, tasks do with less, or with cheaper alternates, as
    long as throughput over the interval stays. A machine is worth its price if those alternates would lose more value
    in the time that the price is for.
    """
    held = course.now.held
    due = np.flatnonzero(course.left_s[:held] < course.now.period_s)
    # The slowest for their price first: of machines alike the slow ones go.
    speed = course.speed.mean(axis=0)[due] / course.price[course.kind[due]]
    refused = 0
    for machine in due[np.argsort(speed, kind="stable")].tolist():
        if refused == PATIENCE or course.mean() < low:
            return
        tried = course.tried()
        lost = _emptied(tried, prices, machine, low)
        if lost is not None and lost < prices.money(float(course.price[course.kind[machine]])):
            course.takes(tried)
            # Its cores are no longer free: nothing is put there again.
            course.speed[:, machine] = 0.0
        else:
            refused += 1


def _emptied(course: Course, prices: Prices, machine: int, low: float) -> float | None:
    """Take everything off a machine and make up for it elsewhere; the value that this loses, none if it cannot be."""
    for task in np.flatnonzero(course.placed[machine]).tolist():
        for _ in range(int(course.placed[machine, task])):
            course.take(0, task, machine)
    held = course.now.held
    # Those that stay anyhow before those that may go next; what was let go has no speed any more.
    rank = course.speed[:, :held].mean(axis=0) + 1e3 * (course.left_s[:held] >= course.now.period_s)
    rank[(course.speed[:, :held].sum(axis=0) <= 0) | (np.arange(held) == machine)] = 0.0
    lost = 0.0
    for _ in range(200):
        if course.mean() >= low and (course.power[:, course.cost > 0] > 0).all():
            return lost
        ratios = course.ratios(0)
        task = int(np.argmin(ratios))
        if ratios[task] >= 1 - 1e-9:
            return None
        free = np.where(course.free()[:held] > 0, rank, 0.0)
        if free.max() > 0:
            course.give(0, task, int(np.argmax(free)))
            continue
        way = _least_loss(course)
        if way is None:
            return None
        task, to = way
        value = course.shape.value[task]
        lost += prices.value(float(value[course.active[task]] - value[to]), prices.period_h)
        course.switch(0, task, to)
        _freed(course, task)
    return None


def _least_loss(course: Course) -> tuple[int, int] | None:
    """The task and the cheaper alternate that loses the least value for the power it sets free."""
    best, found = np.inf, None
    for task, ways in enumerate(course.shape.alternates):
        way = cheaper_way(course, task) if len(ways) > 1 else -1
        if way >= 0:
            cost, value, now = course.shape.cost_s[task], course.shape.value[task], course.active[task]
            power = float(cost[now] - cost[way]) * float(course.offered[:, task].mean())
            loss = float(value[now] - value[way]) / max(power, 1e-9)
            if loss < best:
                best, found = loss, (task, way)
    return found


def _freed(course: Course, task: int) -> None:
    """Take the instances that a task has beyond its need, so that others may have the cores."""
    held = course.now.held
    while course.placed[:held, task].sum() > 1:
        course.omegas()
        need = float(course.offered[:, task].mean() * course.cost[task])
        rows = np.flatnonzero(course.placed[:held, task])
        row = int(rows[np.argmin(course.speed[:, rows].mean(axis=0))])
        if float(course.power[:, task].mean() - course.speed[:, row].mean()) < need:
            return
        course.take(0, task, row)


def use_spare(course: Course, low: float) -> None:
    """Better alternates where free cores suffice for them, the most value for a core first."""
    skipped: set[int] = set()
    while True:
        course.omegas()
        best, found = 0.0, -1
        for task, ways in enumerate(course.shape.alternates):
            way = better_way(course, task) if len(ways) > 1 and task not in skipped else -1
            if way >= 0:
                cost, value, now = course.shape.cost_s[task], course.shape.value[task], course.active[task]
                power = float(cost[way] - cost[now]) * float(course.offered[:, task].mean())
                gain = float(value[way] - value[now]) / max(power, 1e-9)
                if gain > best:
                    best, found = gain, task
        if found < 0:
            return
        tried = course.tried()
        tried.switch(0, found, better_way(course, found))
        if _filled(tried, low):
            course.takes(tried)
        else:
            skipped.add(found)


def _filled(course: Course, low: float) -> bool:
    """Give free cores to bottlenecks until throughput is reached; whether it is."""
    for _ in range(100):
        if course.mean() >= low:
            return True
        held = course.now.held
        free = np.flatnonzero((course.free()[:held] > 0) & (course.speed[:, :held].sum(axis=0) > 0))
        ratios = course.ratios(0)
        task = int(np.argmin(ratios))
        if not len(free) or ratios[task] >= 1 - 1e-9:
            return False
        course.give(0, task, int(free[np.argmax(course.speed[:, free].mean(axis=0))]))
    return False
