"""What is measured while dataflows run, and how much time that may take."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass

__all__ = ["MEASURING", "Measuring", "Pace", "ProfilingBudget"]


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured while dataflows run."""

    counting: bool = True
    """Whether the rows of every task are counted in every epoch; without that, there are no observations."""

    sample_every: int | None = 20
    """One epoch of a fragment in so many is used to profile tasks; ``None`` turns profiling off."""

    share: float = 0.005
    """The share of the time in epochs that profiling may take."""

    at_first_s: float = 4.0
    """Further seconds for profiling, once per engine."""


MEASURING = Measuring()

STRETCH = 0.25
"""The share of the time that profiling takes while it goes on, where its budget is smaller."""


class ProfilingBudget:
    """Counts seconds in epochs and seconds of profiling; overlapping epochs count once, since they share cores.

    ``at_first_s`` may be spent beyond the share, once: so that new tasks are measured soon.

    >>> budget = ProfilingBudget(share=0.5, at_first_s=4.0)
    >>> for began, ended in ((0.0, 6.0), (1.0, 5.0), (4.0, 8.0), (10.0, 12.0)):
    ...     budget.work(began, ended)
    >>> budget.spend(3.0)
    >>> budget.worked_s, budget.spent_s, budget.left_s
    (10.0, 3.0, 6.0)
    """

    def __init__(self, share: float, at_first_s: float) -> None:
        self._share, self._at_first_s = share, at_first_s
        self._lock = threading.Lock()
        self._until = -math.inf
        self.worked_s = 0.0
        self.spent_s = 0.0

    def work(self, began: float, ended: float) -> None:
        """Note that an epoch ran from one time to another."""
        with self._lock:
            self.worked_s += max(0.0, ended - max(began, self._until))
            self._until = max(ended, self._until)

    def spend(self, seconds: float) -> None:
        """Note how long profiling took."""
        with self._lock:
            self.spent_s += seconds

    @property
    def left_s(self) -> float:
        """Seconds that may be spent now; negative if the budget is overdrawn."""
        with self._lock:
            return self._at_first_s + self._share * self.worked_s - self.spent_s


class Pace:
    """Lets profiling rest after each of its steps, so that epochs beside it hardly become slower."""

    def __init__(self, share: float, ended: threading.Event) -> None:
        self._rest = 1 / min(1.0, max(share, STRETCH)) - 1
        self._ended = ended
        self._since = 0.0
        self.busy_s = 0.0
        self.goes_on = False

    def begin(self) -> None:
        """Profiling begins."""
        self._since, self.busy_s, self.goes_on = time.monotonic(), 0.0, True

    def step(self) -> None:
        """A step has ended: rest in proportion to the time it took."""
        self._ended.wait(self._note() * self._rest)
        self._since = time.monotonic()

    def end(self) -> float:
        """Profiling ends; how many seconds it took, without rests."""
        self._note()
        self.goes_on = False
        return self.busy_s

    def _note(self) -> float:
        took = time.monotonic() - self._since
        self.busy_s += took
        return took
