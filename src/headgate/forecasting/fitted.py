"""Models of the package statsforecast, refitted every few steps: slower than the others, but well fitted.

They are an extra (``headgate[statsforecast]``). A series is fitted by itself from its last values, which takes 10 to
200 ms for exponential smoothing and seconds for ARIMA; between two fits the last forecast is used, shifted. Where a fit
fails, as it does on a handful of values, the forecast is the last value.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.arrays import ArrayModel
from headgate.model.arrays import Bools, Floats

__all__ = ["FITTED", "Fitted", "FittedModel"]

FITTED = {"auto-ets": "AutoETS", "auto-theta": "AutoTheta", "auto-arima": "AutoARIMA"}
"""Forecasters by name, and what the package calls them."""

FEWEST = 8


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model of statsforecast by its name here."""

    name: str = "auto-ets"
    season: int = 0
    every: int = 12
    """Steps between two fits."""

    history: int = 512
    """Values that it is fitted to, at most."""

    def __post_init__(self) -> None:
        if self.name not in FITTED:
            raise BadValue(f"unknown model {self.name[:60]!r}", f"one of {', '.join(FITTED)}")
        if self.every < 1 or self.history < FEWEST or self.season < 0:
            message = f"every, history and season are {self.every}, {self.history} and {self.season}"
            raise BadValue(message, f"at least 1, {FEWEST} and 0")

    def model(self, series: int, horizon: int) -> FittedModel:
        return FittedModel(self, series, horizon)


class FittedModel(ArrayModel):
    """The last values of each series, and the forecasts of the last fit."""

    def __init__(self, recipe: Fitted, series: int, horizon: int) -> None:
        super().__init__(recipe, series, horizon)
        self.estimator = _estimator(recipe)
        self.past = np.full((series, recipe.history), np.nan)
        self.fitted = np.full((series, horizon + recipe.every), np.nan)
        self.fitted_at = 0

    def step(self, values: Floats) -> None:
        filled = np.where(np.isnan(values), self.past[:, -1], values)
        self.past = np.concatenate([self.past[:, 1:], filled[:, None]], axis=1)
        self.clock += 1
        if self.clock < FEWEST or (self.clock - FEWEST) % self.recipe.every == 0:
            self._fit(np.ones(self.series, dtype=np.bool_))
            self.fitted_at = self.clock

    def _fit(self, which: Bools) -> None:
        ahead = self.fitted.shape[1]
        for row in np.flatnonzero(which):
            known = self.past[row][~np.isnan(self.past[row])]
            self.fitted[row] = known[-1] if len(known) else np.nan
            if len(known) < FEWEST:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of a fit on zeros, say
                    path = np.asarray(self.estimator.forecast(y=known, h=ahead)["mean"], dtype=np.float64)
            except Exception:  # noqa: S112  (a fit that fails leaves the last value)
                continue
            if np.isfinite(path).all():
                self.fitted[row] = path

    def path(self, horizon: int) -> Floats:
        begin = self.clock - self.fitted_at
        places = np.minimum(begin + np.arange(horizon), self.fitted.shape[1] - 1)
        return self.fitted[:, places]

    def restart(self, which: Bools, recent: Floats) -> None:
        """Only what came after a change is fitted to, from the next fit on; until then it is the last of it."""
        self.past[which] = np.nan
        self.past[which, -recent.shape[1] :] = recent
        self._fit(which)


def _estimator(recipe: Fitted) -> Any:
    try:
        from statsforecast import models
    except ModuleNotFoundError:
        message = f"forecaster '{recipe.name}' needs the package 'statsforecast'"
        raise BadValue(message, "headgate[statsforecast] to be installed") from None
    return getattr(models, FITTED[recipe.name])(season_length=max(recipe.season, 1))
