"""Worlds that policies which look ahead are measured on: PLAN-AHEAD's own, and four realistic ones.

Each is half a day in steps of five minutes, with what came in on the days before for those who forecast. What could be
achieved is counted from what comes in, as PLAN-AHEAD defines it. The realistic ones were written down before any policy
had seen them, and nothing in them was chosen by how policies do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headgate.model.cluster.catalogues import catalogue
from headgate.model.dataflow import Dataflow
from headgate.simulation.rates import ArrivalRate, Recorded, Sinusoid
from headgate.simulation.setting import Setting
from headgate.simulation.variability import EC2, TracePool
from headgate_benchmarks.dynamic import linear_road, ten_stages

__all__ = ["BEGIN", "DAY", "STEPS", "STEP_S", "Workload", "on_linear_road", "paper", "realistic", "with_past"]

Floats = npt.NDArray[np.float64]
STEP_S = 300.0
DAY = 288
"""Steps of a day."""

STEPS = 144
"""Of the twelve hours that are optimised."""

BEGIN = 72
"""Six in the morning, when they begin."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A world, and what is known before it begins.

    The setting has the dataflow with its service level and break-even costs, the rate of each source, the cloud with
    prices and start-up times, and the traces that machines follow.
    """

    name: str
    setting: Setting
    history: Floats
    """Messages per second before the beginning, sources (in the order of the dataflow's shape) × steps."""

    season: int = DAY
    """Steps of a season; 0 if there is none."""

    about: str = ""

    def truth(self) -> Floats:
        """Messages per second from outside, sources × steps: what only hindsight knows."""
        rates: Floats = self.setting.external(self.setting.shape())[0].T
        return rates


def _setting(flow: Dataflow, rates: dict[str, ArrivalRate], pool: TracePool, seed: int) -> Setting:
    made = Setting(flow, catalogue("ec2-2013"), rates, STEPS, STEP_S, pool, seed=seed)
    return replace(made, counts_queues=False)


def paper(seed: int) -> Workload:
    """PLAN-AHEAD's evaluation: ten stages of three tasks, three waves of 24 hours with noise, machines as on EC2.

    >>> world = paper(1)
    >>> world.setting.shape().tasks, world.setting.hours, world.truth().shape
    (30, 12.0, (3, 144))
    """
    rates: dict[str, ArrivalRate] = {f"s1{each}": Sinusoid(75.0, 2.0) for each in "abc"}
    setting = _setting(ten_stages(), rates, EC2.pool(seed), seed)
    rng = np.random.default_rng([seed, 0x6265666F])
    # The wave begins at its trough: the day before ends there.
    before = np.concatenate([rate.series(rng, 1, DAY, STEP_S) for rate in rates.values()])
    return Workload("paper", setting, before, DAY, "three waves from 2 to 75 messages/s, noise of 20 %")


def realistic(seed: int) -> list[Workload]:
    """A quiet day, rush hours, bursts, and growth over a week; half of them on Linear Road.

    >>> [each.name for each in realistic(1)]
    ['day', 'rush', 'bursts', 'growth']
    """
    pool = EC2.pool(seed)
    rng = np.random.default_rng([seed, 0x6C6F6F6B])
    stages = [str(name) for name in (f"s1{each}" for each in "abc")]
    three_days = np.arange(3 * DAY + BEGIN + STEPS)
    eight_days = np.arange(7 * DAY + BEGIN + STEPS)
    day = np.array([_day_cycle(rng, three_days, 40.0, shift) for shift in (0.0, 0.03, -0.04)])
    rush = np.array([_rush_hours(rng, three_days, 50.0), np.full(len(three_days), 0.5)])
    bursts = np.array([_bursts(rng, three_days, 50.0), np.full(len(three_days), 0.5)])
    growth = np.array([_growth(rng, eight_days, 30.0, each) for each in (0.03, 0.05, 0.08)])
    return [
        with_past("day", ten_stages(), stages, day, pool, seed, "a daily cycle with noise of 8 %"),
        on_linear_road("rush", rush, pool, seed, "two rush hours that begin and end in a step"),
        on_linear_road("bursts", bursts, pool, seed, "a daily cycle with bursts of 2 to 3 times"),
        with_past("growth", ten_stages(), stages, growth, pool, seed, "growing by 3 to 8 % a day, quieter at weekends"),
    ]


def on_linear_road(name: str, values: Floats, pool: TracePool, seed: int, about: str) -> Workload:
    """On Linear Road, with DYN's break-even costs for the mean rate of the twelve hours."""
    mean = float(values[0, -STEPS:].mean())
    return with_past(name, linear_road(mean), ["reports", "weather"], values, pool, seed, about)


def with_past(
    name: str, flow: Dataflow, sources: list[str], values: Floats, pool: TracePool, seed: int, about: str
) -> Workload:
    """A workload of which everything up to the last twelve hours is history."""
    passed = values.shape[1] - STEPS
    rates: dict[str, ArrivalRate] = {
        source: Recorded(tuple(np.round(row[passed:], 6).tolist()), STEP_S)
        for source, row in zip(sources, values, strict=True)
    }
    setting = _setting(flow, rates, pool, seed)
    order = [str(setting.shape().names[place]) for place in setting.shape().sources]
    history = np.array([values[sources.index(source), :passed] for source in order])
    return Workload(name, setting, history, DAY, about)


def _noisy(rng: np.random.Generator, means: Floats, spread: float) -> Floats:
    return np.asarray(means * np.exp(rng.normal(0.0, spread, len(means)) - spread**2 / 2))


def _day_cycle(rng: np.random.Generator, at: npt.NDArray[np.int64], mean: float, shift: float = 0.0) -> Floats:
    """Low at four in the morning, high in the afternoon and again, less, in the evening; no two days are equal."""
    hours = (at / DAY + shift) % 1.0 * 2 * np.pi
    cycle = 1 - 0.55 * np.cos(hours - 1.05) - 0.15 * np.cos(2 * hours - 1.0)
    days = np.repeat(rng.normal(1.0, 0.05, at[-1] // DAY + 2), DAY)[: len(at)]
    smooth = np.convolve(days, np.ones(36) / 36, mode="same") / np.convolve(np.ones(len(at)), np.ones(36) / 36, "same")
    return _noisy(rng, mean * cycle * smooth, 0.08)


def _rush_hours(rng: np.random.Generator, at: npt.NDArray[np.int64], mean: float) -> Floats:
    """Twice as much from about 07:30 to 09:30 and from about 16:30 to 18:30, from one step to the next."""
    rates = np.full(len(at), 0.8 * mean)
    for day in range(at[-1] // DAY + 1):
        for begin_h, end_h in ((7.5, 9.5), (16.5, 18.5)):
            begin, end = (day * DAY + round(hour * 12 + rng.normal(0.0, 2.0)) for hour in (begin_h, end_h))
            rates[max(begin, 0) : max(end, 0)] = 1.7 * mean
    night = (at % DAY < 5 * 12) | (at % DAY >= 22 * 12)
    return _noisy(rng, np.where(night, 0.4 * mean, rates), 0.06)


def _bursts(rng: np.random.Generator, at: npt.NDArray[np.int64], mean: float) -> Floats:
    """A flat daily cycle on which bursts come every three hours or so and last half an hour or so."""
    rates = mean * (1 - 0.3 * np.cos(at / DAY * 2 * np.pi - 0.8))
    begin = 0
    while True:
        begin += 1 + int(rng.exponential(36))
        if begin >= len(at):
            break
        lasts = 2 + int(rng.exponential(5))
        rates[begin : begin + lasts] *= rng.uniform(2.0, 3.0)
        begin += lasts
    return _noisy(rng, rates, 0.08)


def _growth(rng: np.random.Generator, at: npt.NDArray[np.int64], mean: float, daily: float) -> Floats:
    """A daily cycle that grows from day to day, with a weekend of two thirds of it; it ends on a Monday."""
    days = at / DAY
    week = np.where(np.isin(at // DAY % 7, (5, 6)), 0.67, 1.0)
    return _day_cycle(rng, at, mean) * (1 + daily * days) * week
