"""Congestion of one direction of an expressway, estimated in three ways, for drivers who ask how long a journey takes.

Runs as a ``fold`` over all rows of a key, (xway, dir), with alternates that differ in ``model``. The estimate for a
minute follows from the minutes before it, and from what weather stations told of it then. A query for a travel time
gets the estimated speeds of the segments on its way, and the usual ones of that hour, for the task behind.
"""

from functools import lru_cache

import numpy as np

__all__ = ["MODELS", "estimated"]

SEGMENTS, MINUTES = 100, 5
REPORT, JOURNEY, WEATHER = 0, 4, 5
STRETCH = 10
"""Segments that a weather station tells of."""


def estimated(state, columns, model, usual):
    """The speeds on the way of each query for a travel time; none for other rows."""
    kind, time = np.array(columns["type"]), np.array(columns["time"])
    results = [None] * len(kind)
    used = np.flatnonzero((kind == REPORT) | (kind == JOURNEY) | (kind == WEATHER))
    if not len(used):
        return state, results
    used = used[np.argsort(time[used], kind="stable")]
    minutes = time[used] // 60 + 1
    seg, speed = np.array(columns["seg"])[used], np.array(columns["spd"])[used]
    kind = kind[used]
    westbound = columns["dir"][used[0]] == 1
    minute, total, count, rain, known = state or (
        int(minutes[0]),
        np.zeros(SEGMENTS),
        np.zeros(SEGMENTS),
        np.full(SEGMENTS, np.nan),
        None,
    )
    step = MODELS[model]
    for now in np.unique(minutes):
        while minute < now:
            speeds = np.where(count > 0, total / np.maximum(count, 1), np.nan)
            known = step(known, *((speeds[::-1], rain[::-1]) if westbound else (speeds, rain)))
            minute, total, count = minute + 1, np.zeros(SEGMENTS), np.zeros(SEGMENTS)
        here = minutes == now
        mine = here & (kind == REPORT)
        total += np.bincount(seg[mine], speed[mine], SEGMENTS)
        count += np.bincount(seg[mine], minlength=SEGMENTS)
        for place in np.flatnonzero(here & (kind == WEATHER)):
            rain = rain.copy()
            rain[seg[place] : seg[place] + STRETCH] = speed[place] / 10
        for place in used[here & (kind == JOURNEY)]:
            asked = {name: columns[column][place] for name, column in ASKED.items()}
            results[place] = _on_the_way(asked, known, westbound, usual)
    return (minute, total, count, rain, known), results


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


# The models: from what is known (None at first), the speeds of a minute, along the direction and nan where no car was,
# and the rain of the next one, nan where no station has told, to what is known then; "forecast" is the estimate for
# the next minute.


def five_minutes(known, speeds, rain=None):
    """The mean of the last five minutes: Linear Road's own LAV, but for weighing reports and not cars."""
    del rain  # only the regression makes use of it
    last = np.full((MINUTES, SEGMENTS), np.nan) if known is None else known["last"]
    last = np.vstack((last[1:], speeds))
    there = ~np.isnan(last)
    count = there.sum(axis=0)
    total = np.where(there, last, 0).sum(axis=0)
    return {"last": last, "forecast": np.where(count > 0, total / np.maximum(count, 1), np.nan)}


SMOOTHING = 0.5


def smoothing(known, speeds, rain=None):
    """Exponential smoothing, s' = s + a (x - s); a segment without cars keeps its estimate."""
    del rain
    if known is None:
        return {"forecast": speeds}
    before = known["forecast"]
    moved = before + SMOOTHING * (speeds - before)
    return {"forecast": np.where(np.isnan(speeds), before, np.where(np.isnan(before), speeds, moved))}


FORGETTING, RIDGE = 0.97, 30.0
FIRST_WEIGHTS = (0.0, 0.5, 0.5, 0.0, 0.0, -1.5)
"""Before anything is learned: the mean of the last minute and of five, and 15 mph from dry to soaked."""

HALF_WET_MM_PER_H = 5.0


def regression(known, speeds, rain=None):
    """A regression for each segment, by recursive least squares.

    x(m) = w . (1, x(m-1), mean of five minutes, x(m-1) one segment and two segments further on, change of wetness),
    since congestion drifts upstream, and cars slow down when it begins to rain. What is forgotten by the minute is a
    factor of 0.97. Until it has learned, it is the mean.
    """
    size = len(FIRST_WEIGHTS)
    rain = np.full(SEGMENTS, np.nan) if rain is None else rain
    if known is None:
        known = {
            "mean": None,
            "weights": np.tile(FIRST_WEIGHTS, (SEGMENTS, 1)),
            "inverse": np.tile(np.eye(size) / RIDGE, (SEGMENTS, 1, 1)),
            "features": None,
            "rain": np.full(SEGMENTS, np.nan),
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
    wetter = np.nan_to_num(_wetness(rain) - _wetness(known["rain"]))  # none where it is not known
    speeds_told = (last, mean["forecast"], *further)
    features = np.column_stack((np.ones(SEGMENTS), *(values / 10 for values in speeds_told), wetter))
    forecast = np.clip(10 * np.einsum("si,si->s", weights, features), 1, 100)
    return {
        "mean": mean,
        "weights": weights,
        "inverse": inverse,
        "features": features,
        "forecast": forecast,
        "rain": rain,
    }


def _wetness(rain):
    """How wet the road is, from 0 to 1."""
    return rain / (rain + HALF_WET_MM_PER_H)


MODELS = {"five_minutes": five_minutes, "smoothing": smoothing, "regression": regression}
