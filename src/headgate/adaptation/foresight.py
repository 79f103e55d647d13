"""Forecasts of all rates and machines. Where a forecaster fails, the present values are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.outlook import Outlook, PresentOnly, usual_share
from headgate.errors import BadValue
from headgate.forecasting.autoregressive import Autoregressive
from headgate.forecasting.forecaster import Forecaster, Recipe
from headgate.forecasting.guard import Complaint, Guarded
from headgate.forecasting.online import Settings, start
from headgate.model.arrays import Floats

__all__ = ["Foresight", "Machines"]

FEW_MACHINES = 16
KEPT = 144
"""Steps of a machine's past from which forecasting goes on when there are more machines than there was room for."""


class Foresight:
    """Predicts ``steps`` ahead with two forecasters: one of all rates, one of the relative speed of every machine.

    ``make_rates`` makes the first from a number of series, so that it can be any forecaster; the history is what was
    observed before the first decision, sources × steps.
    """

    def __init__(
        self,
        steps: int,
        sources: Sequence[int],
        make_rates: Callable[[int], Forecaster],
        machines: Machines,
        history: Floats | None = None,
    ) -> None:
        if steps < 1:
            raise BadValue(f"a horizon of {steps} steps", "at least 1")
        self.steps = steps
        self.sources = list(sources)
        self.rates = Guarded(lambda: make_rates(len(self.sources)), Settings(horizon=steps))
        self.machines = machines
        if history is not None and history.size:
            self.rates.update(history)

    @classmethod
    def of(
        cls,
        steps: int,
        sources: Sequence[int],
        recipe: Recipe,
        speed: Recipe | None = None,
        history: Floats | None = None,
    ) -> Foresight:
        """With recipes of ours; machines by a mean that is drawn back to, unless another recipe is named."""
        settings = Settings(horizon=max(steps, 1))
        machines = Machines(speed or Autoregressive(), settings)
        return cls(steps, sources, lambda series: start(recipe, series, settings), machines, history)

    def predict(self, now: ClusterView) -> Outlook:
        """Take in what was observed, and forecast; without a horizon, or where a forecaster fails, the present."""
        self.rates.update(now.external[self.sources])
        self.machines.see(now)
        present = PresentOnly().predict(now)
        if self.steps == 1:
            return present
        rates = self.rates.forecast(self.steps).mean
        share, lost = self.machines.ahead(now, self.steps)
        trouble = self._trouble(now)
        if trouble or lost:
            return Outlook(present.external, present.speed, present.usual, trouble or lost)
        external = np.zeros((self.steps, now.shape.tasks))
        external[:, self.sources] = rates.T
        rated = np.array([each.core_power for each in now.cloud.classes])[now.kind[: now.held]]
        return Outlook(external, share.T * rated, present.usual)

    def _trouble(self, now: ClusterView) -> str:
        if not self.rates.failing.any():
            return ""
        names = [str(now.shape.names[place]) for place in self.sources]
        return _last_complaint(self.rates.complaints, names)


def _last_complaint(complaints: Sequence[Complaint], names: Sequence[str]) -> str:
    if not complaints:
        return "the forecaster does not answer"
    return complaints[-1].sentence(names).partition(";")[0]


class Machines:
    """Relative speeds of all machines over time; machines appear and disappear.

    All of them have one forecaster, with room for more than there are. When it is full another is begun with the recent
    past of those that are still there.
    """

    def __init__(self, recipe: Recipe, settings: Settings) -> None:
        self.recipe, self.settings = recipe, settings
        self.row: dict[str, int] = {}
        self.past = np.full((FEW_MACHINES, 0), np.nan)
        self.guard = self._begun(FEW_MACHINES)

    def _begun(self, room: int) -> Guarded:
        return Guarded(partial(start, self.recipe, room, self.settings), self.settings)

    def see(self, now: ClusterView) -> None:
        """Take in the speeds of the machines that work."""
        if any(name not in self.row for name in now.machine):
            self._make_room(now)
        rated = np.array([each.core_power for each in now.cloud.classes])[now.kind[: now.held]]
        column = np.full(len(self.past), np.nan)
        working = now.starts_s <= 0
        places = np.array([self.row[name] for name in now.machine], dtype=np.int64)
        column[places[working]] = (now.speed[: now.held] / rated)[working]
        self.past = np.concatenate([self.past, column[:, None]], axis=1)[:, -KEPT:]
        self.guard.update(column)

    def _make_room(self, now: ClusterView) -> None:
        new = [name for name in now.machine if name not in self.row]
        if len(self.row) + len(new) <= len(self.past):
            self.row |= {name: len(self.row) + number for number, name in enumerate(new)}
            return
        stay = [name for name in now.machine if name in self.row]
        room = len(self.past)
        while room < 2 * len(now.machine):
            room *= 2
        past = np.full((room, self.past.shape[1]), np.nan)
        past[: len(stay)] = self.past[[self.row[name] for name in stay]]
        self.row = {name: number for number, name in enumerate([*stay, *new])}
        self.past, self.guard = past, self._begun(room)
        self.guard.update(past)

    def ahead(self, now: ClusterView, steps: int) -> tuple[Floats, str]:
        """Relative speeds, machines × steps, and a sentence if they are unknown.

        A machine that was never measured is expected to do what machines usually do.
        """
        mean = self.guard.forecast(steps).mean
        places = np.array([self.row[name] for name in now.machine], dtype=np.int64)
        speeds = mean[places] if len(places) else np.zeros((0, steps))
        lost = ""
        if self.guard.failing[places].any():
            inverse = {place: name for name, place in self.row.items()}
            names = [inverse.get(place, f"machine {place}") for place in range(len(self.past))]
            lost = _last_complaint(self.guard.complaints, names)
        return np.where(np.isnan(speeds), usual_share(now), np.clip(speeds, 0.01, None)), lost
