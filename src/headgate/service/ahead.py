"""Policies that look ahead, for a simulation: what they look with, and how far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from headgate.adaptation.foresight import Foresight
from headgate.adaptation.outlook import Predictor, PresentOnly
from headgate.adaptation.policies.averages import Averaged, RecentMean
from headgate.adaptation.policies.lookahead import LookAhead
from headgate.adaptation.policies.reactive import Core
from headgate.errors import BadValue, InputError
from headgate.forecasting.methods import recipe_of
from headgate.forecasting.oracle import Oracle
from headgate.model.arrays import Floats
from headgate.service.receding import receding_core
from headgate.simulation.perfect_forecast import PerfectForecast
from headgate.simulation.simulator import Simulator

__all__ = ["CORES", "Ahead"]


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """A forecaster and a horizon, as they are written: ``ensemble``, ``oracle``, ``oracle:0.1`` or ``oracle:0.1:0.05``.

    The numbers of an oracle are its mean error and its bias, as shares of the value.
    """

    forecaster: str = "ensemble"
    horizon_s: float = 1_800.0
    season_s: float = 0.0
    history: Floats | None = None
    """What came in before the first interval, sources × steps, where it is known."""

    def predictor(self, simulator: Simulator, row: int) -> Predictor:
        """Eyes for one replication; what is wrong with the settings is told in one sentence."""
        interval_s = simulator.setting.interval_s
        steps = round(self.horizon_s / interval_s)
        if steps < 1:
            told = f"a horizon of {self.horizon_s:g} s is shorter than an interval of {interval_s:g} s"
            raise InputError("BAD_HORIZON", f"{told}; look at least one interval ahead")
        try:
            if self.forecaster.partition(":")[0] == "oracle":
                return PerfectForecast(self.oracle(simulator.setting.seed + row), simulator, row, steps)
            recipe = recipe_of(self.forecaster, round(self.season_s / interval_s))
        except BadValue as error:
            raise InputError("BAD_FORECASTER", error.sentence.replace("expected", "expected oracle or", 1)) from None
        return Foresight.of(steps, simulator.shape.sources, recipe, None, self.history)

    def oracle(self, seed: int) -> Oracle:
        """The oracle that is written; raises :class:`BadValue` where its numbers are none."""
        try:
            numbers = [float(text) for text in self.forecaster.split(":")[1:]]
        except ValueError:
            numbers = [np.nan]
        if len(numbers) > 2 or not np.isfinite(numbers).all():
            raise BadValue(f"forecaster is {self.forecaster[:60]!r}", "oracle:ERROR:BIAS, such as oracle:0.1:-0.05")
        error, bias = [*numbers, 0.0, 0.0][:2]
        return Oracle(error, bias, seed)


def _averaged(model: str) -> Callable[[Ahead, Simulator, int], Core]:
    return lambda ahead, simulator, row: Averaged(model, ahead.predictor(simulator, row))


CORES: Mapping[str, tuple[Callable[[Ahead, Simulator, int], Core], str]] = {
    "lookahead": (
        lambda ahead, simulator, row: LookAhead(ahead.predictor(simulator, row)),
        "PLAN-AHEAD's Alg. 1: plans for where throughput will leave its band",
    ),
    "lookahead-plain": (
        lambda ahead, simulator, row: LookAhead(ahead.predictor(simulator, row), plain=True),
        "Alg. 1 as the paper prints it",
    ),
    "receding": (receding_core, "a program over what is forecast for the rest of the period, one step of it done"),
    "caf": (lambda *_: Averaged("caf", PresentOnly()), "ce on what was observed last (PLAN-AHEAD's averaging models)"),
    "waaf": (lambda *_: Averaged("waaf", RecentMean()), "ce on the mean of the last six intervals"),
    "wpa": (_averaged("wpa"), "ce on the mean of what is forecast"),
    "wpo": (_averaged("wpo"), "ce on the most favourable of what is forecast"),
    "wpp": (_averaged("wpp"), "ce on the least favourable of what is forecast"),
}
"""Cores by name, one for each replication, and what they are."""
