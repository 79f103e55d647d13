"""The compiled loop of the simulator: some intervals of all replications between two decisions.

Every message is somewhere: in the queue of a task (``queue``), waiting for the network (``pending``), on its way back
through feedback (``returning``), or done. What a task may do in an interval is counted in core-seconds of the reference
core: the sum over its cores of their power, for as much of the interval as their machine worked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.queueing.compiled import compiled

__all__ = ["run_intervals"]


@compiled
def _crossing(wanted: float, here: Any, there: Any, bandwidth: Any, count: int) -> float:
    """How many of ``wanted`` messages get through if each pair of machines carries its share.

    ``here`` and ``there`` are the shares of sender and reader on each machine. A pair carries at most what the narrower
    of its ends does; what is on one machine needs no network.
    """
    moved = 0.0
    for v in range(count):
        if here[v] > 0.0:
            for w in range(count):
                if there[w] > 0.0:
                    part = wanted * here[v] * there[w]
                    if v != w:
                        part = min(part, bandwidth[v], bandwidth[w])
                    moved += part
    return min(moved, wanted)


@compiled
def run_intervals(
    first: int, last: int, clock: Any, flow: Any, world: Any, machines: Any, state: Any, seen: Any, record: Any
) -> None:
    """Take all replications through the intervals ``first`` to ``last`` (exclusive).

    Eq. 4 to 7 of DYN, with messages that the network has no room for waiting rather than lost, machines that work for
    part of an interval, and Eq. 2 for the cost. The tuples are as they are unpacked below: ``flow`` is the dataflow,
    ``world`` has messages per second from outside by source and coefficients by trace, ``state`` changes in place,
    ``seen`` has the last interval and sums since the beginning.
    """
    interval_s, counts_queues, message_bytes, period_s, least_s = clock
    cost, selectivity, value, stream_first, stream_target, stream_share, stream_returns, is_output = flow
    external, source_of, speed_pool, bandwidth_pool = world
    slots, power, bandwidth, price_per_period, acquired, ready, stopped, paid_to, trace, offset = machines[:10]
    closed_cost, placed = machines[10:]
    active, queue, pending, returning, lost_power_s, idle_s = state
    arrived, done, made, moved, capacity, entered, finished, sent = seen
    omega, gamma, mu, queues, cores, output = record
    replications, tasks = queue.shape
    streams = len(stream_target)
    most = power.shape[1]
    outputs = 0
    for p in range(tasks):
        if is_output[p]:
            outputs += 1
    weight = np.zeros(most)
    room = np.zeros(most)
    here = np.zeros(most)
    there = np.zeros(most)
    phi = np.zeros(tasks)
    could = np.zeros(tasks)
    held = np.zeros(streams)
    shortest = speed_pool.shape[1]
    # Who has cores where does not change meanwhile, and most tasks have none on most machines.
    instance_machine = np.zeros(most * tasks, np.int64)
    instance_task = np.zeros(most * tasks, np.int64)
    instance_cores = np.zeros(most * tasks, np.int64)
    for r in range(replications):
        count = slots[r]
        instances = 0
        for v in range(count):
            for p in range(tasks):
                if placed[r, v, p] > 0:
                    instance_machine[instances] = v
                    instance_task[instances] = p
                    instance_cores[instances] = placed[r, v, p]
                    instances += 1
        for step in range(first, last):
            begin = step * interval_s
            end = begin + interval_s
            # Machines: what they can do, carry and cost.
            for p in range(tasks):
                phi[p] = 0.0
            narrowest = np.inf
            spent = closed_cost[r]
            busy_cores = 0
            for v in range(count):
                weight[v] = 0.0
                if power[r, v] <= 0.0:
                    continue
                if acquired[r, v] < end:
                    time = min(paid_to[r, v], end) - acquired[r, v]
                    if time > 0.0:
                        spent += np.ceil(max(time, least_s) / period_s - 1e-9) * price_per_period[r, v]
                works = min(stopped[r, v], end) - max(ready[r, v], begin)
                if works <= 0.0:
                    continue
                moment = (offset[r, v] + step) % shortest
                weight[v] = power[r, v] * speed_pool[trace[r, v], moment] * (works / interval_s)
                room[v] = bandwidth[r, v] * bandwidth_pool[trace[r, v], moment] * 125_000.0 * interval_s / message_bytes
                narrowest = min(narrowest, room[v])
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
            for e in range(streams):
                held[e] = pending[r, e]
            sum_omega = 0.0
            sum_output = 0.0
            sum_gamma = 0.0
            for p in range(tasks):
                way = active[r, p]
                sum_gamma += value[p, way]
                if counts_queues:
                    could[p] += queue[r, p]
                possible = could[p] * selectivity[p, way]
                # Eq. 4
                available = queue[r, p] + arrived[r, p]
                work = max(phi[p] * interval_s - lost_power_s[r, p], 0.0)
                work *= max(1.0 - idle_s[r, p] / interval_s, 0.0)
                lost_power_s[r, p] = 0.0
                idle_s[r, p] = 0.0
                finish = available if cost[p, way] <= 0.0 else min(available, work / cost[p, way])
                queue[r, p] = available - finish
                produced = finish * selectivity[p, way]
                capacity[r, p] = work
                done[r, p] = finish
                made[r, p] = produced
                finished[r, p] += finish
                sent[r, p] += produced
                if is_output[p]:
                    sum_output += produced
                    sum_omega += 1.0 if possible <= 0.0 else min(produced / possible, 1.0)
                # Eq. 5 and 6
                for e in range(stream_first[p], stream_first[p + 1]):
                    k = stream_target[e]
                    wanted = pending[r, e] + produced * stream_share[e]
                    through = wanted
                    if wanted > narrowest and phi[p] > 0.0 and phi[k] > 0.0:
                        most_here = 0.0
                        most_there = 0.0
                        for v in range(count):
                            here[v] = placed[r, v, p] * weight[v] / phi[p]
                            there[v] = placed[r, v, k] * weight[v] / phi[k]
                            most_here = max(most_here, here[v])
                            most_there = max(most_there, there[v])
                        if wanted * most_here * most_there > narrowest:
                            through = _crossing(wanted, here, there, room, count)
                    pending[r, e] = wanted - through
                    moved[r, e] = through
                    if stream_returns[e]:
                        returning[r, k] += through
                    else:
                        arrived[r, k] += through
                        could[k] += possible * stream_share[e] + (held[e] if counts_queues else 0.0)
            omega[r, step] = sum_omega / outputs
            gamma[r, step] = sum_gamma / tasks
            mu[r, step] = spent
            cores[r, step] = busy_cores
            output[r, step] = sum_output / interval_s
            for p in range(tasks):
                queues[r, step, p] = queue[r, p]
