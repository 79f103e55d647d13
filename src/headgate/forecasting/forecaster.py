"""The protocols: a forecaster as others see it, and a recipe and its model as the room's own parts are made of."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from headgate.forecasting.forecast import Forecast
from headgate.model.arrays import Bools, Floats

__all__ = ["Forecaster", "Model", "Recipe", "as_columns"]

FARTHEST = 1e100
"""Larger numbers are no measurements, and smaller ones than one over it are 0: squares must stay finite."""


class Forecaster(Protocol):
    """Forecasts many series, from what was observed so far."""

    @property
    def name(self) -> str:
        """What it is called where several stand side by side."""

    @property
    def series(self) -> int:
        """How many series."""

    def update(self, observations: npt.ArrayLike) -> None:
        """Take in what was observed, series × steps (or one number for each series); NaN is a gap.

        Taken in piece by piece or at once, the forecasts are the same.
        """

    def forecast(self, horizon: int) -> Forecast:
        """What is expected of the next steps."""


class Model(Protocol):
    """The state of a recipe for some series: it knows means; intervals and resets are put around it."""

    def step(self, values: Floats) -> None:
        """Take in one moment of all series; NaN is a gap, in which time passes all the same."""

    def path(self, horizon: int) -> Floats:
        """Means, series × steps ahead."""

    def restart(self, which: Bools, recent: Floats) -> None:
        """Forget what was before a change of some series; ``recent`` is what they were since, series × steps."""


class Recipe(Protocol):
    """Frozen settings that make a model."""

    @property
    def name(self) -> str:
        """What it is called."""

    def model(self, series: int, horizon: int) -> Model:
        """A model of so many series that is asked for this many steps ahead."""


def as_columns(observations: npt.ArrayLike, series: int) -> Floats:
    """Observations as an array of series × steps in which what is no measurement is NaN.

    >>> as_columns([1.0, np.inf], 2).tolist()
    [[1.0], [nan]]
    """
    columns = np.array(observations, dtype=np.float64)
    if columns.ndim == 1 and len(columns) == series:
        columns = columns[:, None]
    if columns.ndim != 2 or len(columns) != series:
        raise ValueError(f"observations of shape {columns.shape} for {series} series; expected series × steps")
    with np.errstate(invalid="ignore"):
        columns[~(np.abs(columns) < FARTHEST)] = np.nan
        columns[np.abs(columns) < 1 / FARTHEST] = 0.0
    return columns
