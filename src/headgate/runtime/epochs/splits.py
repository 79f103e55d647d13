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
from headgate.runtime.spark_internals.internals import internals
from headgate.runtime.spark_internals.protocol import Places
from headgate.tasks.batch import Run, metered

__all__ = ["SourceReader", "SplitReader", "Splits", "frame_for_splits", "split_frame", "staged_splits"]

FILE = "splits"


class SplitReader(Protocol):
    """Reads one split, in a worker."""

    @property
    def columns(self) -> StructType: ...

    def read(self, split: Any) -> Iterator[pa.RecordBatch]: ...


class SourceReader(SplitReader, Protocol):
    """Reads a source: which splits are between two offsets is known on the driver."""

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]: ...

    def divided(self, start: dict[str, Any], end: dict[str, Any], count: int) -> Sequence[Any]:
        """As :meth:`partitions`, in so many splits where there are rows for that, however few each has."""


@dataclass(frozen=True, slots=True)
class Splits:
    """The splits of an epoch, in order, and what reads them."""

    reader: SplitReader
    parts: Sequence[Any]
    """``None`` for a partition that has nothing to read."""

    @classmethod
    def between(cls, reader: SourceReader, start: dict[str, Any], end: dict[str, Any], places: Sequence[str]) -> Splits:
        """What is between two offsets: where partitions are placed, one split for each of them."""
        if not places:
            return cls(reader, reader.partitions(start, end))
        return cls(reader, _one_each(reader.divided(start, end, len(places)), len(places)))

    def store(self, folder: Path) -> None:
        """Put the splits where workers look for them. They need not survive: a killed epoch is run anew."""
        (folder / FILE).write_bytes(pickle.dumps(list(self.parts)))


def _one_each(parts: Sequence[Any], count: int) -> list[Any]:
    """So many splits; too few are followed by nothing, of too many the last ones are read one after the other.

    >>> _one_each(["a"], 2), _one_each(["a", "b", "c"], 2)
    (['a', None], ['a', _Several(parts=('b', 'c'))])
    """
    if len(parts) <= count:
        return [*parts, *[None] * (count - len(parts))]
    return [*parts[: count - 1], _Several(tuple(parts[count - 1 :]))]


@dataclass(frozen=True, slots=True)
class _Several:
    """Splits that one partition reads."""

    parts: tuple[Any, ...]


def split_frame(frame: DataFrame, reader: SplitReader) -> DataFrame:
    """The rows of any epoch that has as many splits as a frame has partitions."""
    return frame.mapInArrow(metered(_reading(reader)), reader.columns)


def staged_splits(
    frame: DataFrame,
    reader: SplitReader,
    forms: Sequence[str],
    stages: Mapping[int, ArrowStage],
    names: Sequence[str] = (),
) -> DataFrame:
    """A frame that reads the splits of any epoch, lets all rows run down stages, and writes what comes out.

    The given one has a partition for each split.
    """
    read = _reading(reader)

    def outputs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in read(batches):
            rows = batch.drop_columns(INGEST).to_struct_array()
            columns = {**{f"o{number}": rows for number in stages}, INGEST: batch.column(INGEST)}
            yield pa.RecordBatch.from_pydict({OUTPUTS: pa.StructArray.from_arrays(columns.values(), columns.keys())})

    return staging_frame(frame, forms, stages, outputs, names)


def frame_for_splits(spark: SparkSession, count: int, places: Places = ()) -> DataFrame:
    """A frame with so many partitions, or one for each of some places."""
    return internals(spark).placed_rows(places) if places else spark.range(0, count, 1, count)


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
        part = parts[context.partitionId()]
        for each in part.parts if isinstance(part, _Several) else () if part is None else (part,):
            yield from reader.read(each)

    return read
