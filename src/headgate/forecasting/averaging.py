"""One number for an interval, for policies that know no future: PLAN-AHEAD's averages of what is forecast.

CAF, the last observed value, and WAAF, the mean of a recent window, are forecasters
(:class:`headgate.forecasting.naive.Naive`, :class:`headgate.forecasting.naive.WindowMean`); the others are here.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from headgate.forecasting.forecast import Forecast

__all__ = ["Average", "average"]


class Average(StrEnum):
    """How the steps of a forecast become one number."""

    WPA = "wpa"
    """The mean of what is predicted."""

    WPO = "wpo"
    """The most favourable: of rates the lowest, of performance the highest."""

    WPP = "wpp"
    """The least favourable."""


def average(forecast: Forecast, how: Average, more_is_better: bool) -> npt.NDArray[np.float64]:
    """One number for each series: of rates less is better, of performance more.

    >>> three = Forecast(np.array([[1.0, 2.0, 6.0]]), np.zeros((1, 3, 1)), (0.5,))
    >>> [average(three, how, more_is_better=False).tolist() for how in Average]
    [[3.0], [1.0], [6.0]]
    """
    if how is Average.WPA:
        return np.asarray(forecast.mean.mean(axis=1))
    if more_is_better == (how is Average.WPO):
        return np.asarray(forecast.mean.max(axis=1))
    return np.asarray(forecast.mean.min(axis=1))
