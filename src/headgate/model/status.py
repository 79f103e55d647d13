"""How dataflows and fragments of a running engine are doing, as values."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.cluster.observation import Figures
from headgate.model.level_time import LevelStatus

__all__ = ["DataflowStatus", "FragmentStatus"]


@dataclass(frozen=True, slots=True)
class EngineCrash:
    """How an engine has ended, when a dataflow may be the cause."""

    reason: str
    is_loop: bool = False
    """Whether it has ended so again and again."""


@dataclass(frozen=True, slots=True)
class DataflowStatus:
    """A dataflow: its state (running, paused, throttled or degraded), the reason for it, and rows so far."""

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
