"""Backtests: forecasts from many moments of the past, compared with the truth.

MASE is the mean absolute error over that of the seasonal naive forecast (the value a season ago; without a season, one
step ago) on the same stretch: below 1 is better. The pinball loss of quantile q of level p against y is

    max(p (y − q), (p − 1) (y − q))

here as a mean over levels and steps, over the same denominator as MASE. Coverage is the share of what came that lay
within an interval.

Reference: R. J. Hyndman and A. B. Koehler 2006, *Another look at measures of forecast accuracy*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.forecast import Forecast
from headgate.forecasting.forecaster import Forecaster
from headgate.model.arrays import Floats

__all__ = ["Scores", "backtest", "check_length", "seasonal_scale"]

INTERVALS = ((0.9, 0.05, 0.95), (0.8, 0.1, 0.9), (0.5, 0.25, 0.75))


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """How a forecaster did, series by series."""

    name: str
    error: Floats
    """Mean absolute error, series × steps ahead."""

    scale: Floats
    """What the seasonal naive forecast is off by, by series; 0 for a series that repeats itself exactly."""

    pinball: Floats
    """Mean pinball loss by series, over the scale."""

    coverage: dict[float, float]
    """The share within an interval, by its nominal share."""

    origins: int
    last: Forecast
    """The last forecast that was compared, and from where."""

    last_origin: int

    @property
    def mase_by_series(self) -> Floats:
        """Mean absolute scaled error; NaN where the scale is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            mase: Floats = np.where(self.scale > 0, self.error.mean(axis=1) / self.scale, np.nan)
        return mase

    @property
    def mase(self) -> float:
        """The mean over series; NaN if there is none with a scale."""
        return _mean(self.mase_by_series)

    @property
    def mase_by_step(self) -> list[float]:
        """MASE for each step ahead."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = np.where(self.scale[:, None] > 0, self.error / self.scale[:, None], np.nan)
        return [_mean(column) for column in scaled.T]

    def as_dict(self) -> dict[str, Any]:
        """Numbers for programs."""
        return {
            "forecaster": self.name,
            "mase": _finite(self.mase),
            "mase_median": _finite(_median(self.mase_by_series)),
            "mae": _finite(_mean(self.error.mean(axis=1))),
            "pinball": _finite(_mean(self.pinball)),
            "coverage": {f"{share:g}": _finite(value) for share, value in self.coverage.items()},
            "mase_by_step": [_finite(value) for value in self.mase_by_step],
            "origins": self.origins,
            "series": len(self.scale),
        }


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _finite(value: float) -> float | None:
    return round(value, 6) if np.isfinite(value) else None


def seasonal_scale(values: Floats, season: int, since: int) -> Floats:
    """Mean absolute difference to a season ago (one step ago without a season), from a step on, by series.

    >>> seasonal_scale(np.array([[1.0, 2.0, 4.0, 3.0]]), 2, 2).tolist()
    [2.0]
    """
    lag = max(season, 1)
    begin = max(since, lag)
    apart = np.abs(values[:, begin:] - values[:, begin - lag : values.shape[1] - lag])
    known = ~np.isnan(apart)
    return np.asarray(np.where(known, apart, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def check_length(steps: int, warm_up: int, horizon: int, season: int) -> None:
    """Raise unless something is left to compare after the warm-up."""
    if horizon < 1:
        raise BadValue(f"a horizon of {horizon} steps", "at least 1")
    needed = max(warm_up, season, 1) + horizon
    if steps < needed:
        wanted = f"at least {needed}: a warm-up of {needed - horizon} and a horizon of {horizon}"
        raise BadValue(f"the series have {steps} steps", wanted)


def backtest(
    forecaster: Forecaster,
    values: Floats,
    horizon: int,
    season: int = 0,
    warm_up: int = 0,
    origins: int = 500,
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Feed the series step by step, forecast from at most ``origins`` moments after the warm-up, and compare.

    >>> from headgate.forecasting.naive import Naive
    >>> from headgate.forecasting.online import start
    >>> backtest(start(Naive(), 1), np.arange(50.0)[None, :], horizon=2, warm_up=10).mase
    1.5
    """
    steps = values.shape[1]
    check_length(steps, warm_up, horizon, season)
    first = max(warm_up, season, 1)
    count = steps - horizon - first + 1
    moments = list(range(first, steps - horizon + 1, -(-count // origins)))
    sums = _Sums(len(values), horizon)
    done, last = 0, None
    for moment in moments:
        forecaster.update(values[:, done:moment])
        done = moment
        last = forecaster.forecast(horizon)
        sums.add(last, values[:, moment : moment + horizon])
        if progress is not None:
            progress(moment, steps)
    assert last is not None
    scale = seasonal_scale(values, season, first)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(sums.count > 0, sums.error / sums.count, np.nan)
        pinball = np.where(scale > 0, sums.pinball / sums.count.sum(axis=1) / scale, np.nan)
        within = {share: float(sums.within[share] / sums.count.sum()) for share in sums.within}
    return Scores(forecaster.name, error, scale, pinball, within, len(moments), last, moments[-1])


class _Sums:
    """Sums over moments."""

    def __init__(self, series: int, horizon: int) -> None:
        self.error, self.count = np.zeros((series, horizon)), np.zeros((series, horizon))
        self.pinball = np.zeros(series)
        self.within: dict[float, float] = {}

    def add(self, forecasts: Forecast, came: Floats) -> None:
        known = ~np.isnan(came) & ~np.isnan(forecasts.mean)
        self.count += known
        self.error += np.where(known, np.abs(came - forecasts.mean), 0.0)
        off = came[:, :, None] - forecasts.quantiles
        levels = np.array(forecasts.levels)
        loss = np.maximum(levels * off, (levels - 1) * off).mean(axis=2)
        self.pinball += np.where(known, loss, 0.0).sum(axis=1)
        for share, low, high in INTERVALS:
            if low in forecasts.levels and high in forecasts.levels:
                inside = (came >= forecasts.at(low)) & (came <= forecasts.at(high)) & known
                self.within[share] = self.within.get(share, 0.0) + float(inside.sum())
