"""The replayer: a recorded file played as a stream, at a given rate or at the pace of its own time stamps.

An offset is a number of rows, so a replayed epoch reads the same rows again. Time counts from the start of this run:
after a restart the player goes on with the next row at once.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from headgate.runtime.limits import limit_of, tell_waiting
from headgate.runtime.recording import recorded
from headgate.runtime.state import read_json, write_json
from headgate.tasks.sources import Replay

__all__ = ["ReplaySource", "is_played", "replayed"]

ROWS_AT_ONCE = 1_000_000
"""The most rows handed over per trigger when nothing else limits them."""


def replayed(spark: SparkSession, options: Replay, columns: StructType, folder: Path) -> DataFrame:
    """The stream of a replay task; in ``folder`` its reader finds its limit, and tells how many rows it has."""
    spark.dataSource.register(ReplaySource)
    reader = spark.readStream.format(ReplaySource.name()).option("task", options.model_dump_json())
    # Only this process can read columns as SQL writes them.
    return reader.option("columns", columns.json()).option("folder", str(folder)).load()


def is_played(folder: Path, rows: int) -> bool:
    """Whether a replay that has handed over so many rows has come to its end; one that repeats never does.

    A fragment that replays nothing has nothing left to play.
    """
    told = read_json(folder / "recording.json")
    return told is None or (not told["repeat"] and rows >= told["rows"])


class _Slice(InputPartition):
    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


class ReplayReader(DataSourceStreamReader):
    """Hands over the rows whose time has come."""

    def __init__(self, task: str, columns: str, folder: str) -> None:
        self.task = task
        self.columns = columns
        self.options = Replay.model_validate_json(task)
        self.folder = folder
        self.began: float | None = None
        self.offset_at_start = 0
        self.due_s: list[float] = []

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        del limit
        total = recorded(self.task, self.columns).num_rows
        if self.began is None:
            self.began, self.offset_at_start = time.monotonic(), start["rows"]
            self.due_s = _due(recorded(self.task, self.columns), self.options)
            write_json(Path(self.folder) / "recording.json", {"rows": total, "repeat": self.options.repeat})
        most = start["rows"] + limit_of(self.folder, ROWS_AT_ONCE)
        if total == 0:
            return start
        all_due = self._due_by(time.monotonic() - self.began, total, most)
        due = min(most, all_due)
        tell_waiting(self.folder, max(0, (all_due if self.options.repeat else min(all_due, total)) - due))
        return {"rows": max(start["rows"], due if self.options.repeat else min(due, total))}

    def _due_by(self, elapsed_s: float, total: int, most: int) -> int:
        """How many rows are due in all, counted from the very first."""
        begun = self.offset_at_start
        if self.options.rate_per_s is not None:
            return begun + int(elapsed_s * self.options.rate_per_s)
        if not self.due_s:
            return most
        rounds, row = divmod(begun, total)
        passed = self.due_s[row] + elapsed_s * self.options.speed
        span = self.due_s[-1] + 1.0
        further = int(passed // span) if self.options.repeat else 0
        return (rounds + further) * total + bisect_right(self.due_s, passed - further * span)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [_Slice(start["rows"], end["rows"])] if end["rows"] > start["rows"] else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Slice)
        table = recorded(self.task, self.columns)
        first = partition.first
        while first < partition.last:
            row = first % table.num_rows
            count = min(partition.last - first, table.num_rows - row)
            yield from table.slice(row, count).combine_chunks().to_batches()
            first += count


def _due(table: Any, options: Replay) -> list[float]:
    """When each row is due, in seconds from the first."""
    if options.time_column is None:
        return []
    import pyarrow as pa
    import pyarrow.compute as pc

    times = table.column(options.time_column)
    seconds = (
        pc.divide(pc.cast(times, pa.int64()), 1e6)
        if pa.types.is_timestamp(times.type)
        else pc.cast(times, pa.float64())
    )
    values = [value or 0.0 for value in seconds.to_pylist()]
    latest, due = values[0], []
    for value in values:
        latest = max(latest, value)
        due.append(latest - values[0])
    return due


class ReplaySource(DataSource):
    """The data source ``headgate_replay``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_replay"

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["columns"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ReplayReader(self.options["task"], schema.json(), self.options["folder"])
