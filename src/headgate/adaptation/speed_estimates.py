"""Estimates of the relative speed of machines, and of how much of a difference lasts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["SpeedEstimates"]

LEARNS = 0.2
"""The weight of the last observation in the recent speed of a machine."""

LASTS, SURE = 0.5, 0.2
"""The prior share of a difference that lasts, and its weight as a sum of squares."""


@dataclass(slots=True)
class _Seen:
    lately: float
    shares: deque[float]
    latelies: deque[float] = field(default_factory=deque)
    steps: int = 0


@dataclass(slots=True)
class SpeedEstimates:
    r"""Records relative speeds and expects of each machine over the next ``hour`` steps

    .. math:: \hat s_k = \bar s + r (l_k - \bar s)

    where l is its recent speed, the mean is over machines in their first hour (later ones were kept for being fast, so
    they are a biased sample), and r is the slope of the speed over an hour on the recent speed before it: near 0 where
    differences are short-lived, near 1 where some machines are lastingly better.

    >>> watch = SpeedEstimates(hour=2)
    >>> for _ in range(20):
    ...     watch.see([("fast", 1.0), ("slow", 0.5)])
    >>> round(watch.usual, 2), round(watch.expected("fast"), 2), round(watch.expected("slow"), 2)
    (0.75, 1.0, 0.5)
    >>> watch.expected("new") == watch.usual
    True
    """

    hour: int
    _machines: dict[str, _Seen] = field(default_factory=dict)
    _first: float = 0.0
    _count: int = 0
    _squares: float = 0.0
    _products: float = 0.0

    @property
    def usual(self) -> float:
        """Expected relative speed of a new machine."""
        return self._first / self._count if self._count else 1.0

    @property
    def lasts(self) -> float:
        """The share of a difference that is expected to last for an hour."""
        slope = (self._products + SURE * LASTS) / (self._squares + SURE)
        return min(max(slope, 0.0), 1.0)

    def see(self, shares: Iterable[tuple[str, float]]) -> None:
        """Record the relative speeds of the last step; machines that are not listed are gone."""
        before, self._machines = self._machines, {}
        usual = self.usual
        for name, share in shares:
            seen = before.get(name) or _Seen(usual if self._count else share, deque(maxlen=self.hour))
            self._machines[name] = seen
            if seen.steps < self.hour:
                self._first += share
                self._count += 1
            seen.shares.append(share)
            if len(seen.latelies) == self.hour:
                self._learn(seen.latelies.popleft() - usual, sum(seen.shares) / self.hour - usual)
            seen.lately += max(LEARNS, 1.0 / (seen.steps + 2)) * (share - seen.lately)
            seen.latelies.append(seen.lately)
            seen.steps += 1

    def _learn(self, was: float, became: float) -> None:
        self._squares += was * was
        self._products += was * became

    def expected(self, name: str) -> float:
        """Expected relative speed of a machine over the next hour."""
        seen = self._machines.get(name)
        usual = self.usual
        return usual if seen is None else usual + self.lasts * (seen.lately - usual)
