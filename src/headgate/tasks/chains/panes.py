"""Windows of event time as panes: pieces of time that each window has as a whole or not at all.

Windows begin at multiples of ``slide`` and are ``size`` long, so their edges are the multiples of ``slide`` and the
times ``size mod slide`` after these. A pane lies between two neighbouring edges; there are one or two for each slide,
however many windows overlap (J. Li et al., "No pane, no gain", 2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.tasks.heavy import np

__all__ = ["Panes"]


@dataclass(frozen=True, slots=True)
class Panes:
    """Windows of ``size`` at multiples of ``slide``, in microseconds.

    >>> import numpy as np
    >>> panes = Panes(10, 4)
    >>> panes.starts(np.array([0, 1, 2, 3, 5, 6])).tolist(), panes.last_ends(np.array([0, 2, 4])).tolist()
    ([0, 0, 2, 2, 4, 6], [10, 10, 14])
    """

    size: int
    slide: int

    def starts(self, times: Any) -> Any:
        """The start of the pane of each time."""
        base = times // self.slide * self.slide
        rest = self.size % self.slide
        return base + np.where(times - base >= rest, rest, 0) if rest else base

    def last_ends(self, starts: Any) -> Any:
        """The end of the last window that has the pane; at or before its start if it is between windows."""
        return starts // self.slide * self.slide + self.size

    def ends_from(self, edge: Any) -> Any:
        """The first end of a window that is later than a time."""
        return (edge - self.size) // self.slide * self.slide + self.size + self.slide

    def last_end(self, edge: int) -> int:
        """The last end of a window that is not later than a time."""
        return (edge - self.size) // self.slide * self.slide + self.size

    def closing(self, starts: Any, before: int | None, after: int) -> tuple[Any, Any]:
        """The windows that end in (before, after] and have a pane: the pane's place, and the window's end, for each."""
        first = self.ends_from(starts)
        if before is not None:
            first = np.maximum(first, self.ends_from(np.int64(before)))
        last = np.minimum(self.last_ends(starts), self.last_end(after))
        counts = np.maximum((last - first) // self.slide + 1, 0)
        places = np.repeat(np.arange(len(starts)), counts)
        steps = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, first[places] + steps * self.slide
