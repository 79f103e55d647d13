"""The base of Holt's smoothing and the Kalman filter: a level and a damped trend under each setting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.forecasting.arrays import ArrayModel, Recent, damped_sums

__all__ = ["SlopedModel"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class SlopedModel(ArrayModel):
    """Levels and trends, series × settings; which setting is used is decided by what they forecast lately."""

    def __init__(self, series: int, horizon: int, damping: Floats, memory: float) -> None:
        super().__init__(series, horizon)
        self.phi = damping
        shape = (series, len(damping))
        self.level, self.trend = np.full(shape, np.nan), np.zeros(shape)
        self.levels, self.trends = np.full((series, horizon, shape[1]), np.nan), np.zeros((series, horizon, shape[1]))
        self.recent = Recent(*shape, horizon, memory)
        self.reach = damped_sums(damping, horizon)

    @property
    def sums(self) -> Floats:
        return self.recent.sums

    def judge(self, values: Floats, seen: Bools) -> None:
        """Compare what has come with what each setting had forecast of it."""
        self.recent.fade(seen)
        for ahead in self.recent.ahead:
            place = (self.clock - ahead) % self.horizon
            forecasts = self.levels[:, place] + self.trends[:, place] * self.reach[ahead - 1]
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
