"""Autoregression by ridge: the next value as a weighted sum of the last ones, and of the one a season ago.

    y_t = w₀ + w₁ y_{t−1} + ... + w_p y_{t−p} + w_s y_{t−season} + e

Weights minimise discounted squares of errors plus ``ridge`` times the series' variance times squares of what they
differ by from the naive forecast's (w₁ = 1, the others 0): with little to learn from, the forecast is the last value.
Errors that are far off count less. What is several steps ahead is forecast from forecasts.

Reference: A. E. Hoerl and R. W. Kennard 1970, *Ridge regression*; the discount of recursive least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.arrays import ArrayModel
from headgate.model.arrays import Bools, Floats, Ints

__all__ = ["Autoregressive", "AutoregressiveModel"]

FAR = 6.0
"""Errors beyond so many times the usual one count less."""

RANGE_MEMORY = 500.0


@dataclass(frozen=True, slots=True)
class Autoregressive:
    """Autoregression on the last ``order`` values, and a season ago if there is a season."""

    name: ClassVar = "ar"
    order: int = 4
    season: int = 0
    ridge: float = 1.0
    memory: float = 1_000.0

    def __post_init__(self) -> None:
        if self.order < 1 or self.season < 0 or not self.ridge > 0 or self.memory < 2:
            message = f"{self.order}, {self.season}, {self.ridge:g} and {self.memory:g}"
            raise BadValue(
                f"order, season, ridge and memory are {message}", "at least 1 and 0, above 0, and at least 2"
            )

    @property
    def lags(self) -> Ints:
        """How long ago each of the values was that the next is made of."""
        seasonal = [self.season] if self.season > self.order else []
        return np.array([*range(1, self.order + 1), *seasonal])

    def model(self, series: int, horizon: int) -> AutoregressiveModel:
        return AutoregressiveModel(self, series, horizon)


class AutoregressiveModel(ArrayModel):
    """The last values of each series, and the moments that weights are solved from."""

    def __init__(self, recipe: Autoregressive, series: int, horizon: int) -> None:
        super().__init__(recipe, series, horizon)
        self.lags = recipe.lags
        self.length = int(self.lags[-1])
        size = len(self.lags) + 1
        self.past = np.full((series, self.length), np.nan)
        self.moments, self.products = np.zeros((series, size, size)), np.zeros((series, size))
        self.weight, self.scale, self.age = np.zeros(series), np.zeros(series), np.zeros(series, dtype=np.int64)
        self.lowest, self.highest = np.full(series, np.nan), np.full(series, np.nan)
        self.naive = np.zeros(size)
        self.naive[1] = 1.0
        self.weights = np.tile(self.naive, (series, 1))

    def restart(self, which: Bools, recent: Floats) -> None:
        """Weights are learned again; the last values stay."""
        del recent
        self.moments[which], self.products[which] = 0.0, 0.0
        self.weight[which], self.scale[which], self.weights[which] = 0.0, 0.0, self.naive

    def step(self, values: Floats) -> None:
        seen = ~np.isnan(values)
        features = self._features(self.past, self.clock)
        expected = (self.weights * features).sum(axis=1)
        ready = seen & (self.age >= self.length)
        if ready.any():
            self._learn(np.where(ready, values, 0.0), np.where(ready[:, None], features, 0.0), expected, ready)
            self._solve()
        self._remember(values, seen, expected)
        self.clock += 1

    def _features(self, past: Floats, clock: int) -> Floats:
        lagged = past[:, (clock - self.lags) % self.length]
        return np.concatenate([np.ones((len(past), 1)), lagged], axis=1)

    def _learn(self, values: Floats, features: Floats, expected: Floats, ready: Bools) -> None:
        off = np.where(ready, np.abs(values - expected), 0.0)
        usual = np.where(self.weight > 0, self.scale, off)
        counts = np.where(ready, np.minimum(FAR * usual / np.where(off > 0, off, 1.0), 1.0), 0.0)
        counts = np.where(ready & (off == 0), 1.0, counts)
        keep = np.where(ready, 1 - 1 / self.recipe.memory, 1.0)
        self.scale = np.where(ready, usual + (off - usual) / np.minimum(self.weight + 1, 50.0), self.scale)
        self.weight = keep * self.weight + counts
        scaled = counts[:, None] * features
        self.moments = keep[:, None, None] * self.moments + scaled[:, :, None] * features[:, None, :]
        self.products = keep[:, None] * self.products + scaled * values[:, None]

    def _solve(self) -> None:
        count = np.maximum(self.weight, 1e-12)[:, None]
        squares = np.diagonal(self.moments, axis1=1, axis2=2)[:, 1:] / count
        means = self.moments[:, 0, 1:] / count
        variance = np.maximum(squares - means**2, 0.0).mean(axis=1)
        # Where nothing varies there is nothing to weigh, and a hair of each value's size keeps equations solvable.
        hair = 1e-9 * squares.mean(axis=1) + 1e-200
        penalty = np.empty((self.series, len(self.naive)))
        penalty[:, 0] = 1e-6 * np.maximum(self.weight, 1e-3)
        penalty[:, 1:] = (self.recipe.ridge * variance + hair * np.maximum(self.weight, 1.0))[:, None]
        left = self.moments + penalty[:, :, None] * np.eye(len(self.naive))
        right = self.products - (self.moments * self.naive).sum(axis=2)
        self.weights = self.naive + np.linalg.solve(left, right[:, :, None])[:, :, 0]

    def _remember(self, values: Floats, seen: Bools, expected: Floats) -> None:
        """A gap is filled with what was expected; before the first observation everything was like it."""
        begins = seen & (self.age == 0)
        self.past[begins] = values[begins, None]
        low, high = self._bounds()
        self.past[:, self.clock % self.length] = np.where(seen, values, np.clip(expected, low, high))
        self._learn_range(values, begins)
        self.age += seen | (self.age > 0)

    def _learn_range(self, values: Floats, begins: Bools) -> None:
        """Between what values have been of late; what was long ago is forgotten little by little."""
        leak = (self.highest - self.lowest) / RANGE_MEMORY
        lowest, highest = np.fmin(self.lowest + leak, values), np.fmax(self.highest - leak, values)
        self.lowest, self.highest = np.where(begins, values, lowest), np.where(begins, values, highest)

    def _bounds(self) -> tuple[Floats, Floats]:
        """Weights that were fitted to something else may explode: no farther than as much again as has been seen."""
        width = self.highest - self.lowest
        return self.lowest - width, self.highest + width

    def path(self, horizon: int) -> Floats:
        past = self.past.copy()
        low, high = self._bounds()
        path = np.empty((self.series, horizon))
        for ahead in range(horizon):
            expected = (self.weights * self._features(past, self.clock + ahead)).sum(axis=1)
            path[:, ahead] = np.clip(expected, low, high)
            past[:, (self.clock + ahead) % self.length] = path[:, ahead]
        return path
