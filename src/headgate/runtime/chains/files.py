"""Files of state: written once, sorted by hash, mapped into memory. One that no commit names does not exist."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.chain_work import HASH, UNTIL, StateTable
from headgate.store.chain_entries import ChainPart, StateFile
from headgate.store.durable_steps import step
from headgate.store.files import sync_files

__all__ = ["MERGED", "PartReader", "hashes_of", "mapped", "remove_others", "written"]

ENDING = ".arrow"

MERGED = "merged"
"""How the names of merged files begin."""

DENSE = 4
"""Where at least one of so many rows is asked for, the whole file is given: it costs less than to pick them out."""


def written(folder: Path, prefix: str, rows: pa.Table) -> StateFile:
    """Write rows of a table of state, sorted by hash, as a new file; it is on the disk when this returns.

    Its name is its own: attempts and replays write others.
    """
    name = f"{prefix}-{secrets.token_hex(4)}{ENDING}"
    path = folder / name
    with step("state-file") as point:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows.combine_chunks())
            point.halfway()
        sync_files([str(path)])
    hashes, until = hashes_of(rows), pc.min_max(rows.column(UNTIL)).as_py()
    first, last = int(hashes[0]), int(hashes[-1])
    return StateFile(name, len(rows), path.stat().st_size, first, last, until["max"], until["min"])


def mapped(path: Path) -> pa.Table:
    """The rows of a file, mapped into memory."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def hashes_of(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The hashes of rows."""
    return rows.column(HASH).combine_chunks().to_numpy() if len(rows) else np.array([], np.uint64)


class PartReader:
    """The state of one range of hashes: a :class:`~headgate.model.chain_work.StateReader`."""

    def __init__(
        self, folder: Path, tables: Sequence[StateTable], part: ChainPart, dead: Mapping[str, int] | None = None
    ) -> None:
        self._folder, self._part = folder, part
        self._dead = dict(dead or {})
        self._tables = {table.name: table for table in tables}
        self._mapped: dict[str, pa.Table] = {}

    def rows(self, table: str, after: int | None = None, until: int | None = None) -> pa.Table:
        """At least the rows with ``after < __until <= until``, oldest file first."""
        dead = self._dead.get(self._tables[table].axis)
        wanted = []
        for file in self._part.files.get(table, ()):
            gone = any(mark is not None and file.ends <= mark for mark in (after, dead))
            if not gone and (until is None or file.begins <= until):
                wanted.append(self._rows(file))
        return self._joined(table, wanted)

    def rows_of(self, table: str, hashes: Any) -> pa.Table:
        """At least the rows with one of these hashes, which are sorted and each there once."""
        dead = self._dead.get(self._tables[table].axis)
        wanted = []
        for file in self._part.files.get(table, ()):
            reached = len(hashes) and hashes[0] <= file.last and hashes[-1] >= file.first
            if reached and (dead is None or file.ends > dead):
                wanted.append(_having(self._rows(file), hashes))
        return self._joined(table, wanted)

    def _rows(self, file: StateFile) -> pa.Table:
        if file.name not in self._mapped:
            rows = mapped(self._folder / file.name)
            if file.first < self._part.low or file.last > self._part.high:
                low = np.array([self._part.low], np.uint64)
                high = np.array([self._part.high], np.uint64)
                here = hashes_of(rows)
                begin = int(np.searchsorted(here, low, "left")[0])
                rows = rows.slice(begin, int(np.searchsorted(here, high, "right")[0]) - begin)
            self._mapped[file.name] = rows
        return self._mapped[file.name]

    def _joined(self, table: str, some: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables(some) if some else self._tables[table].schema.empty_table()


def _having(rows: pa.Table, hashes: Any) -> pa.Table:
    """The rows with one of some hashes."""
    here = hashes_of(rows)
    begins = np.searchsorted(here, hashes, "left")
    counts = np.searchsorted(here, hashes, "right") - begins
    wanted = int(counts.sum())
    if wanted * DENSE >= len(rows):
        return rows
    places = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(wanted)
    return rows.take(pa.array(places))


def remove_others(folder: Path, kept: Callable[[str], bool]) -> None:
    """Remove the files that are not kept."""
    for file in folder.glob(f"*{ENDING}"):
        if not kept(file.name):
            with step("state-collected"):
                file.unlink(missing_ok=True)
