"""The replayer: a recorded file played as a stream, at a given rate or at the pace of its own time stamps.

Files are read as ``read_files`` reads them, with two differences: columns of a CSV file with a header are known by
their names, and a line that is no record becomes a row of nulls, so that rows keep their places.

An offset is a number of rows, so a replayed epoch reads the same rows again. Time counts from the start of this run:
after a restart the player goes on with the next row at once. Each row carries when it was due.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructType

from headgate.tasks.formats.files import opened, read_file
from headgate.tasks.formats.lines import json_lines
from headgate.tasks.row_errors import CARRIED
from headgate.tasks.source_folder import (
    Due,
    extent_of,
    limit_of,
    note_end,
    read_note,
    until_of,
    write_due,
    write_note,
)
from headgate.tasks.sources import Replay

__all__ = ["ReplaySource", "is_played", "recorded", "recorded_rows", "replayed"]

ROWS_AT_ONCE = 1_000_000
"""The most rows handed over per trigger when nothing else limits them."""


def replayed(spark: SparkSession, options: Replay, columns: StructType, folder: Path) -> DataFrame:
    """The stream of a replay task; its reader reads its limit from ``folder``, and writes its number of rows there."""
    spark.dataSource.register(ReplaySource)
    reader = spark.readStream.format(ReplaySource.name()).option("task", options.model_dump_json())
    # Only this process can read columns as SQL writes them.
    return reader.option("columns", columns.json()).option("folder", str(folder)).load()


def is_played(folder: Path, rows: int) -> bool:
    """Whether a replay that has handed over so many rows has come to its end; one that repeats never does.

    A fragment that replays nothing has nothing left to play.
    """
    recording = read_note(folder, "recording.json")
    return recording is None or (not recording["repeat"] and rows >= recording["rows"])


def recorded_rows(folder: Path) -> int | None:
    """How many rows there are to be played; none if there is no end to them, or nothing is known yet."""
    recording = read_note(folder, "recording.json")
    return None if recording is None or recording["repeat"] else int(recording["rows"])


@dataclass
class _Slice(InputPartition):
    """Some rows, and from when on which row was due."""

    first: int
    last: int
    began_us: int
    offset: int


class ReplayReader(DataSourceStreamReader):
    """Hands over the rows whose time has come."""

    def __init__(self, task: str, columns: str, folder: str) -> None:
        self.task = task
        self.columns = columns
        self.options = Replay.model_validate_json(task)
        self.folder = folder
        self.began: float | None = None
        self.began_us = 0
        self.offset_at_start = 0
        self.due_s: np.ndarray[Any, np.dtype[np.float64]] | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0, "batch": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        del limit
        extent = extent_of(Path(self.folder))
        if extent.paused:
            return start
        batch = start.get("batch", 0)
        rows = self._passed(start["rows"], batch) if extent.bounded else self._played(start["rows"])
        return start if rows == start["rows"] else {"rows": rows, "batch": batch + 1}

    def _passed(self, begun: int, batch: int) -> int:
        """Up to which row it hands over what another reader has played; at once, for it has been due."""
        until = until_of(self.folder)
        if until is None:
            return begun
        rows: int = min(until["rows"], begun + limit_of(self.folder, ROWS_AT_ONCE))
        write_due(self.folder, Due(time.time(), until["rows"], 0.0, until["rows"] - rows))
        if rows == begun:
            note_end(Path(self.folder), batch)
        return rows

    def _played(self, begun: int) -> int:
        """Up to which row it is time now."""
        total = recorded(self.task, self.columns).num_rows
        if self.began is None:
            self.began, self.began_us = time.monotonic(), time.time_ns() // 1_000
            self.offset_at_start = begun
            self.due_s = _due(self.task, self.columns)
            write_note(self.folder, "recording.json", {"rows": total, "repeat": self.options.repeat})
        most = begun + limit_of(self.folder, ROWS_AT_ONCE)
        if total == 0:
            return begun
        elapsed_s = time.monotonic() - self.began
        due, soon = (max(begun, self._due_by(at, total, most)) for at in (elapsed_s, elapsed_s + 1.0))
        write_due(self.folder, Due(time.time(), due, float(soon - due), max(0, due - most)))
        return min(due, most)

    def _due_by(self, elapsed_s: float, total: int, most: int) -> int:
        """How many rows are due in all, counted from the very first."""
        due = self._paced_by(elapsed_s, total)
        if due is None:
            return most if self.options.repeat else total
        return due if self.options.repeat else min(due, total)

    def _paced_by(self, elapsed_s: float, total: int) -> int | None:
        """The same for a recording without end; none where nothing paces it."""
        begun = self.offset_at_start
        if self.options.rate_per_s is not None:
            return begun + int(elapsed_s * self.options.rate_per_s)
        if self.due_s is None:
            return None
        rounds, row = divmod(begun, total)
        passed = self.due_s[row] + elapsed_s * self.options.speed
        span = self.due_s[-1] + 1.0
        further = int(passed // span) if self.options.repeat else 0
        return (rounds + further) * total + int(np.searchsorted(self.due_s, passed - further * span, "right"))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if end["rows"] <= start["rows"]:
            return []
        return [_Slice(start["rows"], end["rows"], self.began_us, self.offset_at_start)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Slice)
        table = recorded(self.task, self.columns)
        first = partition.first
        while first < partition.last:
            row = first % table.num_rows
            count = min(partition.last - first, table.num_rows - row)
            for batch in table.slice(row, count).combine_chunks().to_batches():
                yield batch.append_column(CARRIED, pa.array(self._due_us(partition, first, len(batch))))
                first += len(batch)

    def _due_us(self, partition: _Slice, first: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """When some rows were due, in microseconds since 1970: at once, where nothing paces them."""
        rows = np.arange(first, first + count)
        due_s = _due(self.task, self.columns)
        if not partition.began_us or (due_s is None and self.options.rate_per_s is None):
            return np.full(count, time.time_ns() // 1_000)
        if self.options.rate_per_s is not None:
            after_s = (rows + 1 - partition.offset) / self.options.rate_per_s
        else:
            assert due_s is not None
            span = due_s[-1] + 1.0
            total = len(due_s)
            begun = partition.offset // total * span + due_s[partition.offset % total]
            after_s = (rows // total * span + due_s[rows % total] - begun) / self.options.speed
        return partition.began_us + (after_s * 1e6).astype(np.int64)


@lru_cache(maxsize=8)
def _due(task: str, columns: str) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """When each row is due, in seconds from the first, if rows have times."""
    options = Replay.model_validate_json(task)
    if options.time_column is None or options.rate_per_s is not None:
        return None
    table = recorded(task, columns)
    times = table.column(options.time_column)
    seconds = (
        pc.divide(pc.cast(times, pa.int64()), 1e6)
        if pa.types.is_timestamp(times.type)
        else pc.cast(times, pa.float64())
    )
    due_s = np.maximum.accumulate(seconds.fill_null(0.0).to_numpy())
    return np.asarray(due_s - due_s[0]) if len(due_s) else None


@lru_cache(maxsize=4)
def recorded(task: str, columns: str) -> pa.Table:
    """The rows of a replay task, with its columns; both are given as JSON, the form in which workers get them."""
    options = Replay.model_validate_json(task)
    wanted = to_arrow_schema(StructType.fromJson(json.loads(columns)), timezone="UTC")
    schema = _in_file(options.path, wanted) if options.header else wanted
    parts = list(read_file(options.path, options.format, schema, header=options.header))
    broken = [line.line for part in parts for line in part.broken]
    batches = [_with_nulls(options.path, schema, broken)] if broken else [part.rows for part in parts]
    table = pa.Table.from_batches(batches, schema)
    names = set(schema.names)
    return pa.table([table[f.name] if f.name in names else pa.nulls(len(table), f.type) for f in wanted], schema=wanted)


def _in_file(path: str, wanted: pa.Schema) -> pa.Schema:
    """The columns of a CSV file, in its order; those that are not wanted are texts."""
    with opened(path) as file:
        names = next(csv.reader([file.readline().decode(errors="replace").removeprefix("\ufeff")]), [])
    known = {field.name: field.type for field in wanted}
    return pa.schema(
        [(name if name in known else f"__{at}", known.get(name, pa.string())) for at, name in enumerate(names)]
    )


def _with_nulls(path: str, schema: pa.Schema, broken: list[int]) -> pa.RecordBatch:
    """The rows of JSON lines, of which some are no record."""
    with opened(path) as file:
        lines = file.read().split(b"\n")
    for at in broken:
        lines[at] = b"{}"
    rows, _ = json_lines(b"\n".join(lines), schema)
    return rows


class ReplaySource(DataSource):
    """The data source ``headgate_replay``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_replay"

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["columns"])).add(CARRIED, LongType())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return ReplayReader(self.options["task"], self.options["columns"], self.options["folder"])
