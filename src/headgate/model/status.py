"""How dataflows and fragments of a running engine are doing, as values."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.cluster.observation import Figures
from headgate.model.level_time import LevelStatus

__all__ = ["CatchUpStatus", "DataflowStatus", "FragmentStatus"]


@dataclass(frozen=True, slots=True)
class CatchUpStatus:
    """How far a dataflow has computed what had passed when it came."""

    rows: int
    rows_total: int | None
    """Estimated from bytes; ``None`` before it is known."""

    left_s: float | None

    @property
    def share(self) -> float:
        """The part that is done."""
        return min(self.rows / self.rows_total, 1.0) if self.rows_total else 0.0

    def sentence(self) -> str:
        """How far it is, for people.

        >>> CatchUpStatus(1_200, 4_800, 6.2).sentence()
        'catching up with what had passed: 25 %, 1,200 of 4,800 rows, 6 s left'
        """
        begins = "catching up with what had passed"
        if self.rows_total is None:
            return f"{begins}: about to begin"
        left = "" if self.left_s is None else f", {self.left_s:,.0f} s left"
        return f"{begins}: {self.share:.0%}, {self.rows:,} of {self.rows_total:,} rows{left}".replace("%", " %")


@dataclass(frozen=True, slots=True)
class EngineCrash:
    """How an engine has ended, when a dataflow may be the cause."""

    reason: str
    is_loop: bool = False
    """Whether it has ended so again and again."""


@dataclass(frozen=True, slots=True)
class DataflowStatus:
    """A dataflow: its state (running, catching up, paused, throttled or degraded), the reason for it, rows so far."""

    name: str
    owner: str
    state: str
    reason: str
    tasks: int
    shared: int
    """Tasks that other dataflows use too."""

    rows_out: int
    rows_skipped: int = 0
    """Rows that raised and were skipped."""

    rows_dead: int = 0
    """Rows that raised and were written to the dead letters."""

    start: str = "earliest"
    """From when on its output is complete: ``earliest``, or a time."""

    lacks: str = ""
    """What was gone of its past when it came; its output lacks that."""

    catch_up: CatchUpStatus | None = None
    """How far it is with what had passed when it came; ``None`` if it has that."""

    figures: Figures | None = None
    """Of the last minute; none before the first interval has ended."""

    level: LevelStatus | None = None
    """What was agreed, and for how long it was kept."""


@dataclass(frozen=True, slots=True)
class FragmentStatus:
    """A fragment, and its last epoch."""

    id: str
    name: str
    """The first of its root tasks, with the number of the others."""

    kind: str
    tasks: int
    epoch: int
    snapshot: int
    rows_in: int
    rows_out: int
    batch_s: float
    behind: int
    """Rows that wait for it."""

    failure: str | None
    rate_per_s: float
