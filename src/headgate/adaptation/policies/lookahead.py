"""PLAN-AHEAD's policy (Alg. 1): find where throughput will leave its band, and plan for it in advance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import drain_due
from headgate.adaptation.outlook import Predictor
from headgate.adaptation.policies.increments import IncrementPrices, scale_down, scale_up
from headgate.adaptation.policies.reactive import Core, Reactive
from headgate.adaptation.repacking import repack_due
from headgate.adaptation.trajectory import Trajectory, explained
from headgate.model.arrays import Floats

__all__ = ["LookAhead", "crossover"]


def crossover(omegas: Floats, low: float, high: float) -> int | None:
    r"""The first step behind the farthest one up to which the mean of relative throughput is within the band.

    None if that is the last: the interval holds. PLAN-AHEAD, Alg. 1, lines 5 to 16: it works back from the end.

    >>> crossover(np.array([0.8, 0.82, 0.5, 0.4]), 0.75, 0.85)
    2
    >>> crossover(np.array([0.4, 0.8, 1.0, 1.0]), 0.75, 0.85) is None, crossover(np.array([1.0, 1.0]), 0.75, 0.85)
    (True, 0)
    """
    means = np.cumsum(omegas) / np.arange(1, len(omegas) + 1)
    within = np.flatnonzero((means >= low) & (means <= high))
    if not len(within):
        return 0
    return None if within[-1] == len(omegas) - 1 else int(within[-1]) + 1


@dataclass(slots=True)
class LookAhead:
    r"""Keeps relative throughput within its band over the coming interval, at the most profit.

    From the end of the interval it works back to the farthest step up to which the deployment as it is planned keeps
    the mean :math:`\Omega` within the band; behind it lies a cross-over. There one change is planned: below the band a
    cheaper alternate or an instance more for the bottleneck, above it a better alternate or an instance less, whichever
    gives more profit over the rest of the interval. This is repeated from the cross-over on until the interval holds.
    What is planned for now is done now, and machines are started as long before they are needed as they take to start;
    all else is planned again at the next decision. At last machines whose paid time is up are emptied into free cores,
    and what is left on them is repacked.

    An interval of one step is the present, on which the reactive policy decides: so it does with a horizon of one step,
    and while a forecaster fails.

    Reference: PLAN-AHEAD, Alg. 1.
    """

    predictor: Predictor
    reactive: Core = field(default_factory=Reactive)
    name: str = "lookahead"
    _blind: bool = False

    def decide(self, now: ClusterView, turn: int) -> None:
        outlook = self.predictor.predict(now)
        if outlook.trouble:
            if not self._blind:
                now.reasons.append(f"no forecast: {outlook.trouble}; decided on observations instead")
        elif self._blind:
            now.reasons.append("forecasts are valid again")
        self._blind = bool(outlook.trouble)
        if outlook.steps == 1:
            self.reactive.decide(now, turn)
            return
        low, high = now.level.throughput_band
        trajectory = Trajectory(now, outlook)
        prices = IncrementPrices.of(trajectory)
        ahead = trajectory.omegas().copy()
        plan(trajectory, prices, low, high)
        now.reasons += explained(trajectory, crossover(ahead, low, high), low, high)
        now.planned += trajectory.actions()
        trajectory.enact()
        drain_due(now)
        repack_due(now)


def plan(trajectory: Trajectory, prices: IncrementPrices, low: float, high: float) -> None:
    """Alg. 1: from cross-over to cross-over, one change at a time, until the interval holds."""
    begin = 0
    for _ in range(4 * int(trajectory.placed.sum()) + 200):
        omegas = trajectory.omegas(begin)
        at = crossover(omegas, low, high)
        if at is None:
            return
        cross = begin + at
        rest = float(omegas[at:].mean())
        done = True
        if rest < low:
            done = scale_up(trajectory, prices, cross)
        elif rest > high:
            done = scale_down(trajectory, prices, cross, low)
        begin = cross if done else cross + 1
        if begin >= trajectory.steps:
            return
