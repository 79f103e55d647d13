"""Segment statistics, accidents and tolls of one direction of an expressway, and what entering cars are told.

Runs as a ``fold`` over all rows of a key, (xway, dir): nothing couples two directions, and within one a toll depends on
five segments and on all cars in them. All that a toll of minute m needs is known when minute m - 1 is over, so a
minute's tolls are 100 numbers, worked out once, and the reports of a micro-batch are looked up together.
"""

import numpy as np

__all__ = ["account", "told"]

SEGMENTS, FEET, STOPPED, ZONE, MINUTES = 100, 5_280, 4, 5, 5
SILENT_S, FORGOTTEN_S = 60, 300
"""After how long a car that enters starts afresh, and after how long any car does."""

CAR = ("time", "seg", "lane", "pos", "same", "pending")
"""What is known of a car: its last report, how many told the same place in a row, and the toll that it was told."""

LONG_AGO = -(10**6)


def told(state, columns):
    """What to tell of some rows of a direction: position reports, and queries, which only pass (those for balances)."""
    kind = np.array(columns["type"])
    results = [None] * len(kind)
    for place in np.flatnonzero(kind == 2):
        results[place] = {"told": False, "charged": 0}
    reports = np.flatnonzero(kind == 0)
    if not len(reports):
        return state, results
    rows = {name: np.array(columns[name])[reports] for name in ("time", "vid", "spd", "lane", "seg", "pos")}
    order = np.argsort(rows["time"], kind="stable")
    rows, reports = {name: values[order] for name, values in rows.items()}, reports[order]
    minutes = rows["time"] // 60 + 1
    state = _with_cars(state or _empty(int(minutes[0])), rows["vid"])
    westbound = columns["dir"][reports[0]] == 1
    bounds = np.flatnonzero(np.diff(minutes, prepend=minutes[0] - 1))
    for first, last in zip(bounds, [*bounds[1:], len(minutes)], strict=True):
        while state["minute"] < minutes[first]:
            _close(state, westbound)
        some = {name: values[first:last] for name, values in rows.items()}
        for place, result in _reported(state, some):
            results[reports[first + place]] = result
    if len(bounds) > 1:
        _forget(state)
    return state, results


def _empty(minute):
    nothing = np.zeros(0, np.int32)
    return {
        "minute": minute,
        "vid": nothing,
        **dict.fromkeys(CAR, nothing),
        "seen": [],  # (car and segment, speed) of the reports of this minute
        "speeds": np.full((MINUTES, SEGMENTS), np.nan),  # of the last minutes, the oldest first
        "lav": np.full(SEGMENTS, np.nan),
        "toll": np.zeros(SEGMENTS, np.int64),
        "accident": np.full(SEGMENTS, -1),
    }


def _with_cars(state, vids):
    """The state with a place for each of these cars; the table is ordered by car."""
    known, vids = state["vid"], np.unique(vids)
    at = np.searchsorted(known, vids)
    is_new = np.ones(len(vids), bool)
    is_new[at < len(known)] = known[at[at < len(known)]] != vids[at < len(known)]
    if is_new.any():
        new, at = vids[is_new], at[is_new]
        blank = {"time": LONG_AGO, "seg": -1, "lane": -1, "pos": -1, "same": 0, "pending": 0}
        state["vid"] = np.insert(state["vid"], at, new).astype(np.int32)
        for name in CAR:
            state[name] = np.insert(state[name], at, blank[name]).astype(np.int32)
    return state


def _reported(state, rows):
    """What to tell of reports within one minute, by their places; of a car with several, one after the other."""
    for turn in _turns(rows["vid"]):
        now = rows if turn is None else {name: values[turn] for name, values in rows.items()}
        car = np.searchsorted(state["vid"], now["vid"])
        was = {name: state[name][car] for name in CAR}
        silent = now["time"] - was["time"]
        out = was["lane"] == 4
        fresh = (silent > FORGOTTEN_S) | ((now["lane"] == 0) & (out | (silent > SILENT_S)))
        counts = fresh | ~out  # who has left comes in by the ramp, or is not there
        moved = ~fresh & (now["seg"] != was["seg"])
        enters = (fresh | moved) & (now["lane"] != 4) & counts
        toll = np.where(enters, state["toll"][now["seg"]], 0)
        charged = np.where(moved & counts, was["pending"], 0)
        pending = np.where(enters, toll, np.where(moved | (now["lane"] == 4), 0, was["pending"]))
        same = np.where(~fresh & (now["lane"] == was["lane"]) & (now["pos"] == was["pos"]), was["same"] + 1, 1)
        new = {**now, "same": same, "pending": np.where(fresh & ~enters, 0, pending)}
        for name in CAR:
            state[name][car[counts]] = new[name][counts]
        seen = now["vid"][counts].astype(np.int64) * SEGMENTS + now["seg"][counts]
        state["seen"].append((seen, now["spd"][counts].astype(np.int16)))
        worth = np.flatnonzero(enters | (charged > 0))
        seg = now["seg"][worth]
        parts = (enters[worth], charged[worth], state["lav"][seg], toll[worth], state["accident"][seg])
        places = worth if turn is None else turn[worth]
        for place, is_told, charge, lav, price, accident in zip(
            places.tolist(), *(p.tolist() for p in parts), strict=True
        ):
            if is_told:
                where = accident if accident >= 0 else None
                lav = None if lav != lav else lav
                yield place, {"told": True, "lav": lav, "toll": price, "accident": where, "charged": charge}
            else:
                yield place, {"told": False, "charged": charge}


def _turns(vids):
    """The places of rows such that no car is twice in one turn; ``None`` for all of them."""
    order = np.argsort(vids, kind="stable")
    again = np.diff(vids[order]) == 0
    if not again.any():
        return [None]
    # How many rows of the same car come before a row.
    starts = np.flatnonzero(np.concatenate(([True], ~again)))
    rank = np.arange(len(vids)) - np.repeat(starts, np.diff([*starts, len(vids)]))
    return [np.sort(order[rank == turn]) for turn in range(rank.max() + 1)]


def _close(state, westbound):
    """End a minute: its statistics, and the accidents and tolls of the next one."""
    cars = np.zeros(SEGMENTS, np.int64)
    speeds = np.full(SEGMENTS, np.nan)
    if state["seen"]:
        seen, speed = (np.concatenate(parts) for parts in zip(*state["seen"], strict=True))
        pairs, which, reports = np.unique(seen, return_inverse=True, return_counts=True)
        of_car = np.bincount(which, speed) / reports
        seg = pairs % SEGMENTS
        cars = np.bincount(seg, minlength=SEGMENTS)
        there = cars > 0
        speeds[there] = np.bincount(seg, of_car, SEGMENTS)[there] / cars[there]
    state["seen"] = []
    state["minute"] += 1
    state["speeds"] = np.vstack((state["speeds"][1:], speeds))
    known = np.count_nonzero(~np.isnan(state["speeds"]), axis=0)
    total = np.nansum(state["speeds"], axis=0)
    state["lav"] = np.where(known > 0, np.round(total / np.maximum(known, 1), 9), np.nan)
    state["accident"] = _zones(state, westbound)
    dear = (state["lav"] < 40) & (cars > 50) & (state["accident"] < 0)
    state["toll"] = np.where(dear, 2 * (cars - 50) ** 2, 0)


def _zones(state, westbound):
    """For each segment the next accident within reach of it, -1 if there is none."""
    zones = np.full(SEGMENTS, -1)
    stopped = np.flatnonzero(state["same"] >= STOPPED)
    if len(stopped) < 2:
        return zones
    places, cars = np.unique(state["pos"][stopped].astype(np.int64) * 8 + state["lane"][stopped], return_counts=True)
    found = np.unique(places[cars >= 2] // 8 // FEET)
    # The nearest one last, so that it is the one that stays.
    for seg in found if westbound else found[::-1]:
        low, high = (seg, seg + ZONE) if westbound else (seg - ZONE + 1, seg + 1)
        zones[max(low, 0) : high] = seg
    return zones


def _forget(state):
    """Leave out cars that have been silent for so long that they would start afresh; but not those that stand."""
    over = (state["minute"] - 1) * 60
    keep = (over - state["time"] <= FORGOTTEN_S) | (state["same"] >= STOPPED)
    if not keep.all():
        for name in ("vid", *CAR):
            state[name] = state[name][keep]


def account(state, columns):
    """The balance of one car for each query, from the tolls that it was charged: as of the second before the query.

    A toll of the very second of a query may have come or not. That second is left out, so the answer is the same
    however rows fall into micro-batches.
    """
    settled, at, last = state or (0, LONG_AGO, 0)
    results = [None] * len(columns["time"])
    rows = sorted(zip(columns["time"], columns["type"], columns["charged"], range(len(results)), strict=True))
    for time, kind, charged, place in rows:
        if time > at:
            settled, at, last = settled + last, time, 0
        if kind == 2:
            results[place] = {"balance": settled, "as_of": time - 1}
        else:
            last += charged
    return (settled, at, last), results
