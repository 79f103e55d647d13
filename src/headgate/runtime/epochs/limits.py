"""Admission limits: the most rows that a fragment takes in per trigger.

Limits lie in small files beside the fragment: the one that somebody has set, and the one that its own speed asks for
(:mod:`headgate.runtime.isolation.admission`). Readers that are ours look into them before every micro-batch, so a new
limit holds from the next one on. They tell how many rows have come, and how many of them a limit has kept waiting.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from headgate.store.files import read_json, write_json

__all__ = ["Due", "admit", "due_in", "limit_of", "set_limit", "tell_due"]


def limit_of(folder: Path | str, otherwise: int) -> int:
    """The limit of the fragment whose folder this is, or ``otherwise`` if it has none."""
    found = [read_json(Path(folder) / name) for name in ("limit.json", "admitted.json")]
    return min((int(rows) for rows in found if rows is not None), default=otherwise)


def set_limit(folder: Path, rows: int | None) -> None:
    """Give a fragment a limit, or none."""
    write_json(folder / "limit.json", rows)


def admit(folder: Path, rows: int | None) -> None:
    """Hold a fragment back to so many rows, or no longer."""
    write_json(folder / "admitted.json", rows)


@dataclass(frozen=True, slots=True)
class Due:
    """What a reader that is ours knows of its source, as of some moment: rows are counted from the very first."""

    at: float
    rows: int
    """Rows that had come by then."""

    rows_per_s: float
    """How many more came a second from then on."""

    held_back: int
    """Rows that had come and that a limit kept it from taking."""

    def by(self, now: float) -> int:
        """Rows that have come by now."""
        return self.rows + round(self.rows_per_s * max(now - self.at, 0.0))


def tell_due(folder: Path | str, due: Due) -> None:
    """Tell what has come to a source; whole or not at all, but no more durable than it is worth."""
    write_json(Path(folder) / "due.json", asdict(due), durable=False)


def due_in(folder: Path) -> Due | None:
    """What a fragment's source has told last; none if it does not tell."""
    found = read_json(folder / "due.json")
    return None if found is None else Due(**found)
