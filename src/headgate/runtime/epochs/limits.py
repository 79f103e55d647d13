"""Admission limits: the most rows that a fragment takes in per trigger.

Limits are small files in the fragment's folder: one set by a user, and one that follows from the fragment's speed
(:mod:`headgate.runtime.isolation.admission`). Our readers read them before every micro-batch, so a new limit holds from
the next one on. They store how many rows have come, and how many of them a limit keeps waiting.
"""

from __future__ import annotations

from pathlib import Path

from headgate.store.files import write_json
from headgate.tasks.source_folder import Due, read_note

__all__ = ["admit", "due_in", "set_limit"]


def set_limit(folder: Path, rows: int | None) -> None:
    """Give a fragment a limit, or none."""
    write_json(folder / "limit.json", rows)


def admit(folder: Path, rows: int | None) -> None:
    """Throttle a fragment to so many rows per trigger, or no longer."""
    write_json(folder / "admitted.json", rows)


def due_in(folder: Path) -> Due | None:
    """What a fragment's reader has stored last; ``None`` if it stores nothing, or an older version wrote it."""
    stored = read_note(folder, "due.json")
    return Due(**stored) if isinstance(stored, dict) and "throttled" in stored else None
