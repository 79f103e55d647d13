"""The forecasters by name, as commands and settings call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headgate.errors import BadValue, nearest
from headgate.forecasting.autoregressive import Autoregressive
from headgate.forecasting.ensemble import Ensemble
from headgate.forecasting.fitted import FITTED, Fitted
from headgate.forecasting.forecaster import Recipe
from headgate.forecasting.holt import Holt
from headgate.forecasting.holt_winters import HoltWinters
from headgate.forecasting.kalman import Kalman
from headgate.forecasting.naive import Naive, SeasonalNaive, WindowMean

__all__ = ["METHODS", "SEASONAL", "methods_for", "recipe_of"]


def _ensemble(season: int) -> Recipe:
    with_season: tuple[Recipe, ...] = (SeasonalNaive(season), HoltWinters(season)) if season > 1 else ()
    return Ensemble((Naive(), WindowMean(), Holt(), Kalman(), Autoregressive(season=season), *with_season))


METHODS: Mapping[str, Callable[[int], Recipe]] = {
    "naive": lambda _: Naive(),
    "seasonal-naive": SeasonalNaive,
    "window-mean": lambda _: WindowMean(),
    "holt": lambda _: Holt(),
    "holt-winters": HoltWinters,
    "kalman": lambda _: Kalman(),
    "ar": lambda season: Autoregressive(season=season if season > 1 else 0),
    "ensemble": lambda season: _ensemble(season if season > 1 else 0),
}
"""Recipes from the steps of a season, 0 being none; :data:`headgate.forecasting.fitted.FITTED` has slower ones."""

SEASONAL = ("seasonal-naive", "holt-winters")
"""Those that cannot do without a season."""


def methods_for(season: int) -> tuple[str, ...]:
    """The forecasters that can be used with or without a season.

    >>> methods_for(0)
    ('naive', 'window-mean', 'holt', 'kalman', 'ar', 'ensemble')
    """
    return tuple(name for name in METHODS if season > 1 or name not in SEASONAL)


def recipe_of(name: str, season: int = 0) -> Recipe:
    """The recipe of a name, for a season of so many steps (0: none).

    >>> recipe_of("seasonal-naive", 24)
    SeasonalNaive(season=24)
    """
    if name in FITTED:
        return Fitted(name, season if season > 1 else 0)
    if name not in METHODS:
        there = (*METHODS, *FITTED)
        raise BadValue(f"unknown forecaster {name[:60]!r}", f"one of {', '.join(there)}", nearest(name, there))
    if name in SEASONAL and season < 2:
        raise BadValue(f"forecaster '{name}' needs a season", "a season of at least 2 steps")
    return METHODS[name](season)
