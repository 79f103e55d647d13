"""What the alternates of Linear Road are worth: how near they come to minutes and journeys that they have not seen.

    .venv/bin/python examples/linear_road/alternates.py

Congestion is judged by the speed of each segment in the next minute, travel time by how long a car takes that drives
through the minutes to come, rain and all. The first fifteen minutes are not judged. The value of an alternate is the
mean absolute error of the best one over its own; the expressways are others than those that the models were chosen on.
"""

import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

__all__ = ["costs", "measured", "speeds_of"]

SEED, MINUTES, FIRST = 100, 45, 15
SEGMENTS = 100


def speeds_of(traffic):
    """The mean speed of each expressway, direction, segment along it, and minute; nan where no car was."""
    rows = {name: values[traffic.columns["type"] == 0] for name, values in traffic.columns.items()}
    along = np.where(rows["dir"] == 0, rows["seg"], SEGMENTS - 1 - rows["seg"])
    minute = rows["time"] // 60
    shape = (rows["xway"].max() + 1, 2, SEGMENTS, minute.max() + 1)
    cell = np.ravel_multi_index((rows["xway"], rows["dir"], along, minute), shape)
    total, count = (np.bincount(cell, weights, np.prod(shape)) for weights in (rows["spd"], None))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(shape)


def forecasts(speeds, model, wet):
    """What a model forecasts for each minute of a direction, from those before it and the rain that is told ahead."""
    known, made = None, [np.full(SEGMENTS, np.nan)]
    for minute in range(speeds.shape[1] - 1):
        known = model(known, speeds[:, minute], wet[:, minute + 1])
        made.append(known["forecast"])
    return np.column_stack(made)


def driven_s(speeds, start, first, last):
    """How long a car takes from one segment to another that starts in a minute, through what speeds turn out to be."""
    seconds = 0.0
    for segment in range(first, last + 1):
        minute = min(start + int(seconds // 60), speeds.shape[1] - 1)
        seconds += 3_600 / speeds[segment, minute]
    return seconds


def predicted_s(now, usual, trend):
    """How long the journey takes by an alternate of travel_time."""
    seconds = 0.0
    for present, before in zip(now, usual, strict=True):
        speed = before + (present - before) * np.exp(-seconds / 600) if trend and present == present else before
        seconds += 3_600 / speed
    return seconds


def measured(seed=SEED):
    """The mean absolute errors of all alternates, in miles an hour and in seconds."""
    from examples.linear_road.congestion import MODELS
    from examples.linear_road.traffic import STRETCH, Road, make, rain, usual_speeds

    road = Road(cars=3_000, entering_per_s=7.0, accidents=3)
    speeds = speeds_of(make(2, MINUTES * 60, seed, road))
    usual = usual_speeds(2, seed, road)[..., road.dow, road.tod // 60]
    errors = {name: [] for name in (*MODELS, "recent_trend", "history_mean")}
    rng = np.random.default_rng([seed, 9])
    for xway, way in np.ndindex(2, 2):
        here = speeds[xway, way]
        filled = np.where(np.isnan(here), np.nanmean(here, axis=1)[:, None], here)
        before = usual[xway, way] if way == 0 else usual[xway, way, ::-1]
        wet = np.repeat(rain(MINUTES + 1, seed, xway, road), STRETCH, axis=0)
        wet = wet if way == 0 else wet[::-1]
        made = {name: forecasts(here, model, wet) for name, model in MODELS.items()}
        for name, results in made.items():
            errors[name].append(np.abs(results - here)[:, FIRST:].ravel())
        for _ in range(100):
            start, first = int(rng.integers(FIRST, MINUTES - 15)), int(rng.integers(0, 80))
            last = min(first + int(rng.integers(2, 20)), SEGMENTS - 1)
            truth = driven_s(filled, start, first, last)
            for name in ("recent_trend", "history_mean"):
                now = made["regression"][first : last + 1, start]
                predicted = predicted_s(now, before[first : last + 1], name == "recent_trend")
                errors[name].append(np.array([abs(predicted - truth)]))
    return {name: float(np.nanmean(np.concatenate(results))) for name, results in errors.items()}


def values(errors):
    """Errors as values: that of the best alternate of the task over an alternate's own."""
    from examples.linear_road.congestion import MODELS

    results = {}
    for task in (tuple(MODELS), ("recent_trend", "history_mean")):
        best = min(errors[name] for name in task)
        results |= {name: round(best / errors[name], 2) for name in task}
    return results


def costs():
    """Microseconds of CPU per report that each model of congestion takes, in micro-batches of a second."""
    from examples.linear_road.congestion import MODELS, estimated
    from examples.linear_road.traffic import Road, make

    traffic = make(1, 300, SEED, Road(cars=20_000, entering_per_s=50.0))
    here = traffic.rows((traffic.columns["dir"] == 0) & (traffic.columns["type"] == 0)).columns
    cuts = np.searchsorted(here["time"], np.arange(0, 301))
    batches = [{name: tuple(v[a:b].tolist()) for name, v in here.items()} for a, b in pairwise(cuts)]
    results = {}
    for name in MODELS:
        state, began = None, time.process_time()
        for batch in batches:
            state, _ = estimated(state, batch, name, "")
        results[name] = (time.process_time() - began) / len(here["time"]) * 1e6
    return results


def main():
    errors = measured()
    worth, taken = values(errors), costs()
    print(f"{'':14}{'error':>10}{'value':>8}{'CPU/report':>14}")
    for name, error in errors.items():
        unit = "s" if name in ("recent_trend", "history_mean") else "mph"
        cost = f"{taken[name]:.2f} us" if name in taken else ""
        print(f"{name:14}{error:7.2f} {unit:3}{worth[name]:7.2f}{cost:>14}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
