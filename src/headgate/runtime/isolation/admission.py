"""Admission: how many rows a fragment takes in per trigger, so that its epochs keep to their trigger.

Spark does not interrupt a task to let another one run. A fragment whose source brings a hundred times its usual rows
would hold a core for as long as it takes to work through them. Its epochs are therefore cut to about the length of a
trigger; what is not admitted waits in the source. A fragment that keeps up is never throttled.

An epoch of r rows takes ``f + r s`` seconds. Both are fitted to the last epochs, recent ones counting more, and the
limit is the number of rows that takes the wanted time, reached by steps:

    rows' = clamp((max(share * trigger, 2 f) - f) / s, rows / 4, 2 rows)

Where the fixed part f is as long as the trigger, on an overloaded machine, fewer rows would not shorten an epoch and
would lower throughput: then at least half of an epoch is spent on rows.

Epochs that all have as many rows do not say what of their time is fixed. Then one is larger by half now and then,
unless they are late: a fragment at the smallest limit would stay there for ever, though more rows would hardly take
longer.

At a start few rows are admitted, and twice as many after each epoch that had time for more: a backlog must not come in
as one epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Admission"]

SHARE = 0.8
"""The part of a trigger that an epoch is to take: the rest is for what Spark does between two epochs."""

LATE = 1.5
"""How many triggers an epoch may take before the fragment is throttled."""

FIRST_ROWS = 20_000
"""What is admitted at a start, when the cost of a row is unknown and a backlog may be waiting."""

FEWEST_ROWS = 100
"""The smallest limit."""

USUAL_FIXED_S = 0.25
"""The assumed fixed time of an epoch, while all epochs had about as many rows."""

SHRINK, GROW, EXPLORE = 0.25, 2.0, 1.5
DECAY = 0.8
WARM = 3
"""Epochs at a start that are ignored: code is compiled and workers start."""

CALM = 20
"""Epochs in a row that were not full before a limit is lifted."""


@dataclass(slots=True)
class _Line:
    """Seconds over rows, by least squares with older epochs fading."""

    n: float = 0.0
    r: float = 0.0
    s: float = 0.0
    rr: float = 0.0
    rs: float = 0.0

    def add(self, rows: float, seconds: float) -> None:
        self.n = DECAY * self.n + 1.0
        self.r = DECAY * self.r + rows
        self.s = DECAY * self.s + seconds
        self.rr = DECAY * self.rr + rows * rows
        self.rs = DECAY * self.rs + rows * seconds

    @property
    def is_known(self) -> bool:
        """Whether epochs differ in rows by more than a tenth."""
        return self._spread > 0.01 * self.r * self.r

    @property
    def _spread(self) -> float:
        return self.n * self.rr - self.r * self.r

    def fixed_s(self, seconds: float) -> float:
        """What an epoch takes without rows, at most what the last one took."""
        spread = self._spread
        if not self.is_known:
            return min(USUAL_FIXED_S, seconds / 2)
        slope = max((self.n * self.rs - self.r * self.s) / spread, 0.0)
        return min(max((self.s - slope * self.r) / self.n, 0.0), 0.95 * seconds)


@dataclass(slots=True)
class Admission:
    """The limit of one fragment, adjusted after each epoch.

    >>> admission = Admission(trigger_s=0.5)
    >>> [admission.epoch(rows, seconds) for rows, seconds in [(10, 9.0), (500, 2.0), (500, 0.4), (500, 0.4)]]
    [20000, 20000, 20000, 20000]
    >>> admission.epoch(rows=20_000, seconds=2.4)
    5000
    """

    trigger_s: float
    limit: int | None = FIRST_ROWS
    _line: _Line = field(default_factory=_Line)
    _epochs: int = 0
    _calm: int = 0

    def epoch(self, rows: int, seconds: float) -> int | None:
        """The limit after an epoch of so many rows that took so long; ``None`` for none."""
        self._epochs += 1
        if self._epochs <= WARM:
            return self.limit
        self._line.add(rows, seconds)
        is_full = self.limit is not None and rows >= 0.95 * self.limit
        is_late = seconds > LATE * self.trigger_s and rows >= 2 * FEWEST_ROWS
        if is_full or is_late:
            self.limit = self._next(rows, seconds)
        self._calm = 0 if is_full else self._calm + 1
        if self._calm >= CALM:
            self.limit = None
        return self.limit

    def lift(self) -> None:
        """Remove the limit."""
        self.limit, self._calm = None, 0

    def _next(self, rows: int, seconds: float) -> int | None:
        fixed_s = self._line.fixed_s(seconds)
        wanted_s = max(SHARE * self.trigger_s, 2 * fixed_s)
        factor = (wanted_s - fixed_s) / max(seconds - fixed_s, 1e-3)
        self._calm = 0
        may_be_longer = seconds <= LATE * self.trigger_s or rows <= FEWEST_ROWS
        if not self._line.is_known and self._line.n > 2 and may_be_longer:
            factor = max(factor, EXPLORE)
        return max(FEWEST_ROWS, round(rows * min(max(factor, SHRINK), GROW)))
