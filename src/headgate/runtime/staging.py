"""Staging: the outputs of an epoch, written by the workers in one Spark job, before anybody may see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.runtime.worker import settle

__all__ = ["ENDINGS", "OUTPUTS", "Staged", "pack", "stage"]

OUTPUTS = "outputs"

STAGED = StructType().add("output", "integer").add("partition", "integer").add("path", "string").add("rows", "long")

ENDINGS = {"parquet": ".parquet", "json": ".json", "csv": ".csv", "arrow": ".arrow"}


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that holds some rows of an output."""

    output: int
    path: str
    rows: int


def stage(frame: DataFrame, forms: Sequence[str], folder: Path) -> list[Staged]:
    """Run the epoch's job: write each output's rows into files of ``folder`` and return them, in order.

    The frame's only column, :data:`OUTPUTS`, has a field for each output: ``o0``, ``o1`` and so on.
    """
    target, wanted = str(folder), list(forms)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _write(batches, wanted, target)

    # Only the column's name is asked for. With many outputs, PySpark takes as long to fetch their types as all else.
    frame.__dict__["schema"] = StructType().add(OUTPUTS, StructType())
    found = frame.mapInArrow(write, STAGED).collect()
    ordered = sorted(found, key=lambda row: (row["output"], row["partition"]))
    return [Staged(row["output"], row["path"], row["rows"]) for row in ordered]


def pack(frame: DataFrame) -> DataFrame:
    """A frame with a column for each output as one that can be staged."""
    return frame.select(F.struct(F.col("*")).alias(OUTPUTS))


def _write(batches: Iterator[pa.RecordBatch], forms: Sequence[str], folder: str) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context else 0
    attempt = context.taskAttemptId() if context else 0
    writers: dict[int, _Writer] = {}
    for batch in batches:
        outputs = batch.column(0)
        for field, rows in zip(outputs.type, outputs.flatten(), strict=True):
            number = int(field.name[1:])
            if rows.null_count:
                rows = rows.drop_null()
            if len(rows):
                if number not in writers:
                    ending = ENDINGS[forms[number]]
                    path = f"{folder}/{number}-{partition}-{attempt}{ending}"
                    writers[number] = _Writer(path, forms[number])
                writers[number].write(rows)
    made = [(number, partition, writer.path, writer.close()) for number, writer in writers.items()]
    settle()
    if made:
        columns = [pa.array(column) for column in zip(*made, strict=True)]
        types = [pa.int32(), pa.int32(), pa.string(), pa.int64()]
        arrays = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, ["output", "partition", "path", "rows"])


class _Writer:
    """Writes the rows of one output and partition: structs as parquet or Arrow, texts as lines."""

    def __init__(self, path: str, form: str) -> None:
        self.path = path
        self.form = form
        self.rows = 0
        self._file: Any = None

    def write(self, rows: Any) -> None:
        self.rows += len(rows)
        if self.form in ("json", "csv"):
            if self._file is None:
                self._file = Path(self.path).open("w", encoding="utf-8", newline="")  # noqa: SIM115
            self._file.write("\n".join(rows.to_pylist()))
            self._file.write("\n")
            return
        batch = pa.RecordBatch.from_struct_array(rows)
        if self._file is None:
            self._file = self._opened(batch.schema)
        self._file.write_batch(batch)

    def _opened(self, schema: pa.Schema) -> Any:
        if self.form == "parquet":
            import pyarrow.parquet as pq

            return pq.ParquetWriter(self.path, schema)
        return pa.ipc.new_file(self.path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def close(self) -> int:
        self._file.close()
        return self.rows
