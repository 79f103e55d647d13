"""The versions of a Delta table, by its log: what the library does not tell, which files a version has added."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.runtime.table_source.versions import AddedFile, Version, changed
from headgate.tasks.database.values import converter
from headgate.tasks.file_paths import is_url
from headgate.tasks.formats.files import opened, read_file
from headgate.tasks.lakehouse.delta import delta_library
from headgate.tasks.lakehouse.read import ReadDelta
from headgate.tasks.row_errors import SourceAwayError, UnreadableSourceError

__all__ = ["DeltaCommits"]

AT_ONCE = 1_000
"""Versions that are looked at together."""

REMOVED_S = 10.0
"""How often it is asked whether the next version is missing because the log was cleaned."""

Action = dict[str, Any]


@dataclass(slots=True)
class DeltaCommits:
    """The versions of a task's table."""

    options: ReadDelta
    _asked: float = 0.0

    def newest(self) -> Version:
        with self._asking():
            return int(self._table().version())

    def before(self, ms: int) -> Version:
        newest = self.newest()
        for version in range(newest, -1, -1):
            actions = self._actions(version)
            if actions is None or _time_ms(actions) < ms:
                return version
        return -1

    def after(self, version: Version | None) -> Sequence[Version]:
        first = -1 if version is None else version
        there: list[Version] = []
        while len(there) < AT_ONCE and self._is_there(first + len(there) + 1):
            there.append(first + len(there) + 1)
        if not there and time.monotonic() - self._asked > REMOVED_S:
            self._asked = time.monotonic()
            newest = self.newest()
            if newest > first and not self._is_there(first + 1):
                message = f"the log of {self.options.path} has no version {first + 1} any more, and is at {newest}"
                raise UnreadableSourceError(f"{message}; keep it longer (delta.logRetentionDuration)")
        return there

    def files(self, version: Version, *, whole: bool) -> Sequence[AddedFile]:
        if whole:
            with self._asking():
                return [self._added(add) for add in _all_added(self._table(version))]
        actions = self._actions(version)
        if actions is None:
            raise UnreadableSourceError(f"the log of {self.options.path} has no version {version} any more")
        if any(one["remove"].get("dataChange", True) for one in actions if "remove" in one):
            operation = next((one["commitInfo"].get("operation") for one in actions if "commitInfo" in one), None)
            return changed(self.options, version, str(operation))
        return [self._added(one["add"]) for one in actions if "add" in one and one["add"]["dataChange"]]

    def read(self, file: AddedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file; the values of its partition's columns are not in it."""
        given = {name.casefold(): value for name, value in file.about.items()}
        try:
            for some in read_file(file.path, "parquet", schema):
                columns = [
                    _repeated(given[field.name.casefold()], len(some.rows), field.type)
                    if field.name.casefold() in given
                    else column
                    for field, column in zip(schema, some.rows.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except FileNotFoundError:
            message = f"{file.path} was removed before it was read; vacuum the table later"
            raise UnreadableSourceError(message) from None
        except pa.ArrowException as error:
            raise UnreadableSourceError(f"{file.path} cannot be read: {error}") from None

    def _added(self, add: Action) -> AddedFile:
        if add.get("deletionVector"):
            message = f"{self.options.path} has deletion vectors, which cannot be read here"
            raise UnreadableSourceError(message)
        path = unquote(add["path"])
        if not is_url(path) and not path.startswith("/"):
            path = f"{self.options.path.rstrip('/')}/{path}"
        stats = json.loads(add.get("stats") or "{}")
        rows = stats["numRecords"] if "numRecords" in stats else _rows_in(path)
        return AddedFile(path, int(rows), dict(add["partitionValues"]))

    def _table(self, version: Version | None = None) -> Any:
        return delta_library().DeltaTable(self.options.path, version=version)

    def _log(self, version: Version) -> str:
        return f"{self.options.path.rstrip('/')}/_delta_log/{version:020d}.json"

    def _is_there(self, version: Version) -> bool:
        return self._actions(version) is not None

    def _actions(self, version: Version) -> list[Action] | None:
        """What a version consists of; ``None`` if it is not there, not yet or no more."""
        with self._asking():
            try:
                with opened(self._log(version)) as file:
                    return [json.loads(line) for line in file.read().splitlines()]
            except FileNotFoundError:
                return None

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What is raised for storage that does not answer, or has no table now."""
        failures = (OSError, delta_library().exceptions.DeltaError)
        try:
            yield
        except failures as error:
            reason = " ".join(str(error).split())[:300]
            raise SourceAwayError(f"the Delta table at {self.options.path} cannot be read ({reason})") from None


def _all_added(table: Any) -> Iterator[Action]:
    """The files of a table, as actions of the log have them, in the order of their names."""
    added = pa.table(table.get_add_actions(flatten=False)).sort_by("path")
    for one in added.to_pylist():
        stats = {} if one["num_records"] is None else {"numRecords": one["num_records"]}
        values = {name: None if value is None else str(value) for name, value in (one.get("partition") or {}).items()}
        yield {"path": one["path"], "partitionValues": values, "stats": json.dumps(stats)}


def _repeated(text: str | None, count: int, kind: pa.DataType) -> pa.Array:
    """The value of a partition's column, for so many rows; an empty text is null, says the protocol."""
    value = None if text in (None, "") else converter(kind)(text)
    return pa.array([value] * count, kind)


def _time_ms(actions: Sequence[Action]) -> int:
    return next((int(one["commitInfo"]["timestamp"]) for one in actions if "timestamp" in one.get("commitInfo", {})), 0)


def _rows_in(path: str) -> int:
    with opened(path) as file:
        return int(pq.read_metadata(file).num_rows)
