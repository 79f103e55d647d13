"""Quantiles from recent forecast errors at each horizon.

Errors are kept in units of the series' present noise, a discounted mean of absolute errors one step ahead at the moment
of the forecast, so that intervals widen and narrow with it. The quantile of level p at horizon h is

    mean + noise · (the (n + 1) p-th smallest of the last n errors at h)

which has at least the right coverage for exchangeable errors (split conformal prediction, with normalised scores).
Before there are enough errors, they are taken as normal and growing with √h.

Reference: V. Vovk, A. Gammerman and G. Shafer 2005; J. Lei et al. 2018, *Distribution-free predictive inference for
regression*, section 5.2.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from headgate.model.arrays import Floats

__all__ = ["RecentErrors"]

FARTHEST = 20.0
"""Errors of more units of noise all say the same: a change was not foreseen."""

FEWEST = 12
"""Errors at a horizon from which quantiles are read off."""

NOISE_MEMORY = 24.0
DEVIATIONS = float(np.sqrt(np.pi / 2))
"""Standard deviations in a mean absolute error, if errors are normal."""


class RecentErrors:
    """Errors of so many series by horizon, the last ``window`` of each."""

    def __init__(self, series: int, horizon: int, window: int) -> None:
        self.horizon = horizon
        self.scores = np.full((series, horizon, window), np.nan)
        self.noise, self.count = np.zeros(series), np.zeros(series)
        self.size = np.zeros(series)
        self.units = np.full((series, horizon), np.nan)
        """The noise when the forecasts of the last steps were made."""

        self.clock = 0
        self._ahead = np.arange(1, horizon + 1)

    def add(self, values: Floats, forecasts: Floats) -> None:
        """Take in an observation of each series and what was forecast for it 1, 2, ... steps ago."""
        errors = values[:, None] - forecasts
        units = self.units[:, (self.clock - self._ahead) % self.horizon]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scores = np.where(errors == 0, 0.0, errors / units)
        self.scores[:, :, self.clock % self.scores.shape[2]] = np.clip(scores, -FARTHEST, FARTHEST)
        self._learn_noise(values, errors[:, 0])
        self.units[:, self.clock % self.horizon] = np.maximum(self.noise, 1e-6 * self.size)
        self.clock += 1

    def _learn_noise(self, values: Floats, errors: Floats) -> None:
        seen, forecasted = ~np.isnan(values), ~np.isnan(errors)
        self.size = np.where(seen, np.maximum(np.abs(values), self.size * (1 - 1 / NOISE_MEMORY)), self.size)
        self.count += forecasted
        share = np.where(forecasted, 1 / np.clip(self.count, 1, NOISE_MEMORY), 0.0)
        self.noise += share * (np.where(forecasted, np.abs(errors), 0.0) - self.noise)

    def spread(self, horizon: int, levels: tuple[float, ...]) -> Floats:
        """What to add to means to get quantiles, series × steps ahead × levels; beyond the horizon it grows with √h."""
        ordered = np.sort(self.scores, axis=2)  # what is NaN comes last
        count = (~np.isnan(ordered)).sum(axis=2)[:, :, None]
        place = np.clip((count + 1) * np.array(levels) - 1, 0, np.maximum(count - 1, 0))
        low = place.astype(np.int64)
        high = np.minimum(low + 1, np.maximum(count - 1, 0))
        below, above = (np.take_along_axis(ordered, each, axis=2) for each in (low, high))
        read = below + (place - low) * (above - below)
        # One error says what noise there is, and no error at all that nothing is known but the size.
        noise = np.where(self.count > 0, self.noise, self.size / 4)[:, None, None]
        normal = np.array([NormalDist().inv_cdf(level) for level in levels])
        rough = DEVIATIONS * np.sqrt(self._ahead)[None, :, None] * normal
        known = noise * np.where(count >= FEWEST, read, rough)
        beyond = np.maximum(np.arange(1, horizon + 1) / self.horizon, 1.0)
        return np.asarray(known[:, np.minimum(np.arange(horizon), self.horizon - 1)] * np.sqrt(beyond)[None, :, None])
