"""A forecaster from a model: adds quantiles from recent errors, and a reset when a series changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue
from headgate.forecasting.forecast import LEVELS, Forecast, check_levels
from headgate.forecasting.forecaster import Recipe, as_columns
from headgate.forecasting.intervals import RecentErrors
from headgate.forecasting.pending import Pending
from headgate.model.arrays import Bools, Floats

__all__ = ["ChangePoint", "OnlineForecaster", "Settings", "start"]

KEPT = 16
"""Steps before a change whose values and largest errors are remembered."""

SETTLED = 40
"""Errors from which on the largest of them says something."""

LARGEST_MEMORY = 500.0


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The last ``run`` observations all lie on one side of what was forecast before the first of them, and far off.

    Far is ``limit`` times the largest error that forecasts one step ahead have lately had: one outlier is not a change,
    and a jump is none where series jump now and then.
    """

    run: int = 3
    limit: float = 2.0

    def __post_init__(self) -> None:
        if self.run < 1 or not self.limit > 0:
            raise BadValue(f"run and limit are {self.run} and {self.limit:g}", "at least 1 and above 0")

    def changed(self, values: Floats, forecasts: Floats, largest: Floats) -> Bools:
        """Which series have changed: observations, forecasts, and the largest error before; a gap is no evidence.

        >>> ChangePoint().changed(np.array([[9.0, 9.5, 9.0]]), np.zeros((1, 3)), np.array([0.5])).tolist()
        [True]
        """
        far = self.limit * largest[:, None]
        off = values - forecasts
        with np.errstate(invalid="ignore"):
            return np.asarray((off > far).all(axis=1) | (off < -far).all(axis=1))


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of every forecaster."""

    horizon: int = 12
    """Steps ahead at which errors are watched; farther ahead, intervals are guessed from these."""

    levels: tuple[float, ...] = LEVELS
    non_negative: bool = True
    window: int = 256
    """So many recent errors make the quantiles."""

    change: ChangePoint | None = field(default_factory=ChangePoint)
    """When to forget what was before; never if None."""

    def __post_init__(self) -> None:
        check_levels(self.levels)
        if self.horizon < 1 or self.window < 2:
            raise BadValue(f"horizon and window are {self.horizon} and {self.window}", "at least 1 and 2 steps")
        if self.change is not None and self.change.run > KEPT:
            raise BadValue(f"a change is detected by {self.change.run} observations", f"at most {KEPT}")


def start(recipe: Recipe, series: int, settings: Settings | None = None) -> OnlineForecaster:
    """A forecaster of so many series that has seen nothing yet.

    >>> from headgate.forecasting.holt import Holt
    >>> forecaster = start(Holt(), series=2)
    >>> forecaster.update([[1.0, 2.0, 3.0, 4.0], [7.0, 7.0, 7.0, 7.0]])
    >>> forecaster.forecast(2).mean.tolist()
    [[5.0, 6.0], [7.0, 7.0]]
    """
    return OnlineForecaster(recipe, series, settings or Settings())


class OnlineForecaster:
    """A recipe's model, its pending forecasts and its errors."""

    def __init__(self, recipe: Recipe, series: int, settings: Settings) -> None:
        if series < 1:
            raise BadValue(f"a forecaster of {series} series", "at least 1")
        self.recipe = recipe
        self.settings = settings
        self.model = recipe.model(series, settings.horizon)
        self.pending = Pending(series, max(settings.horizon, settings.change.run if settings.change else 1))
        self.errors = RecentErrors(series, settings.horizon, settings.window)
        self.lately = np.full((series, KEPT), np.nan)
        self.largest = np.zeros(series)
        self.largest_lately = np.full((series, KEPT), np.inf)
        self.since_change = np.zeros(series, dtype=np.int64)
        self.changes = np.zeros(series, dtype=np.int64)
        """How often each series has changed."""

    @property
    def name(self) -> str:
        return self.recipe.name

    @property
    def series(self) -> int:
        return len(self.changes)

    def update(self, observations: npt.ArrayLike) -> None:
        """Take in observations, series × steps, or one number for each series."""
        for column in as_columns(observations, self.series).T:
            self._step(np.ascontiguousarray(column))

    def _step(self, values: Floats) -> None:
        forecasts = self.pending.forecasts()[:, : self.settings.horizon]
        self.errors.add(values, forecasts)
        self.model.step(values)
        self.lately = np.concatenate([self.lately[:, 1:], values[:, None]], axis=1)
        self._notice_changes()
        off = np.nan_to_num(np.abs(values - forecasts[:, 0]))
        self.largest = np.maximum(self.largest * (1 - 1 / LARGEST_MEMORY), off)
        settled = np.where(self.errors.count >= SETTLED, self.largest, np.inf)
        self.largest_lately = np.concatenate([self.largest_lately[:, 1:], settled[:, None]], axis=1)
        self.pending.add(self._path(self.pending.horizon))

    def _notice_changes(self) -> None:
        change = self.settings.change
        if change is None:
            return
        recent = self.lately[:, -change.run :]
        self.since_change += 1
        # The largest error as it was before the first of them: they are the largest since.
        changed = change.changed(recent, self.pending.since(change.run), self.largest_lately[:, -change.run])
        changed &= self.since_change > change.run
        if changed.any():
            self.model.restart(changed, recent[changed])
            self.since_change[changed] = 0
            self.changes += changed

    def _path(self, horizon: int) -> Floats:
        path = self.model.path(horizon)
        return np.maximum(path, 0.0) if self.settings.non_negative else path

    def forecast(self, horizon: int) -> Forecast:
        """Means and quantiles of the next steps."""
        if horizon < 1:
            raise BadValue(f"a forecast of {horizon} steps", "at least 1")
        mean = self._path(horizon)
        quantiles = mean[:, :, None] + self.errors.spread(horizon, self.settings.levels)
        if self.settings.non_negative:
            quantiles = np.maximum(quantiles, 0.0)
        return Forecast(mean, quantiles, self.settings.levels)
