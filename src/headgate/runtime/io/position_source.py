"""What Spark asks of a source whose offsets hold a position: on the driver, and in workers.

An offset has ``rows`` and ``batch`` as every source of ours has them, and the position under ``at``: all that a batch
needs. What a position is, which parts lie between two of them and what their rows are, each source knows by itself.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import LongType, StructType

from headgate.model.on_error import OnError
from headgate.runtime.io.broken_records import LONGEST, write_broken
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.runtime.spark_internals.worker import settle
from headgate.tasks.row_errors import CARRIED, UnreadableSourceError

__all__ = ["PART_ROWS", "Batches", "BrokenRecords", "Offset", "PositionReader", "PositionSource"]

Offset = dict[str, Any]

PART_ROWS = 20_000
"""A part of fewer rows costs more than it gains."""


class Batches(Protocol):
    """The driver's part of a source."""

    def first(self) -> Offset:
        """Where the first batch begins; the same whenever it is asked for."""

    def next(self, start: Offset) -> Offset:
        """What comes after the batch that Spark has committed last; the same offset if there is nothing."""


@dataclass(slots=True)
class BrokenRecords:
    """What is none of the stream's rows: it fails the task, or is left out."""

    on_error: OnError
    records: list[dict[str, str]] = field(default_factory=list)

    def note(self, record: str, error: str, remedy: str) -> None:
        if self.on_error is OnError.FAIL:
            message = f"{error}; {remedy}, or give the task on_error: dead_letter or skip"
            raise UnreadableSourceError(message)
        self.records.append({"record": record[:LONGEST], "error": error})


@dataclass(frozen=True)
class _Part(InputPartition):
    """Some of a batch; what it is, only its source knows."""

    batch: int
    number: int
    rows: Any


class PositionReader(DataSourceStreamReader):
    """Reads the source of a task; ``options`` are those of the data source."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.folder = Path(options["folder"])
        self.most = int(options["parts"])
        self.on_error = OnError(options["on_error"])
        columns = StructType.fromJson(json.loads(options["columns"]))
        self.columns = _with_time(columns)
        self.arrow, self.target = arrow_schema(columns), arrow_schema(self.columns)
        self._batches: Batches | None = None

    @abstractmethod
    def _opened(self) -> Batches:
        """The driver's part."""

    @abstractmethod
    def _between(self, start: Offset, end: Offset, most: int, least_rows: int) -> Sequence[Any]:
        """What is between two offsets, in so many parts at most; one has what comes before the next.

        A part has ``least_rows`` or more, where that can be known before they are read.
        """

    @abstractmethod
    def _rows(self, part: Any, broken: BrokenRecords) -> Iterator[pa.RecordBatch]:
        """The rows of a part, in a worker, with when they came."""

    # on the driver

    @property
    def batches(self) -> Batches:
        if self._batches is None:
            self._batches = self._opened()
        return self._batches

    def initialOffset(self) -> Offset:
        return self.batches.first()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        del limit
        return self.batches.next(start)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self._parts(start, end, self.most, PART_ROWS)

    def divided(self, start: Offset, end: Offset, count: int) -> Sequence[InputPartition]:
        """The same in so many parts, however few rows there are, for machines that are named."""
        return self._parts(start, end, count, 1)

    def _parts(self, start: Offset, end: Offset, most: int, least_rows: int) -> Sequence[InputPartition]:
        begun = start if "at" in start else self.batches.first()
        parts = self._between(begun, end, most, least_rows)
        return [_Part(end["batch"], number, part) for number, part in enumerate(parts)]

    def commit(self, end: Offset) -> None:
        """Nothing to do: the next call of :meth:`latestOffset` says the same."""

    # in workers

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Part)
        broken = BrokenRecords(self.on_error)
        yield from self._rows(partition.rows, broken)
        if broken.records:
            write_broken(self.folder, partition.batch, partition.number, broken.records)
        settle()

    def __getstate__(self) -> dict[str, Any]:
        """What workers get: they connect by themselves."""
        return {**self.__dict__, "_batches": None}


class PositionSource(DataSource):
    """A data source of such a reader."""

    def schema(self) -> StructType:
        return _with_time(StructType.fromJson(json.loads(self.options["columns"])))


def _with_time(columns: StructType) -> StructType:
    return StructType([*columns.fields]).add(CARRIED, LongType())
