"""Reading a table as Spark does: batch by batch, a new reader now and then, positions and parts as bytes in between."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.runtime.table_source.driver import GrowingTable, Offset, TableBatches

__all__ = ["Reading"]


class Reading:
    """What one dataflow has read of a table; ``open_table`` makes a reader, as a new engine does."""

    def __init__(
        self, open_table: Callable[[], GrowingTable], schema: pa.Schema, folder: Path, limit: int | None = None
    ) -> None:
        self._open, self._schema, self._folder, self._limit = open_table, schema, folder, limit
        folder.mkdir(exist_ok=True)
        self._batches = TableBatches(open_table(), folder, limit)
        self._at: Offset | None = None
        self.rows: list[dict[str, Any]] = []
        self.broken: list[str] = []
        self.batches: list[int] = []
        """Rows of each batch."""

    def restart(self) -> None:
        """Go on as a new engine does."""
        self._batches = TableBatches(self._open(), self._folder, self._limit)

    def one(self, dice: random.Random | None = None) -> bool:
        """Read the next batch, if there is one; with dice, it may be that it is read again after a failure."""
        if self._at is None:
            self._at = json.loads(json.dumps(self._batches.first()))
        end = json.loads(json.dumps(self._batches.next(self._at)))
        if end == self._at:
            return False
        if dice is not None and dice.random() < 0.3:
            self._read(end)  # and the engine is killed
            self.restart()
        rows, broken = self._read(end)
        assert end["rows"] - self._at["rows"] == len(rows) + len(broken), "what was announced is what is read"
        self.rows += rows
        self.broken += broken
        self.batches.append(len(rows))
        self._at = end
        return True

    def all(self, dice: random.Random | None = None) -> list[dict[str, Any]]:
        """Read until nothing is left; the rows up to now."""
        while self.one(dice):
            pass
        return self.rows

    def _read(self, end: Offset) -> tuple[list[dict[str, Any]], list[str]]:
        assert self._at is not None
        rows: list[dict[str, Any]] = []
        broken: list[str] = []
        for part in self._batches.table.parts(self._at["at"], end["at"], 3):
            for some in self._open().read(pickle.loads(pickle.dumps(part)), self._schema):
                rows += some.rows.to_pylist()
                broken += [one.error for one in some.broken]
        return rows, broken
