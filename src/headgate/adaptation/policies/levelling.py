"""Max-min fair sharing of cores: the task with the least power for its demand gets as much as possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.queueing.compiled import compiled

__all__ = ["least_served", "levelled"]


@compiled
def _levelled(demand: Any, placed: Any, free: Any, speed: Any, power: Any) -> None:
    """Give free cores to the task with the least power for its demand, then move cores to it while that helps."""
    rows, tasks = placed.shape
    while True:
        lowest = 1.0 - 1e-9
        chosen = -1
        for p in range(tasks):
            if demand[p] > 0.0 and power[p] / demand[p] < lowest:
                lowest = power[p] / demand[p]
                chosen = p
        if chosen < 0:
            return
        best = -1
        for v in range(rows):
            if free[v] > 0 and (best < 0 or speed[v] > speed[best]):
                best = v
        if best >= 0:
            placed[best, chosen] += 1
            free[best] -= 1
            power[chosen] += speed[best]
            continue
        donor = -1
        where = -1
        most = 0.0
        for p in range(tasks):
            if p == chosen:
                continue
            for v in range(rows):
                if placed[v, p] > 0:
                    left = np.inf if demand[p] <= 0.0 else (power[p] - speed[v]) / demand[p]
                    least = min(left, (power[chosen] + speed[v]) / demand[chosen])
                    if least > lowest + 1e-6 and least > most:
                        most = least
                        donor = p
                        where = v
        if donor < 0:
            return
        placed[where, donor] -= 1
        placed[where, chosen] += 1
        power[donor] -= speed[where]
        power[chosen] += speed[where]


def levelled(placed: Ints, free: Ints, speed: Floats, demand: Floats) -> None:
    """Share cores in place so that the least served task gets as much of its demand (reference cores) as possible."""
    _levelled(demand, placed, free, speed, speed @ placed)


def least_served(placed: Ints, speed: Floats, demand: Floats) -> float:
    """The smallest share of its demand that a task has power for, at most 1.

    >>> least_served(np.array([[1, 1]]), np.array([2.0]), np.array([4.0, 2.0]))
    0.5
    """
    busy = demand > 0
    power = (speed @ placed)[busy]
    return float(np.minimum(power / demand[busy], 1.0).min()) if busy.any() else 1.0
