"""The data source ``headgate_kafka``: reads records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import StructType

from headgate.runtime.io.position_source import Batches, BrokenRecords, Offset, PositionReader, PositionSource
from headgate.runtime.kafka_source.driver import KafkaBatches, between
from headgate.runtime.kafka_source.ranges import Range, parts_of
from headgate.runtime.kafka_source.records import LostError, records_of
from headgate.tasks.kafka.read import ReadKafka
from headgate.tasks.kafka.schemas import value_reader
from headgate.tasks.kafka.values import decoder
from headgate.tasks.row_errors import CARRIED

__all__ = ["KafkaReader", "KafkaSource"]


class KafkaReader(PositionReader):
    """Reads the records of a task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.options = ReadKafka.model_validate_json(options["task"])

    def _opened(self) -> Batches:
        return KafkaBatches(self.options, self.folder)

    def _between(self, start: Offset, end: Offset, most: int, least_rows: int) -> Sequence[tuple[Range, ...]]:
        return parts_of(between(start, end), most, least_rows)

    def _rows(self, part: tuple[Range, ...], broken: BrokenRecords) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in self.options.value_columns().columns]
        of_values = pa.schema([self.arrow.field(name) for name in names])
        decode = decoder(self.options.format, of_values, value_reader(self.options))
        for some in records_of(self.options, part):
            if isinstance(some, LostError):
                where = f"{some}: Kafka has removed {some.lost.size} records before they were read"
                broken.note(str(some), where, "keep them longer (retention.ms of the topic)")
                continue
            decoded = decode([message.value() for message in some])
            for place, reason in decoded.broken:
                record = (some[place].value() or b"").decode(errors="replace")
                at = f"{some[place].topic()}[{some[place].partition()}] offset {some[place].offset()}"
                broken.note(record, f"{at}: {reason}", "have the producer mended")
            left_out = {place for place, _ in decoded.broken}
            kept = [m for place, m in enumerate(some) if place not in left_out] if left_out else some
            yield self._batch(decoded.rows, kept)

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


class KafkaSource(PositionSource):
    """The data source ``headgate_kafka``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_kafka"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return KafkaReader(self.options)
