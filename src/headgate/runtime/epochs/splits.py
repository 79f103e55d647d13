"""Splits: the parts of an epoch's input that workers read by themselves, one for each partition of its job.

A frame that reads splits does not name them. Workers find those of the running epoch in its folder, so the frame, once
planned, serves every epoch. Where Spark has nothing to do with the rows before they are staged, the worker that reads
them stages them too: to Spark's process and back costs more than reading does.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.runtime.compile.arrow_stage import ArrowStage
from headgate.runtime.epochs.staging import EPOCH, OUTPUTS, staging_frame
from headgate.runtime.exchange.files import INGEST
from headgate.tasks.batch import Run, metered

__all__ = ["SourceReader", "SplitReader", "Splits", "split_frame", "staged_splits"]

FILE = "splits"


class SplitReader(Protocol):
    """Reads one split, in a worker."""

    @property
    def columns(self) -> StructType: ...

    def read(self, split: Any) -> Iterator[pa.RecordBatch]: ...


class SourceReader(SplitReader, Protocol):
    """Reads a source: which splits are between two offsets is known on the driver."""

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class Splits:
    """The splits of an epoch, in order, and what reads them."""

    reader: SplitReader
    parts: Sequence[Any]

    def store(self, folder: Path) -> None:
        """Put the splits where workers look for them. They need not survive: a killed epoch is run anew."""
        (folder / FILE).write_bytes(pickle.dumps(list(self.parts)))


def split_frame(spark: SparkSession, reader: SplitReader, count: int) -> DataFrame:
    """The rows of any epoch that has so many splits."""
    return _of_splits(spark, count).mapInArrow(metered(_reading(reader)), reader.columns)


def staged_splits(
    spark: SparkSession,
    reader: SplitReader,
    count: int,
    forms: Sequence[str],
    stages: Mapping[int, ArrowStage],
    names: Sequence[str] = (),
) -> DataFrame:
    """A frame that reads the splits of any epoch, lets all rows run down stages, and writes what comes out."""
    read = _reading(reader)

    def outputs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in read(batches):
            rows = batch.drop_columns(INGEST).to_struct_array()
            columns = {**{f"o{number}": rows for number in stages}, INGEST: batch.column(INGEST)}
            yield pa.RecordBatch.from_pydict({OUTPUTS: pa.StructArray.from_arrays(columns.values(), columns.keys())})

    return staging_frame(_of_splits(spark, count), forms, stages, outputs, names)


def _of_splits(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, count)


def _reading(reader: SplitReader) -> Run:
    """What reads the splits of an epoch in its workers."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for _ in batches:
            pass
        context = TaskContext.get()
        assert context is not None
        folder, _ = json.loads(context.getLocalProperty(EPOCH) or "null")
        parts = pickle.loads((Path(folder) / FILE).read_bytes())
        yield from reader.read(parts[context.partitionId()])

    return read
