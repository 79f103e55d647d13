"""Forecast the series of a file, or score how good forecasts from its past would have been."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from headgate.errors import BadValue, InputError, unknown
from headgate.forecasting.backtest import Scores, backtest, check_length, seasonal_scale
from headgate.forecasting.forecast import Forecast
from headgate.forecasting.forecaster import Recipe
from headgate.forecasting.guard import Guarded
from headgate.forecasting.methods import SEASONAL, methods_for, recipe_of
from headgate.forecasting.online import OnlineForecaster, Settings, start
from headgate.forecasting.table import SeriesTable, on_grid
from headgate.service.simulate import read_traces

__all__ = ["ForecastRequest", "Foreseen", "all_at_least_0", "foresee", "load_table", "past", "score", "season_steps"]

DAY_S, HOUR_S = 86_400.0, 3_600.0
SEASONS_SEEN = 2
"""A season is looked for only in files that hold this many of them."""

REPEATS = 0.9
"""A season is one if series are nearer to what they were a season ago than half a season ago, by so much."""


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """How far ahead to forecast, and with which forecasters."""

    horizon: int = 12
    season: int = 0
    methods: tuple[str, ...] = ()
    """All that can be used if empty."""

    non_negative: bool = True

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.methods or methods_for(self.season)


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """The forecast of one forecaster, and what was wrong with its input."""

    method: str
    forecast: Forecast
    warnings: tuple[str, ...]


def load_table(path: Path, metric: str | None, step_s: float | None, only: Sequence[str] = ()) -> SeriesTable:
    """The series of a file or folder (CSV, parquet), on a grid of equal steps."""
    traces = read_traces(path, metric)
    names = [each.vm for each in traces]
    for name in only:
        if name not in names:
            raise unknown("UNKNOWN_SERIES", f"{path} has no series {name[:60]!r}", name, names)
    kept = [each for each in traces if not only or each.vm in only]
    if not kept:
        raise InputError("UNKNOWN_SERIES", f"{path} has no series" + (f" of metric {metric[:60]!r}" if metric else ""))
    try:
        return on_grid([(each.vm, each.t_s, each.values) for each in kept], step_s)
    except BadValue as error:
        raise _input_error(error, str(path)) from None


def past(table: SeriesTable, warm_up: int | None) -> SeriesTable:
    """What is known when a backtest forecasts first: a third of the file if nothing else is asked for."""
    return replace(table, values=table.values[:, : warm_up or max(table.steps // 3, 1)])


def season_steps(table: SeriesTable, season_s: float | None) -> int:
    """A season in steps: the one that is given, else a day or an hour if series repeat themselves so; 0 is none."""
    if season_s is not None:
        steps = season_s / table.step_s
        if abs(steps - round(steps)) > 0.01 * steps or round(steps) < 2:
            message = f"a season of {season_s:g} s is {steps:.4g} steps of {table.step_s:g} s"
            raise InputError("BAD_FORECAST", f"{message}; expected a whole number of at least 2 of them")
        return round(steps)
    for length_s in (DAY_S, HOUR_S):
        steps = length_s / table.step_s
        whole = abs(steps - round(steps)) < 1e-6 and round(steps) >= 4
        if whole and table.steps >= SEASONS_SEEN * steps and _repeats(table, round(steps)):
            return round(steps)
    return 0


def _repeats(table: SeriesTable, season: int) -> bool:
    whole, half = (seasonal_scale(table.values, lag, season) for lag in (season, season // 2))
    return float(np.median(whole - REPEATS * half)) < 0


def foresee(table: SeriesTable, request: ForecastRequest) -> list[Foreseen]:
    """What each forecaster expects after the end of the file."""
    settings = Settings(horizon=request.horizon, non_negative=request.non_negative)
    forecasts = []
    for method in request.chosen:
        recipe = _recipe(method, request.season)
        guarded = Guarded(partial(_started, recipe, len(table.names), settings), settings)
        guarded.update(table.values)
        forecast = guarded.forecast(request.horizon)
        warnings = tuple(each.sentence(table.names) for each in guarded.complaints)
        forecasts.append(Foreseen(method, forecast, warnings))
    return forecasts


def score(
    table: SeriesTable,
    request: ForecastRequest,
    warm_up: int | None = None,
    origins: int = 500,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Scores]:
    """Score each forecaster; it learns from a third of the file first by default."""
    before = max(request.season, table.steps // 3) if warm_up is None else warm_up
    try:
        check_length(table.steps, before, request.horizon, request.season)
    except BadValue as error:
        raise _input_error(error, "too short a file") from None
    settings = Settings(horizon=request.horizon, non_negative=request.non_negative)
    scores = []
    for method in request.chosen:
        forecaster = _started(_recipe(method, request.season), len(table.names), settings)
        report = None if progress is None else partial(progress, method)
        scores.append(backtest(forecaster, table.values, request.horizon, request.season, before, origins, report))
    return scores


def _recipe(method: str, season: int) -> Recipe:
    if method in SEASONAL and season < 2:
        message = f"forecaster '{method}' needs a season, and the file is too short for a day or an hour to be one"
        raise InputError("BAD_FORECAST", f"{message}; say --season, or choose another forecaster")
    try:
        return recipe_of(method, season)
    except BadValue as error:
        raise _input_error(error) from None


def _started(recipe: Recipe, series: int, settings: Settings) -> OnlineForecaster:
    try:
        return start(recipe, series, settings)
    except BadValue as error:  # a package that is not installed
        raise _input_error(error) from None


def _input_error(error: BadValue, where: str = "") -> InputError:
    return InputError("BAD_FORECAST", f"{where}: {error.sentence}" if where else error.sentence)


def all_at_least_0(table: SeriesTable) -> bool:
    """Whether nothing negative was ever measured."""
    return not bool((np.nan_to_num(table.values) < 0).any())
