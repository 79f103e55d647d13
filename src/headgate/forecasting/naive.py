"""Baseline forecasters: the last value, the value of a season ago, the mean of a recent window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.arrays import ArrayModel
from headgate.model.arrays import Bools, Floats

__all__ = ["Naive", "SeasonalNaive", "WindowMean", "check_season"]


def check_season(season: int) -> None:
    """Raise unless a season has at least two steps."""
    if season < 2:
        raise BadValue(f"a season of {season} steps", "at least 2; without a season choose another forecaster")


@dataclass(frozen=True, slots=True)
class Naive:
    """The last observed value, for as long as is asked; PLAN-AHEAD calls it CAF."""

    name: ClassVar = "naive"
    window: ClassVar = 1

    def model(self, series: int, horizon: int) -> WindowMeanModel:
        return WindowMeanModel(self, series, horizon)


@dataclass(frozen=True, slots=True)
class SeasonalNaive:
    """The value of a season ago; until there is one, the last value. A gap has the value of the season before it."""

    name: ClassVar = "seasonal-naive"
    season: int

    def __post_init__(self) -> None:
        check_season(self.season)

    def model(self, series: int, horizon: int) -> SeasonalNaiveModel:
        return SeasonalNaiveModel(self, series, horizon)


class SeasonalNaiveModel(ArrayModel):
    """The last value of each series at each place of the season."""

    def __init__(self, recipe: SeasonalNaive, series: int, horizon: int) -> None:
        super().__init__(recipe, series, horizon)
        self.season = recipe.season
        self.last = np.full(series, np.nan)
        self.values = np.full((series, recipe.season), np.nan)

    def step(self, values: Floats) -> None:
        seen = ~np.isnan(values)
        self.last[seen] = values[seen]
        self.values[seen, self.clock % self.season] = values[seen]
        self.clock += 1

    def path(self, horizon: int) -> Floats:
        path = self.values[:, (self.clock + np.arange(horizon)) % self.season]
        return np.where(np.isnan(path), self.last[:, None], path)

    def restart(self, which: Bools, recent: Floats) -> None:
        del which, recent  # a yardstick stays what it is


@dataclass(frozen=True, slots=True)
class WindowMean:
    """The mean of the last ``window`` steps; PLAN-AHEAD calls it WAAF."""

    name: ClassVar = "window-mean"
    window: int = 6

    def __post_init__(self) -> None:
        if self.window < 1:
            raise BadValue(f"a window of {self.window} steps", "at least 1")

    def model(self, series: int, horizon: int) -> WindowMeanModel:
        return WindowMeanModel(self, series, horizon)


class WindowMeanModel(ArrayModel):
    """The last steps of each series, and the last value for when all of them are gaps."""

    ARRAYS = ("last", "values")

    def __init__(self, recipe: WindowMean | Naive, series: int, horizon: int) -> None:
        super().__init__(recipe, series, horizon)
        self.last = np.full(series, np.nan)
        self.values = np.full((series, recipe.window), np.nan)

    def step(self, values: Floats) -> None:
        self.last = np.where(np.isnan(values), self.last, values)
        self.values[:, self.clock % self.recipe.window] = values
        self.clock += 1

    def path(self, horizon: int) -> Floats:
        seen = ~np.isnan(self.values)
        count = seen.sum(axis=1)
        means = np.where(seen, self.values, 0.0).sum(axis=1) / np.maximum(count, 1)
        return np.repeat(np.where(count > 0, means, self.last)[:, None], horizon, axis=1)
