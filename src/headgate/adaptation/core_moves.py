"""Adding and removing cores one by one: the loops of DYN's Alg. 2, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.capacity.serve import bottleneck, offered_to, propagate, rates_of
from headgate.model.arrays import Floats
from headgate.model.cluster.vm_class import VmClass
from headgate.queueing.compiled import compiled

__all__ = ["add_cores", "drain_due", "fit_power", "least_weight", "remove_cores", "throughput"]


@compiled
def _add_cores(aim: float, placed: Any, free: Any, speed: Any, used: int, power: Any, rates: Any) -> int:
    """Add cores to bottlenecks until throughput reaches ``aim``; rows from ``used`` on are new machines."""
    begin = 0
    while True:
        if propagate(rates, power) >= aim:
            return used
        chosen = bottleneck(rates, power)
        if chosen < 0:
            return used
        while begin < used and free[begin] == 0:
            begin += 1
        if begin == used:
            if used == len(free):
                return used
            used += 1
        placed[begin, chosen] += 1
        free[begin] -= 1
        power[chosen] += speed[begin]


@compiled
def least_weight(placed: Any, free: Any, cores: Any, left: Any, worth: Any, task: int, rows: int) -> int:
    """The machine of least weight (Eq. 10) on which a task has a core."""
    total = 0
    for v in range(rows):
        total += placed[v, task]
    best = -1
    least = np.inf
    for v in range(rows):
        if placed[v, task] > 0:
            used = (cores[v] - free[v]) / cores[v]
            weight = left[v] * used * (1.0 - placed[v, task] / total) * worth[v]
            if weight < least:
                least = weight
                best = v
    return best


@compiled
def _remove_cores(aim: float, placed: Any, free: Any, machines: Any, speed: Any, power: Any, rates: Any) -> None:
    """Remove cores from the task with most spare capacity while throughput stays at ``aim``."""
    cost, offered = rates[0][0], offered_to(rates)
    cores, left, worth = machines
    rows, tasks = placed.shape
    count = np.zeros(tasks, np.int64)
    done = np.zeros(tasks, np.bool_)
    for v in range(rows):
        for p in range(tasks):
            count[p] += placed[v, p]
    if propagate(rates, power) < aim:
        return
    while True:
        highest = -1.0
        chosen = -1
        for p in range(tasks):
            if not done[p] and count[p] > (1 if cost[p] > 0.0 else 0):
                ratio = np.inf
                if cost[p] > 0.0 and offered[p] > 0.0:
                    ratio = power[p] / cost[p] / offered[p]
                if ratio > highest:
                    highest = ratio
                    chosen = p
        if chosen < 0:
            return
        v = least_weight(placed, free, cores, left, worth, chosen, rows)
        power[chosen] -= speed[v]
        if propagate(rates, power) < aim:
            power[chosen] += speed[v]
            done[chosen] = True
            propagate(rates, power)
            continue
        placed[v, chosen] -= 1
        free[v] += 1
        count[chosen] -= 1


@compiled
def _fit_power(
    low: Any, high: Any, placed: Any, free: Any, cores: Any, left: Any, worth: Any, speed: Any, used: int, power: Any
) -> int:
    """Add and remove cores until each task's power lies between two bounds; one core stays if the lower is above 0."""
    rows, tasks = placed.shape
    for p in range(tasks):
        count = 0
        for v in range(used):
            count += placed[v, p]
        while power[p] > high[p] and count > (1 if low[p] > 0.0 else 0):
            v = least_weight(placed, free, cores, left, worth, p, used)
            if power[p] - speed[v] < low[p] - 1e-9:
                break
            placed[v, p] -= 1
            free[v] += 1
            power[p] -= speed[v]
            count -= 1
    begin = 0
    for p in range(tasks):
        while power[p] < low[p] - 1e-9:
            while begin < used and free[begin] == 0:
                begin += 1
            if begin == used:
                if used == rows:
                    return used
                used += 1
            placed[begin, p] += 1
            free[begin] -= 1
            power[p] += speed[begin]
    return used


@compiled
def _drain_due(order: Any, placed: Any, free: Any, speed: Any, leaving: Any, spare: Any, power: Any) -> None:
    """Move all instances off machines whose billing period ends, if others have free cores of equal speed."""
    rows, tasks = placed.shape
    for i in range(len(order)):
        v = order[i]
        room = 0
        needed = 0
        for p in range(tasks):
            needed += placed[v, p]
        for w in range(rows):
            if not leaving[w] and speed[w] >= spare * speed[v]:
                room += free[w]
        if needed == 0 or needed > room:
            continue
        w = 0
        for p in range(tasks):
            while placed[v, p] > 0:
                while leaving[w] or free[w] == 0 or speed[w] < spare * speed[v]:
                    w += 1
                placed[v, p] -= 1
                free[v] += 1
                placed[w, p] += 1
                free[w] -= 1
                power[p] += speed[w] - speed[v]


def _rates(now: ClusterView) -> tuple[Any, ...]:
    return rates_of(now.shape, now.active, now.external + now.waiting)


def _worth(now: ClusterView) -> Floats:
    """Power per price of each machine: the last factor of Eq. 10."""
    price = np.array([float(each.price_per_h) for each in now.cloud.classes])
    return np.asarray(now.cores * now.speed / price[now.kind])


def _with_room(now: ClusterView, missing: float, vm_class: VmClass | None) -> int:
    """Add rows for the machines that the missing power may need; returns the number of rows before."""
    kind = vm_class or now.cloud.largest
    count = int((missing / kind.core_power + now.shape.tasks) // kind.cores) + 2
    used = len(now.kind)
    now.open(now.cloud.place(kind.name), count, kind.core_power)
    return used


def throughput(now: ClusterView) -> float:
    """Current relative throughput, with starting machines counted as ready."""
    return float(propagate(_rates(now), now.power))


def add_cores(now: ClusterView, aim: float, vm_class: VmClass | None = None) -> None:
    """Add cores to bottlenecks, free cores first, until throughput is reached, as in the initial deployment.

    New machines are of one class, by default the largest.
    """
    used = _with_room(now, float(np.maximum(now.achievable() * now.cost - now.power, 0.0).sum()), vm_class)
    free = now.cores - now.placed.sum(axis=1)
    _add_cores(aim, now.placed, free, now.speed, used, now.power, _rates(now))
    now.without_empty_new()


def remove_cores(now: ClusterView, aim: float) -> None:
    """Remove instances from the machines of least weight while throughput stays (DYN, Alg. 2 and Eq. 10)."""
    free = now.cores - now.placed.sum(axis=1)
    machines = (now.cores, now.left_s, _worth(now))
    _remove_cores(aim, now.placed, free, machines, now.speed, now.power, _rates(now))


def fit_power(now: ClusterView, low: Floats, high: Floats, vm_class: VmClass | None = None) -> None:
    """Bring the power of each task between two bounds, on existing and opened machines first, then on new ones."""
    used = _with_room(now, float(np.maximum(low - now.power, 0.0).sum()), vm_class)
    free = now.cores - now.placed.sum(axis=1)
    _fit_power(low, high, now.placed, free, now.cores, now.left_s, _worth(now), now.speed, used, now.power)
    now.without_empty_new()


def drain_due(now: ClusterView, spare: float = 1.0) -> None:
    """Move instances off machines whose billing period ends, to free cores at least ``spare`` times as fast."""
    leaving = now.left_s < now.period_s
    used = now.placed.sum(axis=1)
    order = np.flatnonzero(leaving & (used > 0))
    order = order[np.argsort(used[order], kind="stable")]
    _drain_due(order, now.placed, now.cores - used, now.speed, leaving, spare, now.power)
