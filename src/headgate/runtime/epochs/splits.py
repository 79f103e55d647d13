"""Splits: the parts of an epoch's input that workers read by themselves, one for each partition of its job.

A frame that reads splits does not name them. Workers find those of the running epoch in its folder, so the frame, once
planned, serves every epoch.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.runtime.epochs.staging import EPOCH
from headgate.tasks.batch import metered

__all__ = ["SplitReader", "Splits", "split_frame"]

FILE = "splits"


class SplitReader(Protocol):
    """Reads one split, in a worker."""

    @property
    def columns(self) -> StructType: ...

    def read(self, split: Any) -> Iterator[pa.RecordBatch]: ...


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

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for _ in batches:
            pass
        context = TaskContext.get()
        assert context is not None
        folder, _ = json.loads(context.getLocalProperty(EPOCH) or "null")
        parts = pickle.loads((Path(folder) / FILE).read_bytes())
        yield from reader.read(parts[context.partitionId()])

    return spark.range(0, count, 1, count).mapInArrow(metered(read), reader.columns)
