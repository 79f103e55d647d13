"""The base of models: a clock, arrays with a row for each series, and a restart of some rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.model.arrays import Bools, Floats

__all__ = ["ArrayModel", "SlopedModel"]


class ArrayModel(ABC):
    """State in arrays whose first axis is the series; ``ARRAYS`` names them. Models are made as this one is."""

    ARRAYS: tuple[str, ...] = ()

    def __init__(self, recipe: Any, series: int, horizon: int) -> None:
        self.recipe, self.series, self.horizon = recipe, series, horizon
        self.clock = 0

    @abstractmethod
    def step(self, values: Floats) -> None: ...

    def restart(self, which: Bools, recent: Floats) -> None:
        """What the model would be had it seen nothing but ``recent``."""
        fresh = type(self)(self.recipe, int(which.sum()), self.horizon)
        fresh.clock = self.clock - recent.shape[1]
        for column in recent.T:
            fresh.step(column)
        for name in self.ARRAYS:
            getattr(self, name)[which] = getattr(fresh, name)


class _Recent:
    """Which of several settings has lately forecast best: discounted absolute errors, series × settings.

    Settings are chosen by what is asked of them: errors one step, half the horizon and the whole horizon ahead.
    """

    def __init__(self, series: int, settings: int, horizon: int, memory: float) -> None:
        self.ahead = tuple(sorted({1, (horizon + 1) // 2, horizon}))
        self.keep = 1 - 1 / memory
        self.sums = np.zeros((series, settings))

    def add(self, errors: Floats) -> None:
        """Add the errors of one horizon at this moment; NaN where there was nothing to compare."""
        self.sums += np.nan_to_num(np.abs(errors), nan=0.0, posinf=0.0)

    def fade(self, seen: Bools) -> None:
        """Let what was count less, for series that were observed."""
        self.sums *= np.where(seen, self.keep, 1.0)[:, None]

    def best(self) -> npt.NDArray[np.intp]:
        """The best setting of each series; the first of equals."""
        return np.asarray(np.argmin(self.sums, axis=1))


def _damped_sums(damping: Floats, steps: int) -> Floats:
    """By how many times its trend a level moves within 1, 2, ... steps: sums of powers of the damping, steps first.

    >>> _damped_sums(np.array([1.0, 0.5]), 3).tolist()
    [[1.0, 0.5], [2.0, 0.75], [3.0, 0.875]]
    """
    powers: Floats = damping[None, :] ** np.arange(1, steps + 1)[:, None]
    return np.cumsum(powers, axis=0)


class SlopedModel(ArrayModel):
    """A level and a damped trend, series × settings; which setting is used is decided by what they forecast lately."""

    def __init__(self, recipe: Any, series: int, horizon: int, damping: Floats) -> None:
        super().__init__(recipe, series, horizon)
        self.phi = damping
        shape = (series, len(damping))
        self.level, self.trend = np.full(shape, np.nan), np.zeros(shape)
        self.levels, self.trends = np.full((series, horizon, shape[1]), np.nan), np.zeros((series, horizon, shape[1]))
        self.recent = _Recent(*shape, horizon, recipe.memory)
        self.reach = _damped_sums(damping, horizon)

    @property
    def sums(self) -> Floats:
        return self.recent.sums

    def judge(self, values: Floats, seen: Bools, season: Floats | float = 0.0) -> None:
        """Compare what has come with what each setting had forecast of it, and what the season adds."""
        self.recent.fade(seen)
        for ahead in self.recent.ahead:
            place = (self.clock - ahead) % self.horizon
            forecasts = self.levels[:, place] + self.trends[:, place] * self.reach[ahead - 1] + season
            self.recent.add(values[:, None] - forecasts)

    def keep(self) -> None:
        """Store the forecast of each setting, and advance the clock."""
        place = self.clock % self.horizon
        self.levels[:, place], self.trends[:, place] = self.level, self.trend
        self.clock += 1

    def path(self, horizon: int) -> Floats:
        best = self.recent.best()
        rows = np.arange(self.series)
        reach = np.cumsum(self.phi[best][:, None] ** np.arange(1, horizon + 1), axis=1)
        return np.asarray(self.level[rows, best][:, None] + self.trend[rows, best][:, None] * reach)
