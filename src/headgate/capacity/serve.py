r"""Relative throughput (DYN, Eq. 4 to 7). These equations stand here and nowhere else.

Simulator, planners and policies call :func:`serve`, for a step of any length: rates are a step of one second.

.. math::
    q_i' &= q_i + a_i - d_i, \quad d_i = \min(q_i + a_i, \phi_i / c_i)  & \text{(4)} \\
    a_k &= \textstyle\sum_i s_i f_{ik} d_i                             & \text{(5, 6)} \\
    \Omega &= \tfrac{1}{|O|} \textstyle\sum_{o \in O} s_o d_o / (s_o \hat a_o)  & \text{(7)}

with queue q, arrivals a, messages done d, work :math:`\phi` in core-seconds of the reference core, cost c in
core-seconds a message, selectivity s, share f of a stream, and :math:`\hat a`, what would arrive if nothing held
messages up. Tasks of one fragment share their fate: all do the same part of what they could.

Reference: Kumbhare et al., DYN, Eq. 4 to 7. Deviations: what the network has no room for waits and is not lost; an
output with selectivity 0 counts what it processes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.model.arrays import Floats, Ints, Shape
from headgate.queueing.compiled import borrowing, compiled

__all__ = ["NO_NETWORK", "bottleneck", "offered_to", "propagate", "rates_of", "serve", "serve_once"]

_NOWHERE = np.zeros(0, dtype=np.int64)
_NO_LINKS = (np.zeros(0), np.zeros((0, 0)), _NOWHERE, _NOWHERE, 1.0, 1.0, np.zeros(0), np.zeros(0))

NO_NETWORK = (np.zeros((0, 0), dtype=np.int64), np.zeros(0), np.zeros(0), _NO_LINKS, np.inf)
"""Machines that carry whatever is sent."""


@borrowing
def _crossing(wanted: float, source: int, target: int, power: Any, network: Any) -> float:
    """How many of ``wanted`` messages get through if each pair of machines carries its share.

    A pair carries at most what the narrower of its ends does; what is on one machine needs no network. Groups of equal
    machines are looked at once.
    """
    placed, speed, machines, links, _ = network
    bandwidth, pool, trace, moment, seconds, message_bytes, room, there = links
    count = len(speed)
    most_here, most_there, narrowest = 0.0, 0.0, np.inf
    for v in range(count):
        there[v] = placed[v, target] * speed[v] / power[target]
        most_here = max(most_here, placed[v, source] * speed[v] / power[source])
        most_there = max(most_there, there[v])
        if speed[v] > 0.0:
            room[v] = bandwidth[v] * pool[trace[v], moment[v]] * 125_000.0 * seconds / message_bytes
            narrowest = min(narrowest, room[v])
    if wanted <= narrowest or wanted * most_here * most_there <= narrowest:
        return wanted
    moved = 0.0
    for v in range(count):
        here = placed[v, source] * speed[v] / power[source]
        if here > 0.0:
            for w in range(count):
                if there[w] > 0.0:
                    part = wanted * here * there[w]
                    same = machines[v] if v == w else 0.0
                    moved += min(part, room[v], room[w]) * (machines[v] * machines[w] - same) + part * same
    return min(moved, wanted)


@borrowing
def _held_back(begin: int, end: int, flow: Any, arrived: Any, queue: Any, work: float, rows: Any, rest: Any) -> None:
    """Write what each task of a fragment must leave waiting for want of work: the same part of what waits before it."""
    cost, out, first, target, share, returns = flow[:6]
    for p in range(begin, end):
        rows[p] = queue[p] + arrived[p]
    needed = 0.0
    for p in range(begin, end):
        needed += cost[p] * rows[p]
        for e in range(first[p], first[p + 1]):
            if target[e] < end and not returns[e]:
                rows[target[e]] += rows[p] * out[p] * share[e]
    missing = 1.0 - work / needed if needed > work * (1.0 + 1e-12) else 0.0
    for p in range(begin, end):
        rest[p] = (queue[p] + arrived[p]) * missing


@borrowing
def serve(flow: Any, load: Any, power: Any, network: Any, results: Any) -> float:
    """Take all tasks through a step; returns relative throughput, the mean over the dataflows.

    ``flow`` is the dataflow with given alternates, its fragments in order, and the outputs of each dataflow. ``load``
    is what arrived (which may still grow), what waits for tasks and for the network, where feedback goes, the work
    that fragments can do, and whether the backlog counts as achievable output. ``network`` is cores by machine and
    task, their speed, how many machines are equal, what their links carry, and what all of them carry at least;
    ``power`` is by task.
    ``results`` is overwritten: achievable input, done, made, moved by stream, and Omega by dataflow.
    """
    cost, out, first, target, share, returns, fragment, owner, output = flow
    arrived, queue, pending, returning, work, counts_queues = load
    could, done, made, moved, omega, rows, rest = results
    narrowest = network[4]
    g = -1
    together = False
    for p in range(len(cost)):
        if p == fragment[g + 1]:
            g += 1
            together = fragment[g + 1] - p > 1
            if together:
                _held_back(p, fragment[g + 1], flow, arrived, queue, work[g], rows, rest)
        if counts_queues:
            could[p] += queue[p]
        possible = could[p] * out[p]
        # Eq. 4
        available = queue[p] + arrived[p]
        finish = available
        if together:
            finish -= rest[p]
        elif cost[p] > 0.0:
            finish = min(available, work[g] / cost[p])
        queue[p] = available - finish
        produced = finish * out[p]
        done[p] = finish
        made[p] = produced
        # Eq. 5 and 6
        for e in range(first[p], first[p + 1]):
            k = target[e]
            held = pending[e]
            wanted = held + produced * share[e]
            through = wanted
            if wanted > narrowest and power[p] > 0.0 and power[k] > 0.0:
                through = _crossing(wanted, p, k, power, network)
            pending[e] = wanted - through
            moved[e] = through
            if returns[e]:
                returning[k] += through
            else:
                arrived[k] += through
                could[k] += possible * share[e] + (held if counts_queues else 0.0)
    # Eq. 7
    total = 0.0
    for d in range(len(owner) - 1):
        kept = 0.0
        for i in range(owner[d], owner[d + 1]):
            p = output[i]
            possible = could[p] * out[p]
            if possible > 0.0:
                kept += min(made[p] / possible, 1.0)
            else:
                kept += min(done[p] / could[p], 1.0) if could[p] > 0.0 else 1.0
        omega[d] = kept / (owner[d + 1] - owner[d])
        total += omega[d]
    return total / (len(owner) - 1)


serve_once = getattr(serve, "py_func", serve)
"""The same as it is written: a single step now and then is over before it could be compiled."""


def rates_of(shape: Shape, active: Ints, external: Floats) -> tuple[Any, ...]:
    """What :func:`propagate` needs: a dataflow with given alternates, rates from outside by task, and room to work."""
    arrived, queue, could, done, made, work, rest = (np.zeros(shape.tasks) for _ in range(7))
    pending, moved = (np.zeros(len(shape.stream_target)) for _ in range(2))
    results = (could, done, made, moved, np.zeros(shape.owners), rest, rest)
    return (shape.flow(active), external.copy(), (arrived, queue, pending, work), NO_NETWORK, results)


@borrowing
def propagate(rates: Any, power: Any) -> float:
    """Relative throughput when tasks have a given power for themselves, nothing waits and the network carries all.

    >>> from headgate import parse
    >>> tasks = (
    ...     "tasks: [{id: a, type: opaque, cost_s: 0.5, ports: {outputs: [out]}}, {id: b, type: opaque, inputs: [a]}]"
    ... )
    >>> shape = Shape.of(parse(tasks, "yaml").dataflow, {("b", "opaque"): (1.0, 1.0)})
    >>> rates = rates_of(shape, np.zeros(2, dtype=np.int64), np.array([4.0, 0.0]))
    >>> propagate(rates, np.array([2.0, 3.0])), offered_to(rates).tolist()
    (0.75, [4.0, 4.0])
    """
    flow, external, state, network, results = rates
    arrived, queue, pending, work = state
    for p in range(len(arrived)):
        arrived[p] = external[p]
        results[0][p] = external[p]
        queue[p] = 0.0
        work[p] = power[p]
    # Feedback counts as input of the task that it returns to, which has had its turn.
    return serve(flow, (arrived, queue, pending, arrived, work, False), power, network, results)


@compiled
def offered_to(rates: Any) -> Any:
    """The input of each task in the last :func:`propagate`."""
    return rates[2][0]


@borrowing
def bottleneck(rates: Any, power: Any) -> int:
    """The task that keeps up with the least share of its input; -1 if all keep up."""
    cost, offered = rates[0][0], rates[2][0]
    lowest = 1.0 - 1e-9
    chosen = -1
    for p in range(len(cost)):
        if cost[p] > 0.0 and offered[p] > 0.0:
            ratio = power[p] / cost[p] / offered[p]
            if ratio < lowest:
                lowest = ratio
                chosen = p
    return chosen
