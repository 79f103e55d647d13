"""Static policies on shared pools: machines for expected rates, once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.adaptation.policy import Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.machine_moves import grow
from headgate.model.arrays import Floats

__all__ = ["FixedSize"]


@dataclass(frozen=True, slots=True, eq=False)
class FixedSize:
    """The cheapest machines that keep up with ``headroom`` times the expected rates, and no decision after that."""

    rates: Floats | None = None
    """Messages per second that are expected, by source; those of the first window if they are not known."""

    headroom: float = 1.0

    def check(self, terms: Terms) -> None:
        """Nothing is needed."""

    def decide(self, draft: Draft, notes: Notes) -> str:
        if notes.get("deployed"):
            return "none"
        notes["deployed"] = True
        sources = list(draft.seen.shape.sources)
        if self.rates is not None:
            draft.asked = np.zeros(draft.seen.shape.tasks)
            draft.asked[sources] = self.rates
        grow(draft, self.headroom - 1.0)
        draft.fit_partitions()
        expected = float(draft.asked[sources].sum())
        draft.figures["expected_per_s"] = expected
        draft.sentences.append(f"machines for {self.headroom:g} times {expected:.4g} messages/s, once")
        return "first deployment"
