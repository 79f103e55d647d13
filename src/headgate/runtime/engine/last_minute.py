"""The figures of the last minute, from the latest intervals: of a single one they would be those of its last epoch."""

from __future__ import annotations

from collections import deque

from headgate.adaptation.evaluating import evaluated
from headgate.adaptation.joining import joined
from headgate.model.cluster.observation import Figures, Observation

__all__ = ["LastMinute"]

MINUTE_S = 60.0


class LastMinute:
    """Keeps the intervals of the last minute."""

    def __init__(self) -> None:
        self._recent: deque[Observation] = deque()
        self.seen: Observation | None = None
        """The intervals as one, with figures; none before the first."""

    def add(self, seen: Observation) -> Observation:
        """Take in the newest interval; returns the minute that ends with it."""
        self._recent.append(seen)
        while self._recent[0].ended <= seen.ended - MINUTE_S:
            self._recent.popleft()
        self.seen = evaluated(joined(tuple(self._recent)))
        return self.seen

    def figures(self) -> dict[str, Figures]:
        """The figures of each dataflow; empty before the first interval has ended."""
        flows = () if self.seen is None else self.seen.dataflows
        return {flow.name: flow.figures for flow in flows if flow.figures is not None}
