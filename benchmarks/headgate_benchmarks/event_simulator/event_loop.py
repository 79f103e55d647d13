"""The loop that takes a queueing network from event to event, compiled by Numba where it is installed.

Everything is in flat arrays. A *slot* is a tuple in the system, a *root* the tuple from outside from which it stems.
Queues are lists of slots chained through ``after``; future events are a binary heap of (time, code), where a code below
the number of operators is an arrival from outside and any other the end of a slot's service.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.queueing.compiled import compiled

__all__ = ["run_events"]


@compiled
def _draw(rng: Any, kind: int, first: float, second: float, values: Any, begin: int, count: int) -> Any:
    """One value; the numbers of the kinds are those of :class:`distribution.Kind`."""
    if kind == 1:
        return first * rng.standard_exponential()
    if kind == 0:
        return first
    if kind == 2:
        return first + (second - first) * rng.random()
    if kind == 3:
        return second * rng.standard_gamma(first)
    if kind == 4:
        return np.exp(first + second * rng.standard_normal())
    if kind == 5:
        # first: chance of the quick phase; second: overall mean
        share = first if rng.random() < first else 1.0 - first
        return second / (2.0 * share) * rng.standard_exponential()
    if kind == 6:
        return 1.0 if first >= 1.0 else 1.0 + np.floor(np.log(1.0 - rng.random()) / np.log(1.0 - first))
    return values[begin + int(rng.random() * count)]


@compiled
def _push(times: Any, codes: Any, size: int, time: float, code: int) -> int:
    here = size
    while here > 0:
        above = (here - 1) >> 1
        if times[above] <= time:
            break
        times[here] = times[above]
        codes[here] = codes[above]
        here = above
    times[here] = time
    codes[here] = code
    return size + 1


@compiled
def _pop(times: Any, codes: Any, size: int) -> int:
    """Remove the first event, which the caller has read; returns the new size."""
    size -= 1
    time = times[size]
    code = codes[size]
    here = 0
    while True:
        below = 2 * here + 1
        if below >= size:
            break
        if below + 1 < size and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[here] = times[below]
        codes[here] = codes[below]
        here = below
    times[here] = time
    codes[here] = code
    return size


@compiled
def _grown(array: Any) -> Any:
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@compiled
def run_events(
    rng: Any,
    servers: Any,
    speeds: Any,
    speed_begin: Any,
    service: Any,
    arrival: Any,
    bulk: Any,
    parameters: Any,
    values: Any,
    route_begin: Any,
    route_target: Any,
    route_mean: Any,
    chooses: Any,
    warm_up: int,
    tuples: int,
    most_in_system: int,
    sums: Any,
    spans: Any,
    visits: Any,
    waits: Any,
    sojourns: Any,
) -> tuple[int, float, int]:
    """Run until ``tuples`` roots after the first ``warm_up`` are done with.

    ``service``, ``arrival`` and ``bulk`` hold a row of ``parameters`` for each operator, -1 for none. Fills ``sums``
    (of all sojourns of a root's tuples), ``spans`` (arrival of a root to the end of the last of its tuples), and per
    operator ``visits``, ``waits`` and ``sojourns``. Returns how many roots are done with (less than ``tuples`` if more
    than ``most_in_system`` were in the system), the time, and all visits, measured or not.
    """
    n = len(servers)
    busy = np.zeros(n, np.int64)
    server_busy = np.zeros(max(len(speeds), 1), np.bool_)
    head = np.full(n, -1, np.int64)
    tail = np.full(n, -1, np.int64)
    room = 1024
    after = np.empty(room, np.int64)
    since = np.empty(room, np.float64)  # when the slot came to its present operator
    root_of = np.empty(room, np.int64)
    place = np.empty(room, np.int64)
    server = np.empty(room, np.int64)
    slots, free_slot = 0, -1
    root_room = 1024
    born = np.empty(root_room, np.float64)
    alive = np.empty(root_room, np.int64)
    spent = np.empty(root_room, np.float64)
    number = np.empty(root_room, np.int64)  # which of the measured ones, -1 if it is not measured; or next free root
    roots, free_root = 0, -1
    events_room = n + 1
    for i in range(n):
        events_room += servers[i]
    times = np.empty(events_room, np.float64)
    codes = np.empty(events_room, np.int64)
    events = 0
    for i in range(n):
        if arrival[i] >= 0:
            row = parameters[arrival[i]]
            time = _draw(rng, int(row[0]), row[1], row[2], values, int(row[3]), int(row[4]))
            events = _push(times, codes, events, time, i)
    arrived, done, served, in_system = 0, 0, 0, 0
    now = 0.0
    # Tuples that come to an operator at this moment: (operator, root), to be queued or served one by one.
    coming_place = np.empty(1024, np.int64)
    coming_root = np.empty(1024, np.int64)
    while done < tuples and in_system <= most_in_system:
        now = times[0]
        code = codes[0]
        events = _pop(times, codes, events)
        coming = 0
        if code < n:
            row = parameters[bulk[code]]
            size = int(_draw(rng, int(row[0]), row[1], row[2], values, int(row[3]), int(row[4])) + 0.5)
            for _ in range(size):
                if free_root >= 0:
                    root = free_root
                    free_root = number[root]
                else:
                    if roots == root_room:
                        born, alive, spent, number = _grown(born), _grown(alive), _grown(spent), _grown(number)
                        root_room *= 2
                    root = roots
                    roots += 1
                born[root] = now
                alive[root] = 1
                spent[root] = 0.0
                number[root] = arrived - warm_up if warm_up <= arrived < warm_up + tuples else -1
                arrived += 1
                if coming == len(coming_place):
                    coming_place, coming_root = _grown(coming_place), _grown(coming_root)
                coming_place[coming] = code
                coming_root[coming] = root
                coming += 1
            row = parameters[arrival[code]]
            gap = _draw(rng, int(row[0]), row[1], row[2], values, int(row[3]), int(row[4]))
            events = _push(times, codes, events, now + gap, code)
        else:
            slot = code - n
            here = place[slot]
            root = root_of[slot]
            served += 1
            in_system -= 1
            stayed = now - since[slot]
            spent[root] += stayed
            if number[root] >= 0:
                visits[here] += 1
                sojourns[here] += stayed
            # Where its tuples go.
            if chooses[here]:
                if route_begin[here] < route_begin[here + 1]:
                    lot = rng.random()
                    for route in range(route_begin[here], route_begin[here + 1]):
                        lot -= route_mean[route]
                        if lot < 0.0:
                            coming_place[0] = route_target[route]
                            coming_root[0] = root
                            coming = 1
                            break
            else:
                for route in range(route_begin[here], route_begin[here + 1]):
                    copies = int(route_mean[route])
                    fraction = route_mean[route] - copies
                    if fraction > 0.0 and rng.random() < fraction:
                        copies += 1
                    for _ in range(copies):
                        if coming == len(coming_place):
                            coming_place, coming_root = _grown(coming_place), _grown(coming_root)
                        coming_place[coming] = route_target[route]
                        coming_root[coming] = root
                        coming += 1
            alive[root] += coming - 1
            if alive[root] == 0:
                if number[root] >= 0:
                    sums[number[root]] = spent[root]
                    spans[number[root]] = now - born[root]
                    done += 1
                number[root] = free_root
                free_root = root
            # The processor takes the next one.
            following = head[here]
            mine = server[slot]
            after[slot] = free_slot
            free_slot = slot
            if following >= 0:
                head[here] = after[following]
                if head[here] < 0:
                    tail[here] = -1
                row = parameters[service[here]]
                time = _draw(rng, int(row[0]), row[1], row[2], values, int(row[3]), int(row[4]))
                if mine >= 0:
                    time /= speeds[mine]
                server[following] = mine
                if number[root_of[following]] >= 0:
                    waits[here] += now - since[following]
                events = _push(times, codes, events, now + time, n + following)
            else:
                busy[here] -= 1
                if mine >= 0:
                    server_busy[mine] = False
        for index in range(coming):
            here = coming_place[index]
            if free_slot >= 0:
                slot = free_slot
                free_slot = after[slot]
            else:
                if slots == room:
                    after, since, root_of = _grown(after), _grown(since), _grown(root_of)
                    place, server = _grown(place), _grown(server)
                    room *= 2
                slot = slots
                slots += 1
            in_system += 1
            since[slot] = now
            root_of[slot] = coming_root[index]
            place[slot] = here
            after[slot] = -1
            if busy[here] < servers[here]:
                busy[here] += 1
                row = parameters[service[here]]
                time = _draw(rng, int(row[0]), row[1], row[2], values, int(row[3]), int(row[4]))
                mine = -1
                if speed_begin[here] < speed_begin[here + 1]:
                    mine = speed_begin[here]  # speeds are in falling order: the first free one is the quickest
                    while server_busy[mine]:
                        mine += 1
                    server_busy[mine] = True
                    time /= speeds[mine]
                server[slot] = mine
                events = _push(times, codes, events, now + time, n + slot)
            elif tail[here] >= 0:
                after[tail[here]] = slot
                tail[here] = slot
            else:
                head[here] = slot
                tail[here] = slot
    return done, now, served
