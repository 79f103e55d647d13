"""PLAN-AHEAD's averaging models: the reactive policy on one average value per rate and machine.

=====  =====================================================================================
CAF    what was observed last: the reactive policy itself
WAAF   the mean of the last so many observations
WPA    the mean of what is forecast for the interval
WPO    the most favourable of it: the lowest rate, the fastest machine
WPP    the least favourable: the highest rate, the slowest machine
=====  =====================================================================================

Reference: PLAN-AHEAD, section V-B.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.outlook import Outlook, Predictor
from headgate.adaptation.policies.reactive import Core, Reactive
from headgate.errors import BadValue
from headgate.model.arrays import Floats

__all__ = ["AVERAGES", "Averaged", "RecentMean"]

Average = Callable[[Floats], Floats]


def _mean(values: Floats) -> Floats:
    return np.asarray(values.mean(axis=0))


def _least(values: Floats) -> Floats:
    return np.asarray(values.min(axis=0))


def _most(values: Floats) -> Floats:
    return np.asarray(values.max(axis=0))


AVERAGES: Mapping[str, tuple[Average, Average]] = {
    "caf": (_mean, _mean),
    "waaf": (_mean, _mean),
    "wpa": (_mean, _mean),
    "wpo": (_least, _most),
    "wpp": (_most, _least),
}
"""How the rates and the speeds of an outlook are averaged."""


class RecentMean:
    """Predicts that recent observations repeat; of machines, those since they became ready."""

    def __init__(self, window: int = 6) -> None:
        if window < 1:
            raise BadValue(f"a window of {window} steps", "at least 1")
        self._rates: deque[Floats] = deque(maxlen=window)
        self._speeds: deque[dict[str, float]] = deque(maxlen=window)

    def predict(self, now: ClusterView) -> Outlook:
        speeds = dict(zip(now.machine, now.speed[: now.held].tolist(), strict=True))
        working = dict(zip(now.machine, (now.starts_s <= 0).tolist(), strict=True))
        self._rates.append(now.external.copy())
        self._speeds.append({name: speed for name, speed in speeds.items() if working[name]})
        means = []
        for name, speed in speeds.items():
            seen = [each[name] for each in self._speeds if name in each]
            means.append(sum(seen) / len(seen) if seen else speed)
        rates = np.array(self._rates)
        return Outlook(rates, np.tile(np.array(means), (len(rates), 1)))


@dataclass(slots=True)
class Averaged:
    """Runs the reactive policy on averages of the outlook."""

    model: str
    predictor: Predictor
    reactive: Core = field(default_factory=Reactive)
    _blind: bool = False

    @property
    def name(self) -> str:
        return self.model

    def decide(self, now: ClusterView, turn: int) -> None:
        outlook = self.predictor.predict(now)
        if bool(outlook.trouble) != self._blind:
            self._blind = bool(outlook.trouble)
            instead = f"no forecast: {outlook.trouble}; decided on observations instead"
            now.reasons.append(instead if self._blind else "forecasts are valid again")
        of_rates, of_speeds = AVERAGES[self.model]
        now.external[:] = of_rates(outlook.external)
        now.speed[: now.held] = of_speeds(outlook.speed)
        self.reactive.decide(now, turn)
