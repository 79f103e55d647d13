"""Recorded worlds: what came in and how machines did, read from the folder of shared data.

There are four, two dataflows by two kinds of machines. The last two were chosen before any policy had seen them:

- every dataflow meets PlanetLab's machines and Azure's, so that neither result is one of a pairing;
- the stretches of tweets are the first that fit and do not overlap: days 3, 10 and 17 of the series by the minute, each
  with three days before it, and the series by the second, which is days 0 and 1, with all before its last twelve hours;
- of Azure's components those by which machines vary most with time beside the remote disk, ``cache`` and ``app``; raw
  CPU hardly varies there;
- means are scaled to those of the realistic worlds, 40 messages/s on ten stages and 50 on Linear Road.

The records of EC2's bursting are left out: the longest is of one machine and an hour and a half.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.trace_statistics import TraceUnit
from headgate.simulation.traces import coefficients, pool_of, read_csv_columns, traces_of
from headgate.simulation.variability import TracePool
from headgate_benchmarks.checkout import shared_data
from headgate_benchmarks.dynamic import ten_stages
from headgate_benchmarks.lookahead.workloads import BEGIN, DAY, STEP_S, STEPS, Workload, on_linear_road, with_past

__all__ = ["recorded"]


def recorded(seed: int, progress: Callable[[str], None]) -> list[Workload]:
    """Tweets on machines of PlanetLab and of Azure, where the folder of shared data is; the seed draws the machines."""
    folder = shared_data()
    if folder is None:
        progress("no folder of shared data: recorded workloads are left out")
        return []
    worlds = []
    for name, make, tweets, pool, about in (
        ("tweets_planetlab", _stages, _days(3), _planetlab, "tweets by the minute from day 3, PlanetLab"),
        ("tweets_azure", _road, _days(10), _azure("cache"), "tweets by the minute from day 10, Azure's caches"),
        ("tweets_planetlab_road", _road, _days(17), _planetlab, "tweets by the minute from day 17, PlanetLab"),
        ("tweets_azure_stages", _stages, _seconds, _azure("app"), "tweets by the second, Azure's applications"),
    ):
        try:
            worlds.append(make(name, tweets(folder), pool(folder), seed, about))
        except FileNotFoundError as error:
            progress(f"{error.filename} is not there: left out")
    return worlds


def _days(first: int) -> Callable[[Path], Floats]:
    """Three days and eighteen hours of the series by the minute, which marks its holes."""

    def read(folder: Path) -> Floats:
        with gzip.open(folder / "arrival_rates" / "twitter_stream_per_minute.csv.gz", "rt") as file:
            rows = list(csv.DictReader(file))
        steps = _steps(np.array([float(row["tweets"]) if row["valid"] == "1" else np.nan for row in rows]))
        return steps[first * DAY : first * DAY + 3 * DAY + BEGIN + STEPS]

    return read


def _seconds(folder: Path) -> Floats:
    """Two days less half an hour: minutes in which nobody tweets are the same holes."""
    with gzip.open(folder / "arrival_rates" / "twitter_stream_per_second_48h.csv.gz", "rt") as file:
        tweets = np.array([float(row["tweets"]) for row in csv.DictReader(file)])
    minutes = tweets.reshape(-1, 60).sum(axis=1)
    return _steps(np.where(minutes > 0, minutes, np.nan))


def _steps(minutes: Floats) -> Floats:
    """In steps of five minutes, with a line across each hole, to where the last hole begins if it has no end."""
    known = np.flatnonzero(~np.isnan(minutes))
    whole = np.interp(np.arange(known[-1] + 1), known, minutes[known])
    step = round(STEP_S / 60)
    steps: Floats = whole[: len(whole) // step * step].reshape(-1, step).mean(axis=1)
    return steps


def _stages(name: str, tweets: Floats, pool: TracePool, seed: int, about: str) -> Workload:
    """Each input gets a share of the stream."""
    scaled = tweets / tweets.mean() * 40.0
    values = np.array([scaled, 0.8 * scaled, 1.2 * scaled])
    return with_past(name, ten_stages(), [f"s1{each}" for each in "abc"], values, pool, seed, about)


def _road(name: str, tweets: Floats, pool: TracePool, seed: int, about: str) -> Workload:
    scaled = tweets / tweets.mean() * 50.0
    return on_linear_road(name, np.array([scaled, scaled / 100]), pool, seed, about)


def _there(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(2, "", str(path))
    return path


def _planetlab(folder: Path) -> TracePool:
    path = _there(folder / "planetlab_cpu" / "planetlab_20110303_200vms.csv.gz")
    traces = traces_of(read_csv_columns(path), path.name)
    return pool_of(coefficients(traces, TraceUnit.USED_PERCENT, path.name), path.name)


def _azure(component: str) -> Callable[[Path], TracePool]:
    def read(folder: Path) -> TracePool:
        path = _there(folder / "azure_vm_noise" / "perf_10min_28d.csv.gz")
        traces = traces_of(read_csv_columns(path), path.name, component)
        return pool_of(coefficients(traces, TraceUnit.SHARE, path.name), path.name)

    return read
