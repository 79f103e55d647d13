"""PLAN-AHEAD's oracle: the truth with an error that grows with the distance, for experiments.

The error bound grows linearly from 0 now to twice the mean error ê at the end of the prediction interval of n steps:

    e_i = 2 ê i / n        forecast_i = truth_i · (1 + bias + N(0, variance e_i / 2))

This is how the paper states it, with errors as shares of the value: ê = 0.1 gives a standard deviation of 0.32 at the
end. With ``reading="deviation"`` the standard deviation is e_i / 2 instead (0.1 at the end), which keeps 95 % of errors
within the bound that e_i is called.

Reference: PLAN-AHEAD, section VII-A.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue
from headgate.forecasting.forecast import LEVELS, Forecast, check_levels
from headgate.forecasting.forecaster import as_columns
from headgate.model.arrays import Floats

__all__ = ["Oracle", "OracleForecaster"]


@dataclass(frozen=True, slots=True)
class Oracle:
    """How wrong an oracle is: a mean error, a bias, both as shares of the value."""

    error: float = 0.0
    bias: float = 0.0
    seed: int = 1
    reading: Literal["variance", "deviation"] = "variance"
    levels: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        check_levels(self.levels)
        if not 0 <= self.error <= 1 or not -1 < self.bias < 1:
            raise BadValue(f"error and bias are {self.error:g} and {self.bias:g}", "shares of the value, such as 0.1")
        if self.reading not in ("variance", "deviation"):
            raise BadValue(f"reading is {self.reading!r}", "variance or deviation")

    def start(self, truth: npt.ArrayLike) -> OracleForecaster:
        """The forecaster of series whose whole future is given, series × steps.

        >>> knows = Oracle().start([[1.0, 2.0, 3.0, 4.0]])
        >>> knows.update([1.0])
        >>> knows.forecast(4).mean.tolist()
        [[2.0, 3.0, 4.0, 4.0]]
        """
        return OracleForecaster(self, np.asarray(truth, dtype=np.float64))

    def forecast_at(self, truth: Floats, moment: int) -> Floats:
        """The next steps of some series, series × steps, as they are forecast at a moment; the same if asked again."""
        draws = np.random.default_rng([self.seed, moment]).standard_normal(truth.shape)
        # Neither rates nor performance can be negative.
        return truth * np.maximum(1 + self.bias + self.deviations(truth.shape[1]) * draws, 0.0)

    def deviations(self, horizon: int) -> Floats:
        """The standard deviation of the error at each step, as a share of the value."""
        bound = 2 * self.error * np.arange(1, horizon + 1) / horizon
        return np.sqrt(bound / 2) if self.reading == "variance" else bound / 2


class OracleForecaster:
    """The truth of some series, and how much of it has passed."""

    def __init__(self, oracle: Oracle, truth: Floats) -> None:
        if truth.ndim != 2 or truth.shape[1] == 0:
            raise BadValue(f"a truth of shape {truth.shape}", "series × steps")
        self.oracle = oracle
        self.truth = truth
        self.passed = 0

    @property
    def name(self) -> str:
        return "oracle"

    @property
    def series(self) -> int:
        return len(self.truth)

    def update(self, observations: npt.ArrayLike) -> None:
        """Let as much time pass as was observed; the values are known already."""
        self.passed += as_columns(observations, self.series).shape[1]

    def forecast(self, horizon: int) -> Forecast:
        """The next steps with their errors, the same whenever they are asked for; past the end, the last value."""
        if horizon < 1:
            raise BadValue(f"a forecast of {horizon} steps", "at least 1")
        places = np.minimum(self.passed + np.arange(horizon), self.truth.shape[1] - 1)
        deviations = self.oracle.deviations(horizon)
        mean = self.oracle.forecast_at(self.truth[:, places], self.passed)
        normal = np.array([NormalDist().inv_cdf(level) for level in self.oracle.levels])
        quantiles = mean[:, :, None] * np.maximum(1 + deviations[None, :, None] * normal, 0.0)
        return Forecast(mean, quantiles, self.oracle.levels)
