"""How many rows came before a fragment, from how many it took and how many wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["ArrivalCounter"]


@dataclass(slots=True)
class ArrivalCounter:
    """Counts arrivals by fragment: what was taken, and by how much what waits has grown.

    What waits is looked up a moment after what was taken, and an epoch may end between; such rows are counted in the
    next interval, so that sums over intervals are right.

    >>> counter = ArrivalCounter()
    >>> [counter.arrived("f", 100, 50), counter.arrived("f", 100, 20), counter.arrived("f", 60, None)]
    [150, 70, None]
    """

    _taken: dict[str, int] = field(default_factory=dict)
    """Rows taken so far."""

    _came: dict[str, int | None] = field(default_factory=dict)
    """Rows that have come so far; none if what waited then was not known."""

    def begin(self, fragment: str, waiting: int | None) -> None:
        """Know a fragment that has run before."""
        self._taken[fragment], self._came[fragment] = 0, waiting

    def arrived(self, fragment: str, taken: int, waiting: int | None) -> int | None:
        """Rows that have come since the last call; none where what waits is not known, or was not then."""
        self._taken[fragment] = self._taken.get(fragment, 0) + taken
        before = self._came.get(fragment, 0)
        now = None if waiting is None else self._taken[fragment] + waiting
        if now is not None and before is not None:
            now = max(now, before)
        self._came[fragment] = now
        return None if now is None or before is None else now - before

    def forget_others(self, fragments: Iterable[str]) -> None:
        """Forget those that run no more."""
        kept = set(fragments)
        self._taken = {name: count for name, count in self._taken.items() if name in kept}
        self._came = {name: count for name, count in self._came.items() if name in kept}
