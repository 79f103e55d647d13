"""Series that forecasters are measured on: generated rates and machines, and recorded ones where they are."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headgate.simulation.rates import ArrivalRate, Bursts, RandomWalk, Sinusoid
from headgate.simulation.traces import read_csv_columns, traces_of
from headgate.simulation.variability import EC2
from headgate_benchmarks.checkout import shared_data

__all__ = ["Workload", "generated", "recorded"]

Floats = npt.NDArray[np.float64]
DAY = 288
"""Steps of five minutes."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Some series, with a season or none, and how far ahead they are forecast."""

    name: str
    values: Floats
    season: int = 0
    horizon: int = 12
    warm_up: int = 72


def generated(seed: int) -> list[Workload]:
    """PLAN-AHEAD's wave, DYN's random walk, bursts, and machines that vary as EC2's did; steps of five minutes."""

    def drawn(number: int, rate: ArrivalRate, series: int, steps: int) -> Floats:
        return rate.series(np.random.default_rng([seed, number]), series, steps, 300.0)

    return [
        Workload("wave", drawn(1, Sinusoid(75.0, 2.0), 20, 4 * DAY), DAY, warm_up=DAY),
        Workload("random_walk", drawn(2, RandomWalk(50.0, step=0.05), 20, 2 * DAY)),
        Workload("bursts", drawn(3, Bursts(50.0, lasting_s=1_800.0, every_s=14_400.0), 20, 2 * DAY)),
        Workload("vm_ec2", EC2.pool(seed, 50, 48.0).speed),
    ]


def recorded(progress: Callable[[str], None]) -> list[Workload]:
    """Tweets, Azure's and PlanetLab's machines, and an EC2 machine that runs out of credits, where they are."""
    folder = shared_data()
    if folder is None:
        progress("no folder of shared data: recorded series are left out")
        return []
    workloads = []
    for make in (_tweets, _azure, _planetlab, _credits):
        try:
            workloads += make(folder)
        except FileNotFoundError as error:
            progress(f"{error.filename} is not there: left out")
    return workloads


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _means(values: Floats, together: int) -> Floats:
    """Means of so many steps each, without the gaps; NaN where all are gaps."""
    blocks = values[: len(values) // together * together].reshape(-1, together)
    known = ~np.isnan(blocks)
    count = known.sum(axis=1)
    return np.where(count > 0, np.where(known, blocks, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _tweets(folder: Path) -> list[Workload]:
    by_minute = _rows(folder / "arrival_rates" / "twitter_stream_per_minute.csv.gz")
    minutes = np.array([float(row["tweets"]) if row["valid"] == "1" else np.nan for row in by_minute])
    by_second = _rows(folder / "arrival_rates" / "twitter_stream_per_second_48h.csv.gz")
    seconds = np.array([float(row["tweets"]) for row in by_second[:86_400]])
    return [
        Workload("tweets_5min", _means(minutes, 5)[None, :], DAY, warm_up=2 * DAY),
        Workload("tweets_20s", _means(seconds, 20)[None, :]),
    ]


def _azure(folder: Path) -> list[Workload]:
    path = folder / "azure_vm_noise" / "perf_10min_28d.csv.gz"
    if not path.exists():
        raise FileNotFoundError(2, "", str(path))
    columns = read_csv_columns(path)
    # Two weeks are enough to compare forecasters.
    return [
        Workload(f"azure_{metric}", np.array([each.values[:2_016] for each in traces_of(columns, path.name, metric)]))
        for metric in ("cache", "app")
    ]


def _planetlab(folder: Path) -> list[Workload]:
    path = folder / "planetlab_cpu" / "planetlab_20110303_200vms.csv.gz"
    if not path.exists():
        raise FileNotFoundError(2, "", str(path))
    traces = traces_of(read_csv_columns(path), path.name)
    return [Workload("planetlab", np.array([100 - each.values for each in traces]))]


def _credits(folder: Path) -> list[Workload]:
    rows = _rows(folder / "ec2_burst_2015" / "bursting.csv")
    runs = sorted((float(row["t_epoch"]), float(row["value"])) for row in rows if row["config"] == "t2micro_longterm")
    # Work done in a second, run by run.
    return [Workload("ec2_credits", np.array([[1 / value for _, value in runs]]), horizon=6, warm_up=20)]
