"""The data source ``headgate_tables``: reads tables to which rows are added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import StructType

from headgate.runtime.io.position_source import Batches, BrokenRecords, Offset, PositionReader, PositionSource
from headgate.runtime.table_source.delta import DeltaCommits
from headgate.runtime.table_source.driver import GrowingTable, TableBatches
from headgate.runtime.table_source.iceberg import IcebergCommits
from headgate.runtime.table_source.versions import VersionedTable
from headgate.tasks.database.read import ReadTable
from headgate.tasks.lakehouse.read import ReadDelta, ReadIceberg

__all__ = ["TableReader", "TableSource"]

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


class TableReader(PositionReader):
    """Reads the table of a task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.kind = options["kind"]
        self.options = KINDS[self.kind][0].model_validate_json(options["task"])
        self._table: GrowingTable | None = None

    @property
    def table(self) -> GrowingTable:
        if self._table is None:
            self._table = KINDS[self.kind][1](self.options)
        return self._table

    def _opened(self) -> Batches:
        return TableBatches(self.table, self.folder, self.options.rows_per_batch)

    def _between(self, start: Offset, end: Offset, most: int, least_rows: int) -> Sequence[Any]:
        del least_rows  # only the database knows
        return [(end["us"], part) for part in self.table.parts(start["at"], end["at"], most)]

    def _rows(self, part: tuple[int, Any], broken: BrokenRecords) -> Iterator[pa.RecordBatch]:
        came_us, rows = part
        for some in self.table.read(rows, self.arrow):
            for row in some.broken:
                broken.note(row.record, row.error, "mend it")
            times = pa.array(np.full(len(some.rows), came_us, np.int64))
            yield pa.RecordBatch.from_arrays([*some.rows.columns, times], schema=self.target)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_table": None}


class TableSource(PositionSource):
    """The data source ``headgate_tables``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_tables"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return TableReader(self.options)
