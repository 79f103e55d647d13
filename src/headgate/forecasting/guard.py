"""A guard around a forecaster: failures and invalid forecasts are reported and replaced by the last value.

A policy that looks ahead asks :attr:`Guarded.failing` which series it had better not look ahead for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from headgate.forecasting.forecast import LEVELS, Forecast
from headgate.forecasting.forecaster import Forecaster, as_columns
from headgate.forecasting.naive import Naive
from headgate.forecasting.online import Settings, start
from headgate.model.arrays import Bools, Floats

__all__ = ["Complaint", "Guarded", "Wrong"]

FROZEN = 8
"""Forecasts in a row that say the same while the series goes on."""

ABSURD = 100.0
"""Times the largest value ever seen."""

KEPT = 256
"""Steps with which a forecaster that raised is restarted."""


class Wrong(StrEnum):
    """What is wrong with a forecast."""

    RAISED = "raised"
    SHAPE = "has another shape than was asked for"
    NOT_A_NUMBER = "is not a finite number"
    NEGATIVE = "is negative"
    CROSSED = "has quantiles that cross"
    ABSURD = "is more than a hundred times all that was ever seen"
    FROZEN = "has not moved while the series did"


@dataclass(frozen=True, slots=True)
class Complaint:
    """What was noticed, when, and about which series."""

    forecaster: str
    wrong: Wrong
    series: tuple[int, ...]
    step: int
    detail: str = ""

    def sentence(self, names: Sequence[str] = ()) -> str:
        """The complaint for people.

        >>> Complaint("holt", Wrong.NEGATIVE, (0, 3), 12).sentence(["a", "b", "c", "d"])
        "after step 12 the forecast of 'holt' for 'a' and 1 more is negative; the last value is used instead"
        """
        first = f"'{names[self.series[0]]}'" if names else f"series {self.series[0]}"
        whose = first if len(self.series) == 1 else f"{first} and {len(self.series) - 1} more"
        if self.wrong is Wrong.RAISED:
            message = f"after step {self.step} forecaster '{self.forecaster}' raised {self.detail}"
        else:
            message = f"after step {self.step} the forecast of '{self.forecaster}' for {whose} {self.wrong}"
        return f"{message}; the last value is used instead"


class Guarded:
    """A forecaster that always returns numbers; :attr:`complaints` lists when they are replaced.

    >>> from headgate.forecasting.holt import Holt
    >>> guarded = Guarded(lambda: start(Holt(), 1))
    >>> guarded.update([[1.0, 2.0, 3.0]])
    >>> guarded.forecast(1).mean.tolist(), guarded.complaints
    ([[4.0]], [])
    """

    def __init__(self, make: Callable[[], Forecaster], settings: Settings | None = None) -> None:
        self.make = make
        self.inner: Forecaster | None = make()
        self.name = self.inner.name
        self.settings = settings or Settings()
        series = self.inner.series
        self.fallback = start(Naive(), series, self.settings)
        self.complaints: list[Complaint] = []
        self.failing: Bools = np.zeros(series, dtype=np.bool_)
        """Series whose last forecast was the last value, since the forecaster's could not be used."""

        self.steps = 0
        self._kept = np.full((series, 0), np.nan)
        self._last, self._largest = np.full(series, np.nan), np.zeros(series)
        self._moved = np.zeros(series, dtype=np.bool_)
        self._same = np.zeros(series, dtype=np.int64)
        self._before: Forecast | None = None
        self._wrong: dict[Wrong, Bools] = {}

    @property
    def series(self) -> int:
        return len(self.failing)

    def update(self, observations: npt.ArrayLike) -> None:
        """Take in observations; the inner forecaster may raise, and is then restarted from the last ones."""
        columns = as_columns(observations, self.series)
        if columns.shape[1] == 0:
            return
        seen = ~np.isnan(columns)
        self._moved |= (seen & (columns != self._last[:, None])).any(axis=1)
        self._last = _last_known(self._last, columns)
        self._largest = np.maximum(self._largest, np.nan_to_num(np.abs(columns)).max(axis=1))
        self._kept = np.concatenate([self._kept, columns], axis=1)[:, -KEPT:]
        self.steps += columns.shape[1]
        self.fallback.update(columns)
        try:
            if self.inner is None:
                self.inner = self.make()
                self.inner.update(self._kept)
            else:
                self.inner.update(columns)
        except Exception as error:  # whatever a forecaster raises, the loop that asks it must go on
            self._raised(error)

    def _raised(self, error: Exception) -> None:
        self.inner = None
        message = f"{type(error).__name__}: {str(error)[:200]}"
        self._tell({Wrong.RAISED: np.ones(self.series, dtype=np.bool_)}, message)

    def forecast(self, horizon: int) -> Forecast:
        """The inner forecaster's forecast, with the last value for every series where that is nonsense."""
        instead = self.fallback.forecast(horizon)
        forecast: Forecast | None = None
        if self.inner is not None:
            try:
                forecast = self.inner.forecast(horizon)
                wrong = self._faults(forecast, instead, horizon)
            except Exception as error:  # as above
                self._raised(error)
        if forecast is None or self.inner is None:
            self.failing = np.ones(self.series, dtype=np.bool_)
            return instead
        self._tell(wrong)
        self.failing = np.logical_or.reduce(list(wrong.values()))
        if not self.failing.any():
            return forecast
        if self.failing.all():
            return instead
        rows = self.failing[:, None]
        quantiles = np.where(rows[:, :, None], instead.quantiles, forecast.quantiles)
        return Forecast(np.where(rows, instead.mean, forecast.mean), quantiles, forecast.levels)

    def _faults(self, forecast: Forecast, instead: Forecast, horizon: int) -> dict[Wrong, Bools]:
        levels = self.settings.levels or LEVELS
        if forecast.mean.shape != (self.series, horizon) or forecast.quantiles.shape != (
            self.series,
            horizon,
            len(levels),
        ):
            return {Wrong.SHAPE: np.ones(self.series, dtype=np.bool_)}
        known = ~np.isnan(instead.mean[:, 0])
        numbers = np.concatenate([forecast.mean[:, :, None], forecast.quantiles], axis=2).reshape(self.series, -1)
        finite = np.isfinite(numbers).all(axis=1)
        numbers = np.nan_to_num(numbers)
        falls = np.diff(np.nan_to_num(forecast.quantiles), axis=2).min(axis=(1, 2)) < -1e-9 * self._largest
        far = np.abs(np.nan_to_num(forecast.mean)).max(axis=1) > ABSURD * self._largest
        return {
            Wrong.NOT_A_NUMBER: known & ~finite,
            Wrong.NEGATIVE: known & finite & self.settings.non_negative & (numbers < 0).any(axis=1),
            Wrong.CROSSED: known & finite & falls,
            Wrong.ABSURD: known & finite & far,
            Wrong.FROZEN: known & finite & self._frozen(forecast),
        }

    def _frozen(self, forecast: Forecast) -> Bools:
        before, self._before = self._before, forecast
        if before is None or before.mean.shape != forecast.mean.shape:
            self._same[:] = 0
        else:
            same = (before.mean == forecast.mean).all(axis=1) & (before.quantiles == forecast.quantiles).all(
                axis=(1, 2)
            )
            self._same = np.where(same, self._same + self._moved, 0)
        self._moved[:] = False
        return self._same >= FROZEN

    def _tell(self, wrong: dict[Wrong, Bools], detail: str = "") -> None:
        """A complaint for each new kind of fault of a series; one that continues is not repeated."""
        for kind, which in wrong.items():
            begun = which & ~self._wrong.get(kind, np.zeros(self.series, dtype=np.bool_))
            if begun.any():
                series = tuple(np.flatnonzero(begun).tolist())
                self.complaints.append(Complaint(self.name, kind, series, self.steps, detail))
        self._wrong = wrong


def _last_known(before: Floats, columns: Floats) -> Floats:
    """The last value of each series that is no gap."""
    places = columns.shape[1] - 1 - np.argmax(~np.isnan(columns[:, ::-1]), axis=1)
    last = columns[np.arange(len(columns)), places]
    return np.where(np.isnan(last), before, last)
