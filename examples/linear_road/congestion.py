"""Congestion of one direction of an expressway, estimated in three ways, for drivers who ask how long a journey takes.

Runs as a ``fold`` over all rows of a key, (xway, dir), with alternates that differ in ``model``. The estimate for a
minute follows from the minutes before it. A query for a travel time gets the estimated speeds of the segments on its
way, and the usual ones of that hour, for the task behind.
"""

from functools import lru_cache

import numpy as np

__all__ = ["MODELS", "estimated"]

SEGMENTS, MINUTES = 100, 5


def estimated(state, columns, model, usual):
    """The speeds on the way of each query for a travel time; none for other rows."""
    kind, time = np.array(columns["type"]), np.array(columns["time"])
    results = [None] * len(kind)
    used = np.flatnonzero((kind == 0) | (kind == 4))
    if not len(used):
        return state, results
    used = used[np.argsort(time[used], kind="stable")]
    minutes = time[used] // 60 + 1
    seg, speed = np.array(columns["seg"])[used], np.array(columns["spd"])[used]
    reports = kind[used] == 0
    westbound = columns["dir"][used[0]] == 1
    minute, total, count, known = state or (int(minutes[0]), np.zeros(SEGMENTS), np.zeros(SEGMENTS), None)
    step = MODELS[model]
    for now in np.unique(minutes):
        while minute < now:
            speeds = np.where(count > 0, total / np.maximum(count, 1), np.nan)
            known = step(known, speeds[::-1] if westbound else speeds)
            minute, total, count = minute + 1, np.zeros(SEGMENTS), np.zeros(SEGMENTS)
        here = minutes == now
        mine = here & reports
        total += np.bincount(seg[mine], speed[mine], SEGMENTS)
        count += np.bincount(seg[mine], minlength=SEGMENTS)
        for place in used[here & ~reports]:
            asked = {name: columns[column][place] for name, column in ASKED.items()}
            results[place] = _on_the_way(asked, known, westbound, usual)
    return (minute, total, count, known), results


ASKED = {"xway": "xway", "dir": "dir", "s_init": "seg", "s_end": "pos", "dow": "lane", "tod": "spd"}
"""Where a query has what it asks: in the columns of a report."""


def _on_the_way(asked, known, westbound, usual):
    """Speeds of the segments of a journey, in the order in which they are reached."""
    table = _table(usual)
    way = range(asked["s_init"], asked["s_end"] + 1)
    if westbound:
        way = range(asked["s_init"], asked["s_end"] - 1, -1)
    before = table[asked["xway"] % len(table), asked["dir"], list(way), asked["dow"] % 7, asked["tod"] // 60 % 24]
    now = np.full(SEGMENTS, np.nan) if known is None else known["forecast"]
    if westbound:
        now = now[::-1]
    return {"now": [None if v != v else v for v in now[list(way)].tolist()], "usual": before.astype(float).tolist()}


@lru_cache(maxsize=4)
def _table(path):
    return np.load(path, mmap_mode="r")


# The models: from what is known (None at first) and the speeds of a minute, along the direction and nan where no car
# was, to what is known then; "forecast" is the estimate for the next minute.


def five_minutes(known, speeds):
    """The mean of the last five minutes: Linear Road's own LAV, but for weighing reports and not cars."""
    last = np.full((MINUTES, SEGMENTS), np.nan) if known is None else known["last"]
    last = np.vstack((last[1:], speeds))
    there = ~np.isnan(last)
    count = there.sum(axis=0)
    total = np.where(there, last, 0).sum(axis=0)
    return {"last": last, "forecast": np.where(count > 0, total / np.maximum(count, 1), np.nan)}


SMOOTHING = 0.5


def smoothing(known, speeds):
    """Exponential smoothing, s' = s + a (x - s); a segment without cars keeps its estimate."""
    if known is None:
        return {"forecast": speeds}
    before = known["forecast"]
    moved = before + SMOOTHING * (speeds - before)
    return {"forecast": np.where(np.isnan(speeds), before, np.where(np.isnan(before), speeds, moved))}


FORGETTING, RIDGE = 0.97, 30.0


def regression(known, speeds):
    """A regression for each segment, by recursive least squares.

    x(m) = w . (1, x(m-1), mean of five minutes, x(m-1) one segment and two segments further on), since congestion
    drifts upstream. What is forgotten by the minute is a factor of 0.97. Until it has learned, it is the mean.
    """
    if known is None:
        known = {
            "mean": None,
            "weights": np.tile([0.0, 0.5, 0.5, 0.0, 0.0], (SEGMENTS, 1)),
            "inverse": np.tile(np.eye(5) / RIDGE, (SEGMENTS, 1, 1)),
            "features": None,
        }
    weights, inverse, features = known["weights"], known["inverse"], known["features"]
    if features is not None:
        usable = ~np.isnan(features).any(axis=1) & ~np.isnan(speeds)
        f, p = features[usable], inverse[usable]
        # Speeds are told in tens of miles, so that no feature outweighs the others.
        pf = np.einsum("sij,sj->si", p, f)
        gain = pf / (FORGETTING + np.einsum("si,si->s", f, pf))[:, None]
        error = speeds[usable] / 10 - np.einsum("si,si->s", weights[usable], f)
        weights, inverse = weights.copy(), inverse.copy()
        weights[usable] += gain * error[:, None]
        inverse[usable] = (p - gain[:, :, None] * pf[:, None, :]) / FORGETTING
    mean = five_minutes(known["mean"], speeds)
    last = np.where(np.isnan(speeds), mean["forecast"], speeds)
    further = [np.concatenate((last[ahead:], np.repeat(last[-1:], ahead))) for ahead in (1, 2)]
    further = [np.where(np.isnan(values), last, values) for values in further]
    features = np.column_stack((np.ones(SEGMENTS), last / 10, mean["forecast"] / 10, *(v / 10 for v in further)))
    forecast = np.clip(10 * np.einsum("si,si->s", weights, features), 1, 100)
    return {"mean": mean, "weights": weights, "inverse": inverse, "features": features, "forecast": forecast}


MODELS = {"five_minutes": five_minutes, "smoothing": smoothing, "regression": regression}
