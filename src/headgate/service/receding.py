"""The receding horizon, for a simulation: what it forecasts with, and the period that it counts over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.adaptation.policies.receding import Receding
from headgate.errors import BadValue, InputError
from headgate.forecasting.forecaster import Forecaster
from headgate.forecasting.guard import Guarded
from headgate.forecasting.methods import recipe_of
from headgate.forecasting.online import Settings, start
from headgate.planning.objective import BreakEven
from headgate.simulation.simulator import Simulator

if TYPE_CHECKING:
    from headgate.service.ahead import Ahead

__all__ = ["receding_core"]

WATCHED = 24
"""Steps ahead at which the forecaster's errors are watched; it is asked for the whole period."""


def receding_core(ahead: Ahead, simulator: Simulator, row: int) -> Receding:
    """The core for one replication; the period is that of the simulation."""
    setting = simulator.setting
    even = BreakEven.of(setting.dataflow)
    if even is None or even.sigma <= 0:
        told = f"policy 'receding' weighs value against cost, and dataflow '{setting.dataflow.name}' does not say how"
        raise InputError("NO_BREAK_EVEN", f"{told}; give break-even costs and alternates of different value")
    if simulator.shape.stream_returns.any():
        raise InputError("LOOP", f"dataflow '{setting.dataflow.name}' has a loop, and policy 'receding' plans without")
    sources = list(simulator.shape.sources)
    return Receding(
        _forecaster(ahead, simulator, row), sources, even, setting.interval_s, setting.intervals, setting.counts_queues
    )


def _forecaster(ahead: Ahead, simulator: Simulator, row: int) -> Forecaster:
    setting, sources = simulator.setting, simulator.shape.sources
    try:
        if ahead.forecaster.partition(":")[0] == "oracle":
            oracle = ahead.oracle(setting.seed + row)
            return oracle.start(simulator.external[row].T[: len(sources)])
        recipe = recipe_of(ahead.forecaster, round(ahead.season_s / setting.interval_s))
    except BadValue as error:
        raise InputError("BAD_FORECASTER", error.sentence.replace("expected", "expected oracle or", 1)) from None
    settings = Settings(horizon=WATCHED)
    found = Guarded(partial(start, recipe, len(sources), settings), settings)
    if ahead.history is not None and ahead.history.size:
        found.update(ahead.history)
    return found
