"""A Kalman filter for level and trend that distinguishes steps from outliers.

The state is level and trend, in the units of the noise: measured with variance 1, the level wanders with variance q and
the trend with variance r, and the trend fades by φ:

    x ← F x + w,  F = [[1, φ], [0, φ]],  w ~ N(0, diag(q, r));    y = [1, 0] x + v,  v ~ N(0, 1)

A measurement more than a limit of standard deviations off is left out, as an outlier; when the one after it and the
next are off as well, the level is not known any more, and goes where they are. Each series is filtered under all
settings of a small grid at once, and the one that has lately forecast best is used.

Reference: R. E. Kalman 1960; A. C. Harvey 1989, *Forecasting, structural time series models and the Kalman filter*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.arrays import SlopedModel
from headgate.forecasting.holt import check_shares
from headgate.model.arrays import Bools, Floats

__all__ = ["Kalman", "KalmanModel"]

UNKNOWN = 1e7
"""The variance of what is not known yet, in units of the noise."""


@dataclass(frozen=True, slots=True)
class Kalman:
    """Level and trend, over a grid of (q, r) and dampings."""

    name: ClassVar = "kalman"
    wanders: tuple[tuple[float, float], ...] = (
        (0.001, 0.0),
        (0.01, 0.0),
        (0.1, 0.0),
        (1.0, 0.0),
        (10.0, 0.0),
        (1_000.0, 0.0),
        (0.01, 0.001),
        (0.1, 0.01),
        (1.0, 0.1),
        (1.0, 1.0),
    )
    """Pairs of q and r; r = 0 is a level without a trend."""

    dampings: tuple[float, ...] = (0.8, 0.95)
    limits: tuple[float, ...] = (4.5, float("inf"))
    """Standard deviations from which on a measurement is an outlier; infinite where everything is believed."""

    run: int = 3
    """So many outliers in a row are a step."""

    memory: float = 100.0

    def __post_init__(self) -> None:
        check_shares(dampings=self.dampings)
        if not self.wanders or any(q < 0 or r < 0 for q, r in self.wanders):
            raise BadValue(f"wanders is {self.wanders}", "pairs of variances of at least 0")
        if not self.limits or min(self.limits) <= 0 or self.run < 1 or self.memory < 2:
            message = f"limits, run and memory are {self.limits}, {self.run} and {self.memory:g}"
            raise BadValue(message, "above 0, at least 1 and at least 2")

    @property
    def settings(self) -> Floats:
        """q, r, φ and limit of each setting; without a trend, damping makes no difference."""
        flat = [(q, 0.0, 0.0) for q, r in self.wanders if r == 0]
        sloped = [(q, r, phi) for q, r in self.wanders if r > 0 for phi in self.dampings]
        return np.array([(*each, limit) for each in flat + sloped for limit in self.limits])

    def model(self, series: int, horizon: int) -> KalmanModel:
        return KalmanModel(self, series, horizon)


class KalmanModel(SlopedModel):
    """Level, trend and their covariance of each series under each setting."""

    ARRAYS = ("level", "trend", "p_level", "p_both", "p_trend", "noise", "count", "off", "levels", "trends", "sums")

    def __init__(self, recipe: Kalman, series: int, horizon: int) -> None:
        self.q, self.r, damping, limit = recipe.settings.T.copy()
        super().__init__(recipe, series, horizon, damping)
        self.tells_outliers = np.isfinite(limit)
        self.limit_squared = np.where(self.tells_outliers, limit, 0.0) ** 2
        shape = (series, len(self.q))
        self.p_level, self.p_both = np.full(shape, UNKNOWN), np.zeros(shape)
        self.p_trend = np.where(self.r > 0, UNKNOWN, 0.0) * np.ones(shape)
        self.noise, self.count, self.off = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def step(self, values: Floats) -> None:
        seen = ~np.isnan(values)
        self.judge(values, seen)
        self._predict()
        self._measure(values, seen)
        self.keep()

    def _predict(self) -> None:
        """Time passes, also through a gap; what has not begun stays unknown."""
        phi = self.phi
        begun = ~np.isnan(self.level)
        self.trend = phi * self.trend
        self.level = self.level + self.trend
        across = phi * self.p_both + phi * phi * self.p_trend
        self.p_level = np.where(begun, self.p_level + phi * self.p_both + across + self.q, self.p_level)
        self.p_both = np.where(begun, across, self.p_both)
        self.p_trend = np.where(begun, phi * phi * self.p_trend + self.r, self.p_trend)

    def _measure(self, values: Floats, seen: Bools) -> None:
        known = seen[:, None]
        begun = ~np.isnan(self.level)
        self.level = np.where(known & ~begun, values[:, None], self.level)
        surprise = np.where(known, values[:, None] - self.level, 0.0)
        square = np.square(surprise) / (self.p_level + 1)
        # Noise and outliers are unknown before the first few measurements.
        outlier = known & self.tells_outliers & (self.count >= 8) & (square > self.limit_squared * self.noise)
        self.off = np.where(known, np.where(outlier, self.off + 1, 0.0), self.off)
        step = outlier & (self.off >= self.recipe.run)
        self.off = np.where(step, 0.0, self.off)
        # After a step the level is wherever the measurements are, and the noise is what it was.
        self.p_level = np.where(step, self.p_level + UNKNOWN, self.p_level)
        self._learn_noise(square, known & begun, outlier)
        gain = np.where(known & (~outlier | step), 1 / (self.p_level + 1), 0.0)
        self.trend = self.trend + self.p_both * gain * surprise
        self.p_trend = self.p_trend - self.p_both * gain * self.p_both
        self.level = self.level + self.p_level * gain * surprise
        self.p_both = self.p_both - self.p_both * gain * self.p_level
        self.p_level = self.p_level - self.p_level * gain * self.p_level

    def _learn_noise(self, square: Floats, known: Bools, outlier: Bools) -> None:
        """The mean of squared surprises over their variance; an outlier counts as the largest that is none."""
        counted = np.where(outlier, self.limit_squared * self.noise, square)
        self.count = self.count + known
        share = np.where(known, 1 / np.clip(self.count, 1, self.recipe.memory), 0.0)
        self.noise = self.noise + share * (counted - self.noise)
