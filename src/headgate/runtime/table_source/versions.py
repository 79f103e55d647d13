"""Tables that grow by versions, each of which adds files.

A position is a version, and how many of its files have been read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from headgate.runtime.io.position_source import PART_ROWS
from headgate.runtime.table_source.driver import Look, Position, TableRows
from headgate.tasks.lakehouse.read import ReadVersions, start_time
from headgate.tasks.row_errors import UnreadableSourceError

__all__ = ["AddedFile", "Commits", "Version", "VersionedTable", "changed"]

Version = int


class AddedFile(NamedTuple):
    """A file of a version."""

    path: str
    rows: int
    about: Any = None
    """What else its reader needs."""


class Commits(Protocol):
    """The versions of a table; raises ``SourceAwayError`` if nobody answers."""

    def newest(self) -> Version | None:
        """The last version; ``None`` for a table that has none yet."""

    def before(self, ms: int) -> Version | None:
        """The last version from before a time; ``None`` is before all."""

    def after(self, version: Version | None) -> Sequence[Version]:
        """The versions after one, in order, or the first of them."""

    def files(self, version: Version, *, whole: bool) -> Sequence[AddedFile]:
        """The files that a version has added, or ``whole``: all of the table then; always in the same order."""

    def read(self, file: AddedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file, in a worker."""


def changed(options: ReadVersions, version: Version, what: str) -> Sequence[AddedFile]:
    """What is read of a version that changes or removes rows: nothing, if it does not fail."""
    if options.changes == "skip":
        return ()
    message = f"version {version} changes or removes rows of the table ({what})"
    raise UnreadableSourceError(f"{message}; give the task changes: skip to leave such versions out")


@dataclass(slots=True)
class VersionedTable:
    """A table as a source. Positions: the version, how many of its files are read (``null`` is all), if whole."""

    options: ReadVersions
    commits: Commits
    _known: dict[tuple[Version, bool], Sequence[AddedFile]] = field(default_factory=dict)

    def first(self) -> Position:
        start, moment = self.options.start, start_time(self.options.start)
        if moment is not None:
            return _after(self.commits.before(moment))
        if isinstance(start, int):
            return _after(start)
        newest = self.commits.newest()
        if start == "now" or newest is None:
            return _after(newest)
        return {"version": newest, "index": 0, "whole": True}

    def look(self, at: Position, rows: int) -> Look:
        taken, count, waiting = at, 0, 0
        for position, file in self._after(at):
            if not waiting and (not count or count + file.rows <= rows):
                taken, count = position, count + file.rows
            else:
                waiting += file.rows
        return Look(taken, count, waiting)

    def parts(self, start: Position, end: Position, most: int) -> Sequence[Sequence[AddedFile]]:
        files: list[AddedFile] = []
        if start != end:
            for position, file in self._after(start):
                files.append(file)
                if position == end:
                    break
        return _divided(files, most)

    def read(self, part: Sequence[AddedFile], schema: pa.Schema) -> Iterator[TableRows]:
        for file in part:
            yield from map(TableRows, self.commits.read(file, schema))

    def _after(self, at: Position) -> Iterator[tuple[Position, AddedFile]]:
        """The files after a position, each with the position that it leads to."""
        version, whole = at["version"], at["whole"]
        versions = [(one, False) for one in self.commits.after(version)]
        index = 0
        if at["index"] is not None:
            versions, index = [(version, whole), *versions], at["index"]
        self._known = {key: self._known[key] for key in versions if key in self._known}
        for key in versions:
            files = self._files(*key)
            for number, file in enumerate(files[index:], index + 1):
                made = None if number == len(files) else number
                yield {"version": key[0], "index": made, "whole": key[1] and made is not None}, file
            index = 0

    def _files(self, version: Version, whole: bool) -> Sequence[AddedFile]:
        if (version, whole) not in self._known:
            self._known[version, whole] = self.commits.files(version, whole=whole)
        return self._known[version, whole]


def _after(version: Version | None) -> Position:
    return {"version": version, "index": None, "whole": False}


def _divided(files: Sequence[AddedFile], most: int) -> list[list[AddedFile]]:
    """Files as so many parts of about as many rows each, in order.

    >>> files = [AddedFile(name, 30_000) for name in "abc"]
    >>> [[file.path for file in part] for part in _divided(files, 2)]
    [['a', 'b'], ['c']]
    """
    target = max(math.ceil(sum(file.rows for file in files) / max(most, 1)), PART_ROWS)
    parts: list[list[AddedFile]] = []
    room = 0
    for file in files:
        if room <= 0:
            parts.append([])
            room = target
        parts[-1].append(file)
        room -= file.rows
    return parts
