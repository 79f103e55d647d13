"""Admission limits: the most rows that a fragment takes in per trigger.

Limits lie in small files beside the fragment: the one that somebody has set, and the one that its own speed asks for
(:mod:`headgate.runtime.isolation.admission`). Readers that are ours look into them before every micro-batch, so a new
limit holds from the next one on. They tell how many rows have come, and how many of them a limit has kept waiting.
"""

from __future__ import annotations

from pathlib import Path

from headgate.store.files import read_json, write_json
from headgate.tasks.source_folder import Due

__all__ = ["admit", "due_in", "set_limit"]


def set_limit(folder: Path, rows: int | None) -> None:
    """Give a fragment a limit, or none."""
    write_json(folder / "limit.json", rows)


def admit(folder: Path, rows: int | None) -> None:
    """Hold a fragment back to so many rows, or no longer."""
    write_json(folder / "admitted.json", rows)


def due_in(folder: Path) -> Due | None:
    """What a fragment's reader has stored last; ``None`` if it stores nothing, or an older version wrote it."""
    stored = read_json(folder / "due.json")
    return Due(**stored) if stored is not None and "throttled" in stored else None
