"""What comes, as policies on shared pools expect it: rates from a forecaster that their memory keeps."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.outlook import Outlook, usual_share
from headgate.adaptation.policy import Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.speed_estimates import SpeedEstimates
from headgate.adaptation.window import Window
from headgate.errors import InputError
from headgate.forecasting.forecaster import Forecaster
from headgate.forecasting.guard import Guarded
from headgate.forecasting.online import Settings, start
from headgate.forecasting.oracle import Oracle

__all__ = ["PooledForesight", "check_forecasts", "forecaster_of", "view_of"]

WATCHED = 24
"""Steps ahead at which the errors of a forecaster are recorded at most."""


def view_of(seen: Window) -> ClusterView:
    """Rates and machines of a window as policies of exclusive cores see them; nothing is placed."""
    machines, terms = seen.machines, seen.terms
    return ClusterView(
        seen.shape,
        terms.cloud,
        terms.level,
        terms.interval_s,
        seen.omega,
        seen.external.copy(),
        seen.waiting / terms.interval_s if terms.counts_queues else np.zeros(seen.shape.tasks),
        seen.active.copy(),
        machines.kind.copy(),
        machines.speed.copy(),
        np.zeros((len(machines.names), seen.shape.tasks), dtype=np.int64),
        machines.left_s.copy(),
        machines.names,
        machines.starts_s.copy(),
        terms.counts_queues,
    )


def forecaster_of(kept: Forecaster | None, settings: PolicySettings, terms: Terms, sources: int) -> Forecaster:
    """A copy of the forecaster that was kept, which may learn, or a new one."""
    recipe = settings.recipe(terms.interval_s, 1)
    if isinstance(recipe, Oracle):
        if kept is not None:
            return deepcopy(kept)
        if settings.future is None:
            raise InputError("BAD_FORECASTER", "an oracle knows the future of a simulation only; name a forecaster")
        return recipe.start(settings.future)
    steps = Settings(horizon=min(max(round(settings.horizon_s / terms.interval_s), 1), WATCHED))
    make = partial(start, recipe, sources, steps)
    if isinstance(kept, Guarded):
        copied = deepcopy(kept)
        # What makes another, should this one fail, is no part of a memory that was written down.
        copied.make = make
        return copied
    guarded = Guarded(make, steps)
    if settings.history is not None and settings.history.size:
        guarded.update(settings.history)
    return guarded


def check_forecasts(settings: PolicySettings, terms: Terms) -> None:
    """Raise :class:`InputError` for an unknown forecaster or a horizon of no interval."""
    settings.recipe(terms.interval_s, 1)
    if round(settings.horizon_s / terms.interval_s) < 1:
        message = f"a horizon of {settings.horizon_s:g} s is shorter than an interval of {terms.interval_s:g} s"
        raise InputError("BAD_HORIZON", f"{message}; look at least one interval ahead")


@dataclass(frozen=True, slots=True, eq=False)
class PooledForesight:
    """The outlook of a decision, and what is to be said of it."""

    outlook: Outlook
    sentences: tuple[str, ...] = ()

    @classmethod
    def of(cls, seen: Window, notes: Notes, settings: PolicySettings) -> PooledForesight:
        """Take in a window, and look ahead; where a forecaster fails, the present goes on."""
        terms, sources = seen.terms, list(seen.shape.sources)
        steps = max(round(settings.horizon_s / terms.interval_s), 1)
        forecaster = forecaster_of(notes.get("rates"), settings, terms, len(sources))
        hour = max(1, round(3_600 / terms.interval_s))
        speeds: SpeedEstimates = deepcopy(notes.get("speeds") or SpeedEstimates(hour))
        machines = seen.machines
        rated = np.array([each.core_power for each in terms.cloud.classes])[machines.kind]
        working = zip(machines.names, (machines.speed / rated).tolist(), machines.starts_s.tolist(), strict=True)
        speeds.see((name, share) for name, share, starts_s in working if starts_s <= 0)
        forecaster.update(seen.external[sources])
        notes["rates"], notes["speeds"] = forecaster, speeds
        forecast = forecaster.forecast(steps).mean
        trouble = _trouble(forecaster, [str(seen.shape.names[place]) for place in sources])
        external = np.tile(seen.external, (steps, 1))
        if not trouble and np.isfinite(forecast).all():
            external[:, sources] = np.maximum(forecast.T, 0.0)
        expected = rated * np.array([speeds.expected(name) for name in machines.names])
        expected = np.where(machines.starts_s <= 0, expected, machines.speed)
        notices = (f"no forecast: {trouble}; decided on observations instead",) if trouble else ()
        outlook = Outlook(external, np.tile(expected, (steps, 1)), usual_share(view_of(seen)), trouble)
        return cls(outlook, notices)


def _trouble(forecaster: Forecaster, names: list[str]) -> str:
    if not isinstance(forecaster, Guarded):
        return ""
    if not forecaster.failing.any():
        return ""
    if not forecaster.complaints:
        return "the forecaster does not answer"
    return forecaster.complaints[-1].sentence(names).partition(";")[0]
