"""The compiled loop of the simulator: some intervals of all replications between two decisions.

Every message is somewhere: in the queue of a task (``queue``), waiting for the network (``pending``), on its way back
through feedback (``returning``), or done. What a task may do in an interval is counted in core-seconds of the reference
core: the sum over its cores of their power, for as much of the interval as their machine worked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.capacity.serve import serve
from headgate.capacity.sharing import shared_work
from headgate.queueing.compiled import compiled

__all__ = ["run_intervals"]


@compiled
def _spent(spent: float, count: int, end: float, clock: Any, machines: Any) -> tuple[float, float]:
    """What machines cost up to a moment (Eq. 2), and until when that does not change."""
    period_s, least_s = clock
    power, price_per_period, acquired, paid_to = machines
    same_until = np.inf
    for v in range(count):
        if power[v] <= 0.0:
            continue
        if acquired[v] >= end:
            same_until = min(same_until, acquired[v])
            continue
        time = min(paid_to[v], end) - acquired[v]
        if time <= 0.0:
            continue
        periods = np.ceil(max(time, least_s) / period_s - 1e-9)
        spent += periods * price_per_period[v]
        if paid_to[v] > end:
            same_until = min(same_until, acquired[v] + periods * period_s)
    return spent, same_until


@compiled
def _gammas(flow: Any, active: Any, gamma_of: Any) -> float:
    """Write the mean value of each dataflow's tasks (Eq. 3); returns that of all tasks."""
    value, first, member = flow[2], flow[4], flow[5]
    for d in range(len(first) - 1):
        total = 0.0
        for i in range(first[d], first[d + 1]):
            total += value[member[i], active[member[i]]]
        gamma_of[d] = total / (first[d + 1] - first[d])
    total = 0.0
    for p in range(len(active)):
        total += value[p, active[p]]
    return total / len(active)


@compiled
def run_intervals(
    first: int,
    last: int,
    clock: Any,
    flow: Any,
    pools: Any,
    world: Any,
    machines: Any,
    state: Any,
    seen: Any,
    record: Any,
) -> None:
    """Take all replications through the intervals ``first`` to ``last`` (exclusive).

    The equations are those of :func:`headgate.capacity.serve.serve`, with machines that work for part of an interval.
    The tuples are as they are unpacked below: ``flow`` is the dataflow, ``pools`` who shares cores (nobody, if its
    arrays are empty: then ``placed`` is by task, otherwise by pool), ``world`` has messages per second from outside
    by source and coefficients by trace, ``state`` changes in place, ``seen`` has the last interval and sums since the
    beginning.
    """
    interval_s, counts_queues, message_bytes, period_s, least_s = clock
    cost, selectivity, _, outputs, _, _, structure = flow
    external, source_of, speed_pool, bandwidth_pool = world
    slots, power, bandwidth, price_per_period, acquired, ready, stopped, paid_to, trace, offset = machines[:10]
    closed_cost, placed = machines[10:]
    active, queue, pending, returning, lost_power_s, idle_s = state
    arrived, done, made, moved, capacity, entered, finished, sent = seen
    omega, gamma, mu, queues, cores, output, omega_of, gamma_of = record
    shared, owners = len(pools[0]) > 0, omega_of.shape[2]
    columns = placed.shape[2]
    replications, tasks = queue.shape
    most = power.shape[1]
    weight = np.zeros(most)
    room = np.zeros(most)
    scratch = np.zeros(most)
    one = np.ones(most)
    phi, could, rows, rest, work = np.zeros(tasks), np.zeros(tasks), np.zeros(tasks), np.zeros(tasks), np.zeros(tasks)
    ways_cost, ways_out = np.zeros(tasks), np.zeros(tasks)
    kept, valued = np.zeros(len(structure[5]) - 1), np.zeros(len(structure[5]) - 1)
    moments = speed_pool.shape[1]
    moment = np.zeros(most, np.int64)
    worst = bandwidth_pool.min()
    # Who has cores where does not change meanwhile, and most tasks have none on most machines.
    instance_machine = np.zeros(most * columns, np.int64)
    instance_task = np.zeros(most * columns, np.int64)
    instance_cores = np.zeros(most * columns, np.int64)
    core_count = np.zeros(columns, np.int64)
    for r in range(replications):
        count = slots[r]
        instances = 0
        for v in range(count):
            for p in range(columns):
                if placed[r, v, p] > 0:
                    instance_machine[instances] = v
                    instance_task[instances] = p
                    instance_cores[instances] = placed[r, v, p]
                    instances += 1
        for p in range(tasks):
            ways_cost[p] = cost[p, active[r, p]]
            ways_out[p] = selectivity[p, active[r, p]]
        mean_value = _gammas(flow, active[r], valued)
        core_speed = np.zeros((columns, instance_cores[:instances].sum() if shared else 0))
        flow_r = (ways_cost, ways_out, *structure)
        load = (arrived[r], queue[r], pending[r], returning[r], work, counts_queues)
        results = (could, done[r], made[r], moved[r], kept, rows, rest)
        narrowest = np.inf
        for v in range(count):
            moment[v] = (offset[r, v] + first - 1) % moments
            if power[r, v] > 0.0 and not shared:
                narrowest = min(narrowest, bandwidth[r, v] * worst * 125_000.0 * interval_s / message_bytes)
        links = (bandwidth[r], bandwidth_pool, trace[r], moment, interval_s, message_bytes, room, scratch)
        network = (placed[r], weight[:count], one, links, narrowest)
        prices = (power[r], price_per_period[r], acquired[r], paid_to[r])
        spent, same_until = 0.0, -np.inf
        for step in range(first, last):
            begin = step * interval_s
            end = begin + interval_s
            if end > same_until:
                spent, same_until = _spent(closed_cost[r], count, end, (period_s, least_s), prices)
            for p in range(tasks):
                phi[p] = 0.0
            busy_cores = 0
            for v in range(count):
                weight[v] = 0.0
                moment[v] = moment[v] + 1 if moment[v] + 1 < moments else 0
                works = min(stopped[r, v], end) - max(ready[r, v], begin)
                if power[r, v] > 0.0 and works > 0.0:
                    weight[v] = power[r, v] * speed_pool[trace[r, v], moment[v]]
                    if works != interval_s:
                        weight[v] *= works / interval_s
            for i in range(instances):
                v = instance_machine[i]
                if weight[v] > 0.0:
                    phi[instance_task[i]] += instance_cores[i] * weight[v]
                    busy_cores += instance_cores[i]
            # What would come out if nothing held messages up.
            for p in range(tasks):
                outside = external[r, step, source_of[p]] * interval_s if source_of[p] >= 0 else 0.0
                could[p] = outside + returning[r, p]
                arrived[r, p] = could[p]
                returning[r, p] = 0.0
                entered[r, p] += outside
                work[p] = max(phi[p] * interval_s - lost_power_s[r, p], 0.0)
                work[p] *= max(1.0 - idle_s[r, p] / interval_s, 0.0)
                capacity[r, p] = work[p]
            if shared:
                core_count[:] = 0
                for i in range(instances):
                    pool = instance_task[i]
                    for _ in range(instance_cores[i] if weight[instance_machine[i]] > 0.0 else 0):
                        core_speed[pool, core_count[pool]] = weight[instance_machine[i]]
                        core_count[pool] += 1
                by_pool = (core_speed, core_count)
                shared_work(flow_r, pools, by_pool, arrived[r], queue[r], interval_s, lost_power_s[r], work)
                for g in range(len(pools[0])):
                    for p in range(structure[4][g], structure[4][g + 1]):
                        work[g] *= max(1.0 - idle_s[r, p] / interval_s, 0.0)
                        capacity[r, p] = work[g]
            for p in range(tasks):
                lost_power_s[r, p] = 0.0
                idle_s[r, p] = 0.0
            omega[r, step] = serve(flow_r, load, phi, network, results)
            sum_output = 0.0
            for i in range(len(outputs)):
                sum_output += made[r, outputs[i]]
            for p in range(tasks):
                finished[r, p] += done[r, p]
                sent[r, p] += made[r, p]
                queues[r, step, p] = queue[r, p]
            gamma[r, step] = mean_value
            for d in range(owners):
                omega_of[r, step, d] = kept[d]
                gamma_of[r, step, d] = valued[d]
            mu[r, step] = spent
            cores[r, step] = busy_cores
            output[r, step] = sum_output / interval_s
