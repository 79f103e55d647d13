"""The replayer: a recorded file played as a stream, at a given rate or at the pace of its own time stamps.

An offset is a number of rows, so a replayed epoch reads the same rows again. Time counts from the start of this run:
after a restart the player goes on with the next row at once.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from headgate.tasks.sources import Replay

__all__ = ["ReplaySource", "replayed"]

ROWS_AT_ONCE = 1_000_000
"""The most rows handed over per trigger when nothing else limits them."""


def replayed(spark: SparkSession, options: Replay, limit: int | None) -> DataFrame:
    """The stream of a replay task."""
    spark.dataSource.register(ReplaySource)
    reader = spark.readStream.format(ReplaySource.name()).option("task", options.model_dump_json())
    return reader.option("limit", limit or ROWS_AT_ONCE).load()


@lru_cache(maxsize=4)
def _table(task: str) -> Any:
    """The recorded rows as an Arrow table with the task's columns."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet
    from pyspark.sql.pandas.types import to_arrow_schema

    from headgate.tasks.frames import parsed_schema

    options = Replay.model_validate_json(task)
    if options.format == "text":
        with open(options.path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return pa.table({"value": pa.array(file.read().splitlines(), pa.string())})
    schema = to_arrow_schema(parsed_schema(options.columns or ""))
    if options.format == "parquet":
        table = pyarrow.parquet.read_table(options.path)
    elif options.format == "json":
        parsing = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        table = pyarrow.json.read_json(options.path, parse_options=parsing)
    else:
        names = None if options.header else schema.names
        table = pyarrow.csv.read_csv(
            options.path,
            read_options=pyarrow.csv.ReadOptions(column_names=names),
            convert_options=pyarrow.csv.ConvertOptions(column_types=schema),
        )
    return table.select(schema.names).cast(schema)


class _Slice(InputPartition):
    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


class ReplayReader(DataSourceStreamReader):
    """Hands over the rows whose time has come."""

    def __init__(self, task: str, limit: int) -> None:
        self.task = task
        self.options = Replay.model_validate_json(task)
        self.limit = limit
        self.began: float | None = None
        self.offset_at_start = 0
        self.due_s: list[float] = []

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        del limit
        if self.began is None:
            self.began, self.offset_at_start = time.monotonic(), start["rows"]
            self.due_s = _due(self.task, self.options)
        return {"rows": min(self._available(time.monotonic() - self.began), start["rows"] + self.limit)}

    def _available(self, elapsed_s: float) -> int:
        total = _table(self.task).num_rows
        begun = self.offset_at_start
        if self.options.rate_per_s is not None:
            count = begun + int(elapsed_s * self.options.rate_per_s)
        elif self.due_s:
            rounds, row = divmod(begun, total)
            passed = self.due_s[row] + elapsed_s * self.options.speed
            span = self.due_s[-1] + 1.0
            further = int(passed // span) if self.options.repeat else 0
            count = (rounds + further) * total + bisect_right(self.due_s, passed - further * span)
        else:
            count = begun + self.limit
        return max(begun, count if self.options.repeat else min(count, total))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [_Slice(start["rows"], end["rows"])] if end["rows"] > start["rows"] else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Slice)
        table = _table(self.task)
        first = partition.first
        while first < partition.last:
            row = first % table.num_rows
            count = min(partition.last - first, table.num_rows - row)
            yield from table.slice(row, count).combine_chunks().to_batches()
            first += count


def _due(task: str, options: Replay) -> list[float]:
    """When each row is due, in seconds from the first."""
    if options.time_column is None:
        return []
    import pyarrow as pa
    import pyarrow.compute as pc

    times = _table(task).column(options.time_column)
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

    def schema(self) -> str:
        options = Replay.model_validate_json(self.options["task"])
        return options.columns or "value string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return ReplayReader(self.options["task"], int(self.options["limit"]))
