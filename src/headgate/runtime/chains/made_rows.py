"""The rows that chains have put out in an epoch, for the rest of the fragment's job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from headgate.model.names import Signature
from headgate.runtime.chains.files import mapped
from headgate.runtime.exchange.files import INGEST
from headgate.runtime.spark_internals.frames import arrow_schema, from_arrow

__all__ = ["MadeRows", "MadeSplit", "made_frame"]

BATCH = 20_000
"""Rows that are handed over at once."""

MadeSplit = tuple[int, tuple[tuple[Signature, str], ...]]
"""When the events were taken in that the rows come from, in the mean; and the files of rows of a range, with whose they
are."""


@dataclass(frozen=True, slots=True)
class MadeRows:
    """Reads them: a struct column for each task, and rows of which only one is not null."""

    schemas: tuple[tuple[Signature, bytes], ...]

    @property
    def columns(self) -> StructType:
        columns = StructType()
        for signature, schema in self.schemas:
            columns = columns.add(signature, from_arrow(pa.ipc.read_schema(pa.py_buffer(schema))))
        return columns.add(INGEST, LongType())

    def read(self, split: Any) -> Iterator[pa.RecordBatch]:
        ingested, files = split
        target = arrow_schema(self.columns)
        for signature, path in files:
            for batch in mapped(Path(path)).to_batches(max_chunksize=BATCH):
                own = {signature: pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))}
                yield _widened(own, len(batch), ingested, target)


def _widened(own: Mapping[str, pa.Array], rows: int, ingested: int, target: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in target:
        if field.name == INGEST:
            columns.append(pa.repeat(pa.scalar(ingested, pa.int64()), rows))
        else:
            known = own.get(field.name)
            columns.append(pa.nulls(rows, field.type) if known is None else known.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=target)


def made_frame(spark: SparkSession, reader: MadeRows, splits: Sequence[MadeSplit]) -> DataFrame:
    """The same rows as a frame that knows its files."""
    parts = tuple(splits)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for _ in batches:
            pass
        context = TaskContext.get()
        assert context is not None
        yield from reader.read(parts[context.partitionId()])

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(run, reader.columns)
