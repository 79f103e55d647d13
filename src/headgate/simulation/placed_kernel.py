"""The compiled loop of placed instances: rows wait before each, machines share their CPU fairly among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.queueing.compiled import compiled

__all__ = ["run_placed"]


@compiled
def _shared(demand: Any, site: Any, capacity: float, machine: int, given: Any) -> float:
    """Max-min fair shares of a machine's CPU, into ``given``; returns what is used."""
    left, open_ = capacity, 0
    for i in range(len(demand)):
        if site[i] == machine:
            given[i] = 0.0
            if demand[i] > 0.0:
                given[i] = -1.0
                open_ += 1
    while open_ > 0:
        share, settled = left / open_, 0
        for i in range(len(demand)):
            if site[i] == machine and given[i] < 0.0 and demand[i] <= share:
                given[i] = demand[i]
                left -= demand[i]
                settled += 1
        open_ -= settled
        if settled == 0:
            for i in range(len(demand)):
                if site[i] == machine and given[i] < 0.0:
                    given[i] = share
                    left -= share
            open_ = 0
    return capacity - left


@compiled
def run_placed(
    step_s: float,
    arriving: Any,
    instances: Any,
    machines: Any,
    streams: Any,
    surges: Any,
    state: Any,
    seen: Any,
) -> None:
    """Take all instances through the steps whose arrivals are given, by step and operator.

    ``instances`` are operator, machine, CPU seconds and seconds of a row, share of its operator's rows; ``machines``
    are reference cores, cores that are used without rows, number of cores, and what a runnable thread for each core
    too many takes of them. ``surges`` are the factor by step and operator on the CPU of a row. ``state`` (rows that
    wait, rows on their way) changes in place; ``seen`` adds up rows done, CPU used, time held and rows waiting by
    instance, CPU by machine.
    """
    operator, site, cpu_s, held_s, share = instances
    power, fixed, cores, switching = machines
    source, target, selectivity = streams
    queue, coming = state
    done, used, held, waiting, busy = seen
    count = len(operator)
    demand, given, want = np.zeros(count), np.zeros(count), np.zeros(count)
    made = np.zeros(arriving.shape[1])
    for step in range(arriving.shape[0]):
        for i in range(count):
            o = operator[i]
            queue[i] += (coming[o] + arriving[step, o]) * share[i]
            want[i] = queue[i]
            if held_s[i] > 0.0:
                want[i] = min(queue[i], step_s / held_s[i])
            demand[i] = want[i] * cpu_s[i] * surges[step, o]
        for k in range(len(power)):
            runnable = 0.0
            for i in range(count):
                if site[i] == k:
                    runnable += min(demand[i] / step_s, 1.0)
            crowded = 1.0 + switching * max(runnable / cores[k] - 1.0, 0.0)
            capacity = max(power[k] - fixed[k], 0.0) * step_s
            working = _shared(demand, site, capacity / crowded, k, given)
            # What switching takes is used, too.
            busy[k] += working * crowded + min(fixed[k], power[k]) * step_s
        made[:] = 0.0
        for i in range(count):
            o = operator[i]
            rows = want[i]
            if demand[i] > 0.0:
                rows = want[i] * given[i] / demand[i]
            queue[i] -= rows
            made[o] += rows
            done[i] += rows
            used[i] += given[i]
            held[i] += min(rows * held_s[i], step_s)
            waiting[i] += queue[i]
        coming[:] = 0.0
        for e in range(len(source)):
            coming[target[e]] += made[source[e]] * selectivity[e]
