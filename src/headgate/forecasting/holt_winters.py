"""Holt-Winters: Holt's level and trend, and what each place of the season adds to them.

With the season's value s of this place, and γ for how quickly it follows:

    e = y − (l + φ b + s)    l ← l + φ b + α e    b ← φ b + α β e    s ← s + γ (1 − α) e
    forecast h steps ahead:  l + (φ + ... + φʰ) b + s of that place

The first season is what it is learned from: until it is over, the forecasts are Holt's.

Reference: P. R. Winters 1960, *Forecasting sales by exponentially weighted moving averages*; Hyndman et al. 2008.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.arrays import SlopedModel
from headgate.forecasting.holt import Holt, check_shares
from headgate.forecasting.naive import check_season
from headgate.model.arrays import Bools, Floats

__all__ = ["HoltWinters", "HoltWintersModel"]

FAR, FEWEST = 5.0, 12
"""What the season learns from an error goes up to so many times the usual one, once so many errors are known."""


@dataclass(frozen=True, slots=True)
class HoltWinters:
    """Additive Holt-Winters with a damped trend or none, over a grid of settings."""

    name: ClassVar = "holt-winters"
    season: int
    alphas: tuple[float, ...] = (0.02, 0.1, 0.3, 0.7)
    trends: tuple[tuple[float, float], ...] = ((0.0, 0.0), (0.1, 0.9))
    """Pairs of β and φ; 0 and 0 is no trend."""

    gammas: tuple[float, ...] = (0.05, 0.15, 0.4)
    memory: float = 200.0
    first: Holt = field(default_factory=Holt)
    """What forecasts until a season is over."""

    def __post_init__(self) -> None:
        check_season(self.season)
        betas, dampings = zip(*self.trends, strict=True) if self.trends else ((), ())
        check_shares(alphas=self.alphas, betas=betas, dampings=dampings, gammas=self.gammas)
        if self.memory < 2:
            raise BadValue(f"memory is {self.memory:g}", "at least 2 observations")

    @property
    def settings(self) -> Floats:
        """α, αβ, φ and γ(1 − α) of each setting."""
        pairs = [(alpha, beta, phi) for alpha in self.alphas for beta, phi in self.trends]
        return np.array([(a, a * b, phi, gamma * (1 - a)) for a, b, phi in pairs for gamma in self.gammas])

    def model(self, series: int, horizon: int) -> HoltWintersModel:
        return HoltWintersModel(self, series, horizon)


class HoltWintersModel(SlopedModel):
    """Level, trend and season of each series under each setting; Holt's model for those in their first season."""

    def __init__(self, recipe: HoltWinters, series: int, horizon: int) -> None:
        self.alpha, self.beta, damping, self.gamma = recipe.settings.T.copy()
        super().__init__(recipe, series, horizon, damping)
        self.season, shape = recipe.season, self.level.shape
        self.seasons = np.zeros((recipe.season, *shape))
        self.age = np.zeros(series, dtype=np.int64)
        self.first = recipe.first.model(series, horizon)
        self.first_season = np.full((series, recipe.season), np.nan)
        self.usual, self.count = np.zeros(shape), np.zeros(series)

    def step(self, values: Floats) -> None:
        ripe = self.age >= self.season
        if not ripe.all():
            self.first.step(values)
        if ripe.any():
            self._smooth(values)
        self._learn_first_season(values, ~ripe)
        self.keep()

    def _smooth(self, values: Floats) -> None:
        """Series that are not ripe have no level, so nothing comes of them here."""
        season = self.seasons[self.clock % self.season]
        seen = ~np.isnan(values)
        # What this place of the season adds has not changed since the forecast was made, a season being longer.
        self.judge(values, seen, season)
        slope = self.phi * self.trend
        error = np.where(seen[:, None], values[:, None] - (self.level + slope + season), 0.0)
        self.level = self.level + slope + self.alpha * error
        self.trend = slope + self.beta * error
        season += self.gamma * self._believed(error, seen)

    def _believed(self, error: Floats, seen: Bools) -> Floats:
        """An outlier of today must not come back every day: an error counts up to some times the usual one."""
        size = np.nan_to_num(np.abs(error))
        self.count += seen
        share = np.where(seen, 1 / np.clip(self.count, 1, self.recipe.memory), 0.0)[:, None]
        most = np.where(self.count[:, None] > FEWEST, FAR * self.usual, np.inf)
        self.usual += share * (np.minimum(size, np.maximum(most, self.usual)) - self.usual)
        return np.nan_to_num(np.clip(error, -most, most))

    def _learn_first_season(self, values: Floats, young: Bools) -> None:
        if not young.any():
            return
        self.age += young & ((self.age > 0) | ~np.isnan(values))
        self.first_season[young, self.clock % self.season] = values[young]
        for row in np.flatnonzero(young & (self.age == self.season)):
            filled = _filled(self.first_season[row])
            self.level[row], self.trend[row] = filled.mean(), 0.0
            self.seasons[:, row] = (filled - filled.mean())[:, None]

    def path(self, horizon: int) -> Floats:
        ripe = self.age >= self.season
        places = (self.clock + np.arange(horizon)) % self.season
        season = self.seasons[places[None, :], np.arange(self.series)[:, None], self.recent.best()[:, None]]
        path = super().path(horizon) + season
        return path if ripe.all() else np.where(ripe[:, None], path, self.first.path(horizon))

    def restart(self, which: Bools, recent: Floats) -> None:
        """The level is that of late, with no trend; the season stays, since days go on after a change."""
        ripe = which & (self.age >= self.season)
        if not (self.age >= self.season).all():
            self.first.restart(which, recent)
        if not ripe.any():
            return
        steps = recent.shape[1]
        places = (self.clock - steps + np.arange(steps)) % self.season
        rows = recent[ripe[which]]
        apart = rows.T[:, :, None] - self.seasons[places][:, ripe]
        self.level[ripe] = np.nanmean(apart, axis=0)
        self.trend[ripe] = 0.0


def _filled(values: Floats) -> Floats:
    """A season whose gaps are filled from their neighbours, around the end.

    >>> _filled(np.array([np.nan, 1.0, np.nan, 3.0])).tolist()
    [2.0, 1.0, 2.0, 3.0]
    """
    places = np.arange(len(values))
    known = ~np.isnan(values)
    return np.asarray(np.interp(places, places[known], values[known], period=len(values)))
