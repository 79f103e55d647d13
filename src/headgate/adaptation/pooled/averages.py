"""PLAN-AHEAD's averaging models on shared pools: the heuristic on one average value per rate and machine."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policies.averages import AVERAGES, RecentMean
from headgate.adaptation.policy import Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.foresight import PooledForesight, check_forecasts, view_of
from headgate.adaptation.pooled.heuristics import PooledHeuristic

__all__ = ["PooledAverage"]


@dataclass(frozen=True, slots=True)
class PooledAverage:
    """Runs DYN's heuristic on averages: of the forecast, of recent windows, or on the last window itself (CAF)."""

    model: str
    settings: PolicySettings
    heuristic: PooledHeuristic = field(default_factory=PooledHeuristic)

    def check(self, terms: Terms) -> None:
        """The forecaster must exist."""
        if self.model not in ("caf", "waaf"):
            check_forecasts(self.settings, terms)

    def decide(self, draft: Draft, notes: Notes) -> str:
        if self.model == "caf":
            return self.heuristic.decide(draft, notes)
        if self.model == "waaf":
            recent: RecentMean = deepcopy(notes.get("recent") or RecentMean(self.settings.window))
            outlook = recent.predict(view_of(draft.seen))
            notes["recent"] = recent
        else:
            foresight = PooledForesight.of(draft.seen, notes, self.settings)
            outlook = foresight.outlook
            draft.sentences += foresight.sentences
        of_rates, of_speeds = AVERAGES[self.model]
        late = draft.asked - draft.seen.external
        draft.asked = np.maximum(of_rates(outlook.external), 0.0) + late
        draft.seen = replace(draft.seen, machines=replace(draft.seen.machines, speed=of_speeds(outlook.speed)))
        return self.heuristic.decide(draft, notes)
