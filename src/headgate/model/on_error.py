"""What happens to a row for which a task raises."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["OnError"]


class OnError(StrEnum):
    """What happens to a row for which a task raises."""

    FAIL = "fail"
    """The task rests and is tried again later; what is behind it misses the rows that pass meanwhile."""

    SKIP = "skip"
    """The row is left out and counted; the task goes on."""

    DEAD_LETTER = "dead_letter"
    """The row is stored with its error as a dead letter; the task continues."""
