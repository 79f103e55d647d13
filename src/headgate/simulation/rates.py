"""Arrival rates as values, each of which makes a series for every replication."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite, pi
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue

__all__ = ["ArrivalRate", "Bootstrap", "Bursts", "Constant", "RandomWalk", "Recorded", "Sinusoid", "Steps"]

Floats = npt.NDArray[np.float64]


class ArrivalRate(Protocol):
    """Messages per second over time."""

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        """Mean messages per second in each interval, a row for each replication.

        The first rows do not depend on how many follow.
        """

    @property
    def mean_per_s(self) -> float:
        """The long-run mean, for which a static deployment is sized."""

    @property
    def peak_per_s(self) -> float:
        """What it hardly ever exceeds."""


def _check(name: str, value: float, above: bool = False) -> None:
    if not isfinite(value) or value < 0 or (above and value == 0):
        raise BadValue(f"{name} is {value:g}", "a finite number " + ("above 0" if above else "of at least 0"))


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same."""

    rate_per_s: float

    def __post_init__(self) -> None:
        _check("rate_per_s", self.rate_per_s)

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        del rng, interval_s
        return np.full((replications, intervals), self.rate_per_s)

    @property
    def mean_per_s(self) -> float:
        return self.rate_per_s

    @property
    def peak_per_s(self) -> float:
        return self.rate_per_s


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """A walk about a mean that turns back at ``spread`` below and above it.

    Each interval it moves by a normal step with standard deviation ``step`` (of the mean) for each two minutes' time.
    DYN varies rates by a random walk of 50 % about the mean; it does not give the step size, ours is 10 %.

    >>> walk = RandomWalk(100.0).series(np.random.default_rng(1), 50, 360, 120.0)
    >>> bool(walk.min() >= 50), bool(walk.max() <= 150), bool(abs(walk.mean() - 100) < 5)
    (True, True, True)
    """

    mean: float
    spread: float = 0.5
    step: float = 0.1

    def __post_init__(self) -> None:
        _check("mean", self.mean)
        _check("step", self.step)
        if not 0 <= self.spread <= 1:
            raise BadValue(f"spread is {self.spread:g}", "a share of the mean from 0 to 1")

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        if self.spread == 0:
            return np.full((replications, intervals), self.mean)
        draws = rng.standard_normal((replications, intervals))
        steps = self.step * np.sqrt(interval_s / 120.0) * draws
        steps[:, 0] = self.spread * (2 * _uniform(draws[:, 0]) - 1)  # it starts anywhere
        # A free walk folded at the limits is a walk that turns back there.
        folded = np.abs(np.mod(np.cumsum(steps, axis=1) + self.spread, 4 * self.spread) - 2 * self.spread)
        return np.asarray(self.mean * (1 + self.spread - folded))

    @property
    def mean_per_s(self) -> float:
        return self.mean

    @property
    def peak_per_s(self) -> float:
        return self.mean * (1 + self.spread)


def _uniform(normal: Floats) -> Floats:
    """Normal numbers made uniform, by the logistic curve that is nearest to the normal distribution."""
    return 1 / (1 + np.exp(-1.702 * normal))


@dataclass(frozen=True, slots=True)
class Sinusoid:
    """A wave between trough and peak, with new noise every minute.

    It starts at its trough, unless ``phase`` (a share of the period) says otherwise. PLAN-AHEAD: peak 75, trough 2, a
    period of 24 h, noise up to 20 %.
    """

    peak: float
    trough: float
    period_s: float = 86_400.0
    noise: float = 0.2
    noise_every_s: float = 60.0
    phase: float = 0.0

    def __post_init__(self) -> None:
        _check("trough", self.trough)
        _check("period_s", self.period_s, above=True)
        _check("noise_every_s", self.noise_every_s, above=True)
        if not (isfinite(self.peak) and self.peak >= self.trough):
            raise BadValue(f"peak is {self.peak:g} and trough {self.trough:g}", "a peak of at least the trough")
        if not 0 <= self.noise <= 1:
            raise BadValue(f"noise is {self.noise:g}", "a share from 0 to 1")

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        moments = max(1, round(interval_s / self.noise_every_s))
        at = (np.arange(intervals * moments) + 0.5) * (interval_s / moments) / self.period_s + self.phase
        wave = self.trough + (self.peak - self.trough) * (1 - np.cos(2 * pi * at)) / 2
        means = wave.reshape(intervals, moments)
        series = np.empty((replications, intervals))
        # A row at a time: noise by the minute for all replications would take many times the memory of the result.
        for row in range(replications):
            noise = rng.uniform(-self.noise, self.noise, (intervals, moments))
            series[row] = (means * (1 + noise)).mean(axis=1)
        return series

    @property
    def mean_per_s(self) -> float:
        return (self.peak + self.trough) / 2

    @property
    def peak_per_s(self) -> float:
        return self.peak * (1 + self.noise)


@dataclass(frozen=True, slots=True)
class Steps:
    """Rates that change at given times: pairs of (seconds from the start, messages per second)."""

    steps: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.steps or self.steps[0][0] != 0:
            raise BadValue("steps do not begin at 0 s", "a first step at 0")
        times = [at for at, _ in self.steps]
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise BadValue("steps are not in order of time", "each step after the one before it")
        for at, rate in self.steps:
            _check(f"rate at {at:g} s", rate)

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        del rng
        times = np.array([at for at, _ in self.steps])
        rates = np.array([rate for _, rate in self.steps])
        total = np.concatenate([[0.0], np.cumsum(np.diff(times) * rates[:-1])])
        edges = np.arange(intervals + 1) * interval_s
        place = np.searchsorted(times, edges, side="right") - 1
        upto = total[place] + (edges - times[place]) * rates[place]
        return np.tile(np.diff(upto) / interval_s, (replications, 1))

    def mean_until(self, end_s: float) -> float:
        """The mean from the start to a moment, each rate weighted by how long it lasts."""
        return float(self.series(np.random.default_rng(0), 1, 1, end_s)[0, 0])

    @property
    def mean_per_s(self) -> float:
        """Weighted by time; the last rate, which has no end, counts as long as the others do in the mean.

        >>> Steps(((0.0, 10.0), (900.0, 2.0), (1_000.0, 0.0))).mean_per_s
        6.133333333333334
        """
        others = len(self.steps) - 1
        return self.mean_until(self.steps[-1][0] * (others + 1) / others) if others else self.steps[0][1]

    @property
    def peak_per_s(self) -> float:
        return max(rate for _, rate in self.steps)


@dataclass(frozen=True, slots=True)
class Bursts:
    """A base rate, and at random times ``factor`` times as much for a while.

    Bursts come ``every_s`` apart and last ``lasting_s`` in the mean, both exponential.
    """

    base: float
    factor: float = 5.0
    every_s: float = 3_600.0
    lasting_s: float = 300.0

    def __post_init__(self) -> None:
        _check("base", self.base)
        _check("factor", self.factor)
        _check("every_s", self.every_s, above=True)
        _check("lasting_s", self.lasting_s, above=True)

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        series = np.empty((replications, intervals))
        until = intervals * interval_s
        edges = np.arange(intervals + 1) * interval_s
        pairs = int(2 * until / (self.every_s + self.lasting_s)) + 20
        children = rng.spawn(replications)
        for row, child in enumerate(children):
            times: list[float] = []
            at = 0.0
            while at < until:
                quiet, burst = child.exponential(self.every_s, pairs), child.exponential(self.lasting_s, pairs)
                for between, length in zip(quiet, burst, strict=True):
                    times += [at + between, at + between + length]
                    at = times[-1]
            on, off = np.array(times[::2]), np.array(times[1::2])
            # Seconds of bursts up to each edge.
            whole = np.concatenate([[0.0], np.cumsum(off - on)])
            ended = np.searchsorted(off, edges)
            inside = np.clip(edges - on[np.minimum(ended, len(on) - 1)], 0, None)
            series[row] = np.diff(whole[ended] + inside) / interval_s
        return np.asarray(self.base * (1 + (self.factor - 1) * series))

    @property
    def mean_per_s(self) -> float:
        return self.base * (1 + (self.factor - 1) * self.lasting_s / (self.every_s + self.lasting_s))

    @property
    def peak_per_s(self) -> float:
        return self.base * max(self.factor, 1.0)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A series as it was recorded, ``every_s`` apart, from ``start_s`` on; when it ends it begins again.

    >>> Recorded((1.0, 3.0), 60.0).series(np.random.default_rng(1), 1, 3, 90.0).round(3).tolist()
    [[1.667, 1.667, 2.333]]
    """

    values_per_s: tuple[float, ...] = field(repr=False)
    every_s: float
    start_s: float = 0.0

    def __post_init__(self) -> None:
        _check_recorded(self.values_per_s, self.every_s)
        _check("start_s", self.start_s)

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        del rng
        values = np.array(self.values_per_s)
        total = np.concatenate([[0.0], np.cumsum(values) * self.every_s])
        length = len(values) * self.every_s
        edges = self.start_s + np.arange(intervals + 1) * interval_s
        round_trips, within = np.divmod(edges, length)
        upto = round_trips * total[-1] + np.interp(within, np.arange(len(total)) * self.every_s, total)
        return np.tile(np.diff(upto) / interval_s, (replications, 1))

    @property
    def mean_per_s(self) -> float:
        return sum(self.values_per_s) / len(self.values_per_s)

    @property
    def peak_per_s(self) -> float:
        return float(np.quantile(self.values_per_s, 0.99))


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Another day like those that were recorded: blocks drawn from a recorded series, by time of day.

    Each block of ``block_s`` is taken from the same time of a random ``season_s`` (a day) of the series, so that the
    day's course and short bursts stay and days differ. A series shorter than two seasons has its blocks drawn from
    anywhere.

    Reference: the seasonal block bootstrap, D. N. Politis 2001, *Resampling time series with seasonal components*.
    """

    values_per_s: tuple[float, ...] = field(repr=False)
    every_s: float
    block_s: float = 1_800.0
    season_s: float = 86_400.0

    def __post_init__(self) -> None:
        _check_recorded(self.values_per_s, self.every_s)
        _check("block_s", self.block_s, above=True)
        _check("season_s", self.season_s, above=True)

    def series(self, rng: np.random.Generator, replications: int, intervals: int, interval_s: float) -> Floats:
        block = max(1, round(self.block_s / self.every_s))
        season = max(block, round(self.season_s / self.every_s))
        needed = int(np.ceil(intervals * interval_s / self.every_s)) + 1
        values = np.array(self.values_per_s)
        count = -(-needed // block)
        seasons = len(values) // season
        series = np.empty((replications, intervals))
        for row in range(replications):
            if seasons >= 2:
                starts = rng.integers(0, seasons, count) * season + (np.arange(count) * block) % season
            else:
                starts = rng.integers(0, max(len(values) - block, 0) + 1, count)
            places = (starts[:, None] + np.arange(block)).ravel() % len(values)
            drawn = Recorded(tuple(values[places[:needed]].tolist()), self.every_s)
            series[row] = drawn.series(rng, 1, intervals, interval_s)[0]
        return series

    @property
    def mean_per_s(self) -> float:
        return sum(self.values_per_s) / len(self.values_per_s)

    @property
    def peak_per_s(self) -> float:
        return float(np.quantile(self.values_per_s, 0.99))


def _check_recorded(values: tuple[float, ...], every_s: float) -> None:
    if not values:
        raise BadValue("a recorded series without values", "at least one")
    _check("every_s", every_s, above=True)
    bad = next((place for place, value in enumerate(values) if not (isfinite(value) and value >= 0)), None)
    if bad is not None:
        raise BadValue(f"value {bad + 1} of a recorded series is {values[bad]}", "finite rates of at least 0")
