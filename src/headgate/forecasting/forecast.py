"""A forecast: means and quantiles of many series for some steps ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.errors import BadValue
from headgate.model.arrays import Floats

__all__ = ["LEVELS", "Forecast", "check_levels"]

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""The quantiles that are forecast unless others are asked for."""


def check_levels(levels: tuple[float, ...]) -> None:
    """Raise unless levels are rising shares between 0 and 1."""
    if not levels or any(not 0 < level < 1 for level in levels) or list(levels) != sorted(set(levels)):
        raise BadValue(f"levels of quantiles are {levels}", "rising numbers between 0 and 1, such as 0.1, 0.5, 0.9")


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What is expected of each series, 1, 2, ... steps ahead; NaN for a series that was never observed."""

    mean: Floats
    """Series × steps."""

    quantiles: Floats
    """Series × steps × levels, not falling from level to level."""

    levels: tuple[float, ...] = LEVELS

    def at(self, level: float) -> Floats:
        """The quantile of a level, series × steps; between two levels that were forecast, a value in between.

        >>> two = Forecast(np.zeros((1, 1)), np.array([[[1.0, 3.0]]]), (0.1, 0.9))
        >>> two.at(0.9).tolist(), two.at(0.5).tolist()
        ([[3.0]], [[2.0]])
        """
        if not self.levels[0] <= level <= self.levels[-1]:
            wanted = f"a level from {self.levels[0]} to {self.levels[-1]}"
            raise BadValue(f"the quantile of level {level:g} was not forecast", wanted)
        above = min(int(np.searchsorted(self.levels, level)), len(self.levels) - 1)
        below = max(above - 1, 0)
        if above == below:
            return self.quantiles[:, :, above]
        share = (level - self.levels[below]) / (self.levels[above] - self.levels[below])
        return np.asarray((1 - share) * self.quantiles[:, :, below] + share * self.quantiles[:, :, above])
