"""The data source ``headgate_tables``: what Spark asks of a source that is a table, on the driver and in workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import LongType, StructType

from headgate.model.on_error import OnError
from headgate.runtime.io.broken_records import LONGEST, write_broken
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.runtime.spark_internals.worker import settle
from headgate.runtime.table_source.delta import DeltaCommits
from headgate.runtime.table_source.driver import GrowingTable, Offset, TableBatches
from headgate.runtime.table_source.iceberg import IcebergCommits
from headgate.runtime.table_source.versions import VersionedTable
from headgate.tasks.database.read import ReadTable
from headgate.tasks.lakehouse.read import ReadDelta, ReadIceberg
from headgate.tasks.row_errors import CARRIED, UnreadableSourceError

__all__ = ["TableReader", "TableSource"]


@dataclass(frozen=True)
class _Part(InputPartition):
    """Some of a batch; what it is, only its table knows."""

    batch: int
    number: int
    came_us: int
    rows: Any


Task = ReadTable | ReadDelta | ReadIceberg


def _sql_table(options: ReadTable) -> GrowingTable:
    from headgate.runtime.table_source.database import sql_table  # an engine without such sources need not load it

    return sql_table(options)


KINDS: Mapping[str, tuple[type[Task], Callable[[Any], GrowingTable]]] = {
    "read_table": (ReadTable, _sql_table),
    "read_delta": (ReadDelta, lambda options: VersionedTable(options, DeltaCommits(options))),
    "read_iceberg": (ReadIceberg, lambda options: VersionedTable(options, IcebergCommits(options))),
}
"""By type of task: its options, and the table."""


class TableReader(DataSourceStreamReader):
    """Reads the table of a task; ``options`` are those of the data source."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.kind = options["kind"]
        self.options = KINDS[self.kind][0].model_validate_json(options["task"])
        self.folder = Path(options["folder"])
        self.most = int(options["parts"])
        self.on_error = OnError(options["on_error"])
        columns = StructType.fromJson(json.loads(options["columns"]))
        self.columns = StructType([*columns.fields]).add(CARRIED, LongType())
        self.arrow, self.target = arrow_schema(columns), arrow_schema(self.columns)
        self._table: GrowingTable | None = None
        self._batches: TableBatches | None = None

    @property
    def table(self) -> GrowingTable:
        if self._table is None:
            self._table = KINDS[self.kind][1](self.options)
        return self._table

    @property
    def batches(self) -> TableBatches:
        if self._batches is None:
            self._batches = TableBatches(self.table, self.folder, self.options.rows_per_batch)
        return self._batches

    # on the driver

    def initialOffset(self) -> Offset:
        return self.batches.first()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        del limit
        return self.batches.next(start)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self.divided(start, end, self.most)

    def divided(self, start: Offset, end: Offset, count: int) -> Sequence[InputPartition]:
        begun = start if "at" in start else self.batches.first()
        parts = self.table.parts(begun["at"], end["at"], count)
        return [_Part(end["batch"], number, end["us"], part) for number, part in enumerate(parts)]

    def commit(self, end: Offset) -> None:
        """Nothing to do: the next call of :meth:`latestOffset` says the same."""

    # in workers

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Part)
        broken: list[dict[str, str]] = []
        for some in self.table.read(partition.rows, self.arrow):
            for row in some.broken:
                if self.on_error is OnError.FAIL:
                    remedy = "mend it, or give the task on_error: dead_letter or skip"
                    raise UnreadableSourceError(f"{row.error}; {remedy}")
                broken.append({"record": row.record[:LONGEST], "error": row.error})
            times = pa.array(np.full(len(some.rows), partition.came_us, np.int64))
            yield pa.RecordBatch.from_arrays([*some.rows.columns, times], schema=self.target)
        if broken:
            write_broken(self.folder, partition.batch, partition.number, broken)
        settle()

    def __getstate__(self) -> dict[str, Any]:
        """What workers get: they connect by themselves."""
        return {**self.__dict__, "_table": None, "_batches": None}


class TableSource(DataSource):
    """The data source ``headgate_tables``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_tables"

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["columns"])).add(CARRIED, LongType())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return TableReader(self.options)
