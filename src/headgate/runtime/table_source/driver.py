"""The driver's part of a source that is a table: it asks what there is, and plans batches.

A position is all that a batch needs. Spark stores it before the batch is run, so only where the first batch begins is
kept beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from headgate.runtime.io.broken_records import forget_broken
from headgate.store.files import write_text
from headgate.tasks.row_errors import SourceAwayError
from headgate.tasks.source_folder import Due, limit_of, write_due, write_note
from headgate.tasks.table_reader import BEGUN

__all__ = ["BrokenRow", "GrowingTable", "Look", "Offset", "Position", "TableBatches", "TableRows"]

Position = Mapping[str, Any]
"""How far a table has been read, as JSON has it."""

Offset = dict[str, Any]
"""``rows`` and ``batch`` as every source of ours has them, the position is under ``at``, its time under ``us``."""

UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Look:
    """What comes after a position."""

    taken: Position
    """Up to where the next batch reads."""

    rows: int
    """How many rows that are."""

    waiting: int = 0
    """Rows that are there and that it leaves."""

    waits: str | None = None
    """Why it leaves them, if that is not a limit."""


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that is none of the stream's: as text, and why."""

    record: str
    error: str


@dataclass(frozen=True, slots=True)
class TableRows:
    """Some rows of a table, and those that are none."""

    rows: pa.RecordBatch
    broken: tuple[BrokenRow, ...] = ()


class GrowingTable(Protocol):
    """A table to which rows are added; raises ``SourceAwayError`` if nobody answers."""

    def first(self) -> Position:
        """Where the task's options say that it begins."""

    def look(self, at: Position, rows: int) -> Look:
        """What comes after a position, as many rows of it as a batch may have."""

    def parts(self, start: Position, end: Position, most: int) -> Sequence[Any]:
        """What is between two positions, in so many parts at most; what one has comes before what the next has."""

    def read(self, part: Any, schema: pa.Schema) -> Iterator[TableRows]:
        """The rows of a part, in a worker."""


@dataclass(slots=True)
class TableBatches:
    """The batches of one source. ``folder`` is its fragment's."""

    table: GrowingTable
    folder: Path
    rows_per_batch: int | None = None

    def first(self) -> Offset:
        """Where the first batch begins; the same whenever it is asked for."""
        note = self.folder / BEGUN
        if not note.exists():
            write_text(note, json.dumps(self.table.first()), "table-begun")
        return {"rows": 0, "batch": 0, "at": json.loads(note.read_text(encoding="utf-8")), "us": 0}

    def next(self, start: Offset) -> Offset:
        """What comes after the batch that Spark has committed last; the same offset if there is nothing.

        While nobody answers there is nothing, and a note says so.
        """
        forget_broken(self.folder, start["batch"])
        usual = UNLIMITED if self.rows_per_batch is None else self.rows_per_batch
        try:
            look = self.table.look(start["at"], max(min(limit_of(self.folder, UNLIMITED), usual), 1))
        except SourceAwayError as error:
            write_note(self.folder, "waits.json", str(error))
            return start
        write_note(self.folder, "waits.json", look.waits)
        now, total = time.time(), start["rows"] + look.rows
        write_due(self.folder, Due(now, total + look.waiting, 0.0, look.waiting))
        if look.taken == start["at"]:
            return start
        return {"rows": total, "batch": start["batch"] + 1, "at": look.taken, "us": round(now * 1e6)}
