"""How policies look ahead: with which forecaster, how far, and what a replication of a world must offer them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from headgate.adaptation.foresight import Foresight
from headgate.adaptation.outlook import Predictor
from headgate.adaptation.policies.receding import Receding
from headgate.errors import BadValue, InputError
from headgate.forecasting.forecaster import Forecaster, Recipe
from headgate.forecasting.guard import Guarded
from headgate.forecasting.methods import recipe_of
from headgate.forecasting.online import Settings, start
from headgate.forecasting.oracle import Oracle
from headgate.model.arrays import Floats, Shape
from headgate.planning.objective import BreakEven
from headgate.planning.world import World
from headgate.queueing.fitting.smoothing import AlphaWeighted, Smoothing

__all__ = ["PolicySettings", "Replication", "predictor_of", "receding_core"]

WATCHED = 24
"""Steps ahead at which the errors of the forecaster of ``receding`` are recorded; it forecasts the whole period."""


class Replication(Protocol):
    """One run of a world, which knows the future of its rates and machines."""

    @property
    def world(self) -> World: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def number(self) -> int: ...
    def true_rates(self) -> Floats:
        """Rates of the sources that will come, sources × intervals."""

    def perfect_forecast(self, oracle: Oracle, steps: int) -> Predictor:
        """A predictor that knows rates and machines up to the oracle's errors."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicySettings:
    """What can be chosen of policies. The forecaster is a name, ``oracle``, ``oracle:ERROR`` or ``oracle:ERROR:BIAS``.

    An oracle's numbers are its mean error and its bias, as shares of the value.
    """

    forecaster: str = "ensemble"
    horizon_s: float = 1_800.0
    season_s: float = 0.0
    history: Floats | None = None
    """What came in before the first interval, sources × steps, where it is known."""

    window: int = 6
    """Intervals over which WAAF takes the mean."""

    alternates_every: int = 5
    """m of DYN's Alg. 2: alternates are chosen at every m-th decision, and nothing else then."""

    resources_every: int = 1
    """n of DYN's Alg. 2: of the other decisions every n-th is on resources."""

    usual: Floats | None = None
    """Expected rates by source, where they are known: what ``static`` is sized for."""

    peak: Floats | None = None
    """The highest expected rates by source: what ``static-peak`` is sized for."""

    catch_up_s: float = 300.0
    """Where tasks share cores: seconds in which a backlog is to be worked off; no less than an interval."""

    smoothing: Smoothing = field(default_factory=AlphaWeighted)
    """Of rates and latencies over windows, for ``drs``."""

    reallocation_interval_s: float = 60.0
    """T_ra of DRS: seconds from one change to the next at least."""

    future: Floats | None = None
    """What will come in, sources × steps: what an oracle knows, in a simulation."""

    def __post_init__(self) -> None:
        for name in ("window", "alternates_every", "resources_every"):
            if getattr(self, name) < 1:
                raise BadValue(f"{name} is {getattr(self, name)}", "at least 1")

    def recipe(self, interval_s: float, seed: int) -> Recipe | Oracle:
        """The forecaster; raises :class:`InputError` for an unknown one."""
        try:
            if self.forecaster.partition(":")[0] == "oracle":
                return self._oracle(seed)
            return recipe_of(self.forecaster, round(self.season_s / interval_s))
        except BadValue as error:
            raise InputError("BAD_FORECASTER", error.sentence.replace("expected", "expected oracle or", 1)) from None

    def _oracle(self, seed: int) -> Oracle:
        try:
            numbers = [float(text) for text in self.forecaster.split(":")[1:]]
        except ValueError:
            numbers = [np.nan]
        if len(numbers) > 2 or not np.isfinite(numbers).all():
            raise BadValue(f"forecaster is {self.forecaster[:60]!r}", "oracle:ERROR:BIAS, such as oracle:0.1:-0.05")
        error, bias = [*numbers, 0.0, 0.0][:2]
        return Oracle(error, bias, seed)


def predictor_of(replication: Replication, settings: PolicySettings) -> Predictor:
    """The predictor for one replication."""
    world = replication.world
    steps = round(settings.horizon_s / world.interval_s)
    if steps < 1:
        message = f"a horizon of {settings.horizon_s:g} s is shorter than an interval of {world.interval_s:g} s"
        raise InputError("BAD_HORIZON", f"{message}; look at least one interval ahead")
    recipe = settings.recipe(world.interval_s, world.seed + replication.number)
    if isinstance(recipe, Oracle):
        return replication.perfect_forecast(recipe, steps)
    return Foresight.of(steps, replication.shape.sources, recipe, None, settings.history)


def receding_core(replication: Replication, settings: PolicySettings) -> Receding:
    """The receding horizon for one replication; its period is that of the world."""
    world, shape = replication.world, replication.shape
    even = BreakEven.of(world.dataflow)
    if even is None or even.sigma <= 0:
        message = f"policy 'receding' weighs value against cost, but dataflow '{world.dataflow.name}' does not say how"
        raise InputError("NO_BREAK_EVEN", f"{message}; give break-even costs and alternates of different value")
    if shape.stream_returns.any():
        raise InputError("LOOP", f"policy 'receding' cannot plan dataflow '{world.dataflow.name}': it has a loop")
    forecaster = _forecaster(replication, settings)
    return Receding(forecaster, list(shape.sources), even, world.interval_s, world.intervals, world.counts_queues)


def _forecaster(replication: Replication, ahead: PolicySettings) -> Forecaster:
    world = replication.world
    recipe = ahead.recipe(world.interval_s, world.seed + replication.number)
    if isinstance(recipe, Oracle):
        return recipe.start(replication.true_rates())
    settings = Settings(horizon=WATCHED)
    forecaster = Guarded(partial(start, recipe, len(replication.shape.sources), settings), settings)
    if ahead.history is not None and ahead.history.size:
        forecaster.update(ahead.history)
    return forecaster
