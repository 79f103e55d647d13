"""What a source and the engine write for each other into the folder of the source's fragment.

The engine writes limits: one set by a user, and one that follows from the fragment's speed
(:mod:`headgate.runtime.isolation.admission`). A reader of ours reads them before every micro-batch, so a new one holds
from the next on. The reader writes how many rows have arrived, how many of them a limit has delayed, and where a
recording ends.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "UNTIL",
    "Due",
    "Extent",
    "admit",
    "due_in",
    "ended_after",
    "extent_of",
    "limit_of",
    "note_end",
    "read_note",
    "set_extent",
    "set_limit",
    "until_of",
    "write_due",
    "write_note",
]


def read_note(folder: Path | str, name: str) -> Any:
    """A small JSON file; ``None`` if it is not there, or damaged: every start writes it again."""
    try:
        return json.loads((Path(folder) / name).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def write_note(folder: Path | str, name: str, value: object) -> None:
    """Write a small JSON file, whole or not at all; it is not forced to disk, since every start writes it again."""
    path = Path(folder) / name
    temporary = path.with_name(f".{name}.{os.getpid()}")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


def set_limit(folder: Path, rows: int | None) -> None:
    """Give a fragment a limit, or none."""
    write_note(folder, "limit.json", rows)


def admit(folder: Path, rows: int | None) -> None:
    """Throttle a fragment to so many rows per trigger, or no longer."""
    write_note(folder, "admitted.json", rows)


def limit_of(folder: Path | str, otherwise: int) -> int:
    """The limit of the fragment whose folder this is, or ``otherwise`` if it has none."""
    limits = [read_note(folder, name) for name in ("limit.json", "admitted.json")]
    return min((int(rows) for rows in limits if rows is not None), default=otherwise)


@dataclass(frozen=True, slots=True)
class Due:
    """What a reader knows of its source at some moment; rows are counted from the very first."""

    at: float
    rows: int
    """Rows that had arrived by then."""

    rows_per_s: float
    """How many more arrived a second from then on."""

    throttled: int
    """Rows that had arrived and that a limit keeps waiting."""

    bytes: int | None = None
    """Bytes of those rows, where they are known: rows are then estimated from them."""

    path: str = ""
    """Where more may have come meanwhile, if it is quick to look there; empty otherwise."""

    listed_ns: int = 0
    """What came there later is not among the rows."""

    bytes_per_row: float = 1.0

    def by(self, now: float) -> int:
        """Rows that have arrived by now."""
        return self.rows + round(self.rows_per_s * max(now - self.at, 0.0))


@dataclass(frozen=True, slots=True)
class Extent:
    """From where and up to where a source reads, if that is not all there is, and whether it rests."""

    bounded: bool = False
    modified_since_ns: int = 0
    arrived_since_ns: int = 0
    paused: bool = False
    earliest: bool = False
    """Whether it begins at the earliest, for a source that else begins now."""


def set_extent(folder: Path, extent: Extent) -> None:
    """Tell a reader from where and up to where it reads."""
    write_note(folder, "extent.json", asdict(extent))


def extent_of(folder: Path) -> Extent:
    """From where and up to where a reader is to read."""
    return Extent(**(read_note(folder, "extent.json") or {}))


UNTIL = "until.json"
"""The file with the offset up to which a bounded source reads, once that is settled."""


def until_of(folder: Path | str) -> Any:
    """The offset up to which a bounded source reads; ``None`` before that is settled."""
    return read_note(folder, UNTIL)


def note_end(folder: Path, batch: int) -> None:
    """Note that a bounded source has nothing left to read after a batch."""
    write_note(folder, "ended.json", batch)


def ended_after(folder: Path) -> int | None:
    """The batch after which a bounded source had nothing left, if it had."""
    ended = read_note(folder, "ended.json")
    return None if ended is None else int(ended)


def write_due(folder: Path | str, due: Due) -> None:
    """Write what has arrived at a source."""
    write_note(folder, "due.json", asdict(due))


def due_in(folder: Path) -> Due | None:
    """What a fragment's reader has stored last; ``None`` if it stores nothing, or an older version wrote it."""
    stored = read_note(folder, "due.json")
    return Due(**stored) if isinstance(stored, dict) and "throttled" in stored else None
