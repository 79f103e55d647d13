"""The data source ``headgate_kafka``: what Spark asks of a source of records, on the driver and in workers."""

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
from headgate.runtime.kafka_source.driver import KafkaBatches, Offset, between
from headgate.runtime.kafka_source.ranges import PART_ROWS, Range, parts_of
from headgate.runtime.kafka_source.records import LostError, records_of
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.runtime.spark_internals.worker import settle
from headgate.tasks.kafka.read import ReadKafka
from headgate.tasks.kafka.schemas import value_reader
from headgate.tasks.kafka.values import decoder
from headgate.tasks.row_errors import CARRIED, UnreadableSourceError

__all__ = ["KafkaReader", "KafkaSource"]


@dataclass(frozen=True)
class _Part(InputPartition):
    """Some ranges of offsets."""

    batch: int
    number: int
    spans: tuple[Range, ...]


class KafkaReader(DataSourceStreamReader):
    """Reads the records of a task; ``options`` are those of the data source."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = ReadKafka.model_validate_json(options["task"])
        self.folder = Path(options["folder"])
        self.parts = int(options["parts"])
        self.on_error = OnError(options["on_error"])
        columns = StructType.fromJson(json.loads(options["columns"]))
        self.columns = StructType([*columns.fields]).add(CARRIED, LongType())
        self.arrow = arrow_schema(columns)
        self.target = arrow_schema(self.columns)
        self._batches: KafkaBatches | None = None

    @property
    def batches(self) -> KafkaBatches:
        if self._batches is None:
            self._batches = KafkaBatches(self.options, self.folder)
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
        return self._parts(start, end, self.parts, PART_ROWS)

    def divided(self, start: Offset, end: Offset, count: int) -> Sequence[InputPartition]:
        return self._parts(start, end, count, 1)

    def _parts(self, start: Offset, end: Offset, most: int, least_rows: int) -> Sequence[InputPartition]:
        begun = start if "at" in start else self.batches.first()
        runs = parts_of(between(begun, end), most, least_rows)
        return [_Part(end["batch"], number, run) for number, run in enumerate(runs)]

    def commit(self, end: Offset) -> None:
        """Nothing to do: the next call of :meth:`latestOffset` says the same."""

    # in workers

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Part)
        names = [column.name for column in self.options.value_columns().columns]
        of_values = pa.schema([self.arrow.field(name) for name in names])
        decode = decoder(self.options.format, of_values, value_reader(self.options))
        broken: list[dict[str, str]] = []
        for some in records_of(self.options, partition.spans):
            if isinstance(some, LostError):
                where = f"{some}: Kafka has removed {some.lost.size} records before they were read"
                self._note(broken, str(some), where, "keep them longer (retention.ms of the topic)")
                continue
            decoded = decode([message.value() for message in some])
            for place, reason in decoded.broken:
                record = (some[place].value() or b"").decode(errors="replace")
                at = f"{some[place].topic()}[{some[place].partition()}] offset {some[place].offset()}"
                self._note(broken, record, f"{at}: {reason}", "have the producer mended")
            left_out = {place for place, _ in decoded.broken}
            kept = [m for place, m in enumerate(some) if place not in left_out] if left_out else some
            yield self._batch(decoded.rows, kept)
        if broken:
            write_broken(self.folder, partition.batch, partition.number, broken)
        settle()

    def _batch(self, values: pa.RecordBatch, messages: Sequence[Any]) -> pa.RecordBatch:
        """The rows of some records, with what they have besides their values."""
        columns = dict(zip(values.schema.names, values.columns, strict=True))
        stamps = np.array([message.timestamp()[1] for message in messages], np.int64)
        for name in self.options.record_fields():
            kind = self.target.field(name).type
            if name == "timestamp":
                columns[name] = pa.array(stamps * 1000, pa.int64()).cast(kind)
            else:
                columns[name] = _key(messages, kind) if name == "key" else _FIELDS[name](messages, kind)
        columns[CARRIED] = pa.array(stamps * 1000)
        return pa.RecordBatch.from_arrays([columns[name] for name in self.target.names], schema=self.target)

    def _note(self, broken: list[dict[str, str]], record: str, error: str, remedy: str) -> None:
        if self.on_error is OnError.FAIL:
            also = "or give the task on_error: dead_letter or skip"
            raise UnreadableSourceError(f"{error}; {remedy}, {also}")
        broken.append({"record": record[:LONGEST], "error": error})


def _key(messages: Sequence[Any], kind: pa.DataType) -> pa.Array:
    keys = pa.array([message.key() for message in messages], pa.binary())
    return keys if kind == keys.type else pa.compute.cast(keys, options=_as_text(kind))


def _as_text(kind: pa.DataType) -> pa.compute.CastOptions:
    return pa.compute.CastOptions(kind, allow_invalid_utf8=True)


def _headers(messages: Sequence[Any], kind: pa.DataType) -> pa.Array:
    named = [[{"key": key, "value": value} for key, value in message.headers() or ()] for message in messages]
    return pa.array(named, kind)


_FIELDS: Mapping[str, Callable[[Sequence[Any], pa.DataType], pa.Array]] = {
    "topic": lambda messages, kind: pa.array([message.topic() for message in messages], kind),
    "partition": lambda messages, kind: pa.array([message.partition() for message in messages], kind),
    "offset": lambda messages, kind: pa.array([message.offset() for message in messages], kind),
    "headers": _headers,
}


class KafkaSource(DataSource):
    """The data source ``headgate_kafka``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_kafka"

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["columns"])).add(CARRIED, LongType())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return KafkaReader(self.options)
