"""Damped Holt: a level and a trend that fades, smoothed by whichever settings have lately forecast best.

With smoothing α of the level, β of the trend and damping φ, in the error-correction form:

    e = y − (l + φ b)        l ← l + φ b + α e        b ← φ b + α β e
    forecast h steps ahead:  l + (φ + φ² + ... + φʰ) b

φ = 0 is simple exponential smoothing. Every series is smoothed by all settings of a small grid at once.

Reference: C. C. Holt 1957; E. S. Gardner and E. McKenzie 1985, *Forecasting trends in time series*; the form of R. J.
Hyndman, A. B. Koehler, J. K. Ord and R. D. Snyder 2008, *Forecasting with exponential smoothing*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.arrays import SlopedModel
from headgate.model.arrays import Bools, Floats

__all__ = ["Holt", "HoltModel", "check_shares"]


def check_shares(**shares: tuple[float, ...]) -> None:
    """Raise unless all are lists of shares from 0 to 1."""
    for name, values in shares.items():
        if not values or any(not 0 <= value <= 1 for value in values):
            raise BadValue(f"{name} is {values}", "one or more numbers from 0 to 1")


@dataclass(frozen=True, slots=True)
class Holt:
    """Damped Holt over a grid of settings.

    >>> model = Holt().model(1, 3)
    >>> for value in (1.0, 3.0, 5.0, 7.0):
    ...     model.step(np.array([value]))
    >>> model.path(3).tolist()
    [[9.0, 11.0, 13.0]]
    """

    name: ClassVar = "holt"
    alphas: tuple[float, ...] = (0.05, 0.15, 0.3, 0.5, 0.75, 1.0)
    betas: tuple[float, ...] = (0.05, 0.2, 0.6)
    dampings: tuple[float, ...] = (0.8, 0.95, 1.0)
    memory: float = 100.0
    """Errors of so many observations decide which settings are used."""

    def __post_init__(self) -> None:
        check_shares(alphas=self.alphas, betas=self.betas, dampings=self.dampings)
        if self.memory < 2:
            raise BadValue(f"memory is {self.memory:g}", "at least 2 observations")

    @property
    def settings(self) -> Floats:
        """α, αβ and φ of each setting; those without a trend come first, and so are taken among equals."""
        flat = [(alpha, 0.0, 0.0) for alpha in self.alphas]
        sloped = [(a, a * b, phi) for a in self.alphas for b in self.betas for phi in self.dampings]
        return np.array(flat + sloped)

    def model(self, series: int, horizon: int) -> HoltModel:
        return HoltModel(self, series, horizon)


class HoltModel(SlopedModel):
    """Level and trend of each series under each setting."""

    ARRAYS = ("level", "trend", "count", "since", "levels", "trends", "sums")

    def __init__(self, recipe: Holt, series: int, horizon: int) -> None:
        self.alpha, self.beta, damping = recipe.settings.T.copy()
        super().__init__(recipe, series, horizon, damping)
        self.count, self.since = np.zeros(series, dtype=np.int64), np.ones(series)

    def step(self, values: Floats) -> None:
        seen = ~np.isnan(values)
        self.judge(values, seen)
        ahead, slope = self.level + self.phi * self.trend, self.phi * self.trend
        error = np.where(seen, values, 0.0)[:, None] - ahead
        known = seen[:, None]
        self.level = np.where(known, ahead + self.alpha * error, ahead)
        self.trend = np.where(known, slope + self.beta * error, slope)
        self._begin(values, seen)
        self.count += seen
        self.since = np.where(seen, 1.0, self.since + 1)
        self.keep()

    def _begin(self, values: Floats, seen: Bools) -> None:
        """The first observation is the level, and the second gives the trend."""
        first, second = seen & (self.count == 0), seen & (self.count == 1)
        if first.any():
            self.level[first], self.trend[first] = values[first, None], 0.0
        if second.any():
            # With a trend of 0 so far, the levels of all settings with a trend are still the first observation.
            before = self.levels[second, (self.clock - 1) % self.horizon]
            rise = (values[second, None] - before) / self.since[second, None]
            sloped = self.phi > 0
            self.level[second] = np.where(sloped, values[second, None], self.level[second])
            self.trend[second] = np.where(sloped, rise, 0.0)
