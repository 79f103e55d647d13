"""An ensemble: the mean of several models' forecasts, each weighted by how it has lately done at that horizon.

    weight of model i at horizon h  ∝  (discounted mean absolute error of i at h) ^ −power

Reference: J. M. Bates and C. W. J. Granger 1969, *The combination of forecasts*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headgate.errors import BadValue
from headgate.forecasting.arrays import ArrayModel
from headgate.forecasting.forecaster import Recipe
from headgate.forecasting.pending import Pending
from headgate.model.arrays import Bools, Floats

__all__ = ["Ensemble", "EnsembleModel"]

FIRST_SEASON = 4.0
"""So many errors those of the first season count for."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Several recipes as one."""

    name: ClassVar = "ensemble"
    members: tuple[Recipe, ...]
    memory: float = 300.0
    power: float = 16.0

    def __post_init__(self) -> None:
        if not self.members:
            raise BadValue("an ensemble without members", "at least one recipe")
        if self.memory < 2 or self.power < 0:
            raise BadValue(f"memory and power are {self.memory:g} and {self.power:g}", "at least 2 and 0")

    def model(self, series: int, horizon: int) -> EnsembleModel:
        return EnsembleModel(self, series, horizon)


class EnsembleModel(ArrayModel):
    """The members' models, and how each did: series × members × horizons."""

    def __init__(self, recipe: Ensemble, series: int, horizon: int) -> None:
        super().__init__(recipe, series, horizon)
        self.models = [each.model(series, horizon) for each in recipe.members]
        self.pending = [Pending(series, horizon) for _ in recipe.members]
        self.paths = self._members(horizon)
        self.errors = np.zeros((series, len(recipe.members), horizon))
        self.count = np.zeros((series, horizon))
        self.seasons = {int(getattr(member, "season", 0)) for member in recipe.members} - {0}

    def step(self, values: Floats) -> None:
        if self.clock in self.seasons:
            # What a member did before it had seen a season says little of what it does from now on.
            self.count = np.minimum(self.count, FIRST_SEASON)
        self._judge(values)
        for model in self.models:
            model.step(values)
        self.paths = self._members(self.horizon)
        for place, pending in enumerate(self.pending):
            pending.add(self.paths[:, place])
        self.clock += 1

    def _judge(self, values: Floats) -> None:
        forecasts = np.stack([pending.forecasts() for pending in self.pending], axis=1)
        errors = np.abs(values[:, None, None] - forecasts)
        # All or none: a model that has said nothing yet must not look better for it.
        known = np.asarray(~np.isnan(errors).any(axis=1))
        self.count += known
        share = np.where(known, 1 / np.clip(self.count, 1, self.recipe.memory), 0.0)[:, None, :]
        self.errors += share * (np.where(known[:, None, :], errors, self.errors) - self.errors)

    def weights(self) -> Floats:
        """The weights, series × members × horizons; equal where nothing is known yet."""
        least = self.errors.min(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.errors > 0, least / self.errors, 1.0)
        raw = ratio**self.recipe.power
        return np.asarray(raw / raw.sum(axis=1, keepdims=True))

    def path(self, horizon: int) -> Floats:
        weights = self.weights()[:, :, np.minimum(np.arange(horizon), self.horizon - 1)]
        paths = self.paths[:, :, :horizon] if horizon <= self.horizon else self._members(horizon)
        return np.asarray((weights * paths).sum(axis=1))

    def _members(self, horizon: int) -> Floats:
        """The members' paths, series × members × steps."""
        return np.stack([model.path(horizon) for model in self.models], axis=1)

    def restart(self, which: Bools, recent: Floats) -> None:
        for model in self.models:
            model.restart(which, recent)
        self.paths = self._members(self.horizon)
