"""Pending forecasts: the paths of the last steps, to be compared with observations."""

from __future__ import annotations

import numpy as np

from headgate.model.arrays import Floats

__all__ = ["Pending"]


class Pending:
    """The last ``horizon`` paths of so many series.

    >>> pending = Pending(1, 2)
    >>> pending.add(np.array([[5.0, 6.0]]))
    >>> pending.add(np.array([[7.0, 8.0]]))
    >>> pending.forecasts().tolist()  # for now, a step ago and two steps ago
    [[7.0, 6.0]]
    """

    def __init__(self, series: int, horizon: int) -> None:
        self.horizon = horizon
        self.paths = np.full((horizon, series, horizon), np.nan)
        self.made = 0
        self._ahead = np.arange(horizon)

    def add(self, path: Floats) -> None:
        """Keep a path, made after the last observation."""
        self.paths[self.made % self.horizon] = path
        self.made += 1

    def forecasts(self) -> Floats:
        """What was forecast for this moment 1, 2, ... steps ago, series × horizons; NaN where nothing was."""
        return np.asarray(self.paths[(self.made - 1 - self._ahead) % self.horizon, :, self._ahead].T)

    def since(self, steps: int) -> Floats:
        """What was forecast so many steps ago for the steps since, series × steps."""
        return self.paths[(self.made - steps) % self.horizon, :, :steps]
