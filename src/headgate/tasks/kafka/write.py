"""The task type ``write_kafka``.

Exactly once: the records of a delivery are one transaction, and so is a marker of which deliveries have been written,
kept by Kafka as an offset of the group that has the transaction's id. After a failure the next producer of that id ends
what the last one left open, and reads the marker: a delivery that comes again is left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from headgate.errors import HeadgateError, InputError
from headgate.model.schema import Schema
from headgate.model.task_type import SINK, ColumnName, Inputs, TaskType
from headgate.model.work import Delivery, SinkContext, SinkWork
from headgate.tasks.delivery_marker import Marker
from headgate.tasks.kafka.connection import ANSWER_S, KafkaConfig, kafka, settings_of, topics_there, unreachable
from headgate.tasks.kafka.record_columns import record_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WRITE_KAFKA", "WriteKafka"]

Headers = list[tuple[str, bytes | None]]

ROWS = 10_000
"""Rows that become records together."""


class WriteKafka(KafkaConfig):
    """Write rows to a Kafka topic, as JSON objects or from a column, each micro-batch in one transaction.

    Readers that read what was committed (``isolation.level=read_committed``) see every row once. Rows with the same key
    stay in order.
    """

    example: ClassVar[Mapping[str, Any]] = {"servers": "localhost:9092", "topic": "alarms", "key": "sensor"}

    topic: str = Field(min_length=1, max_length=249, description="The topic; it must be there.")
    key: ColumnName | None = Field(None, description="The column that becomes the record's key.")
    value: ColumnName | None = Field(
        None, description="The column that becomes the record's value; all columns as a JSON object if left out."
    )
    headers: tuple[ColumnName, ...] = Field((), description="Columns that become headers, by their names.")
    delivery: Literal["exactly_once", "at_least_once"] = Field(
        "exactly_once", description="Whether rows are written in transactions, or may be repeated after a failure."
    )
    transactional_id: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Name of its transactions; if left out, headgate- and the task's signature. Two engines that write "
        "the same to the same topic need different ones.",
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        named = {"key": [self.key], "value": [self.value], "headers": self.headers}
        for option, names in named.items():
            inputs.check_columns(option, [name for name in names if name is not None])
        return {}


class _Producer:
    """A connection that writes; one that has failed is not used again."""

    def __init__(self, options: WriteKafka, name: str | None) -> None:
        self.options, self.name = options, name
        self.failure: object = None
        self._library = kafka()
        exactly = {} if name is None else {"transactional.id": name, "transaction.timeout.ms": 60_000}
        settings = {
            **settings_of(options),
            **exactly,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # as Java's clients choose partitions
            "compression.type": "lz4",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "message.timeout.ms": 30_000,
            "error_cb": self._noted,
        }
        self.client = self._library.Producer(settings)
        self.marker = Marker()
        if name is not None:
            self.client.init_transactions(ANSWER_S)
            self.marker = self._stored_marker(name)

    def _noted(self, error: Any) -> None:
        if error.code() in (self._library.KafkaError._ALL_BROKERS_DOWN, self._library.KafkaError._AUTHENTICATION):
            self.failure = error

    def _stored_marker(self, name: str) -> Marker:
        settings = {**settings_of(self.options), "group.id": name, "isolation.level": "read_committed"}
        self._reader = self._library.Consumer(settings)
        (place,) = self._reader.committed([self._library.TopicPartition(self.options.topic, 0)], ANSWER_S)
        return Marker.parse(place.metadata or "")

    def write(self, rows: Any, epoch: int, origin: str) -> None:
        """Write the rows of a delivery, and that it is written."""
        if self.name is None:
            self._put(rows)
            return
        marker = self.marker.with_delivery(origin, epoch)
        self.client.begin_transaction()
        self._put(rows)
        place = self._library.TopicPartition(self.options.topic, 0, epoch + 1, str(marker))
        self.client.send_offsets_to_transaction([place], self._reader.consumer_group_metadata(), ANSWER_S)
        self.client.commit_transaction(ANSWER_S)
        self.marker = marker

    def _put(self, rows: Any) -> None:
        """Hand rows to the brokers and wait until they have them."""
        for batch in rows.to_batches(ROWS):
            keys, values, headers = record_columns(batch, self.options.key, self.options.value, self.options.headers)
            for at, (key, value) in enumerate(zip(keys, values, strict=True)):
                self._produce(key, value, headers[at] if headers else None)
            self.client.poll(0)
        until = time.monotonic() + 30.0
        while len(self.client):
            self.client.poll(0.02)
            self._check(until)

    def _produce(self, key: bytes | None, value: bytes | None, headers: Headers | None) -> None:
        # A transaction fails if a record of it does; without one, every record has to be asked for.
        more: dict[str, Any] = {} if self.name is not None else {"on_delivery": self._delivered}
        if headers is not None:
            more["headers"] = headers
        until = time.monotonic() + 30.0
        while True:
            try:
                self.client.produce(self.options.topic, value, key, **more)
                return
            except BufferError:
                self.client.poll(0.05)
                self._check(until)

    def _delivered(self, error: Any, message: Any) -> None:
        del message
        self.failure = error or self.failure

    def _check(self, until: float) -> None:
        if self.failure is not None:
            raise self._library.KafkaException(self.failure)
        if time.monotonic() > until:
            raise HeadgateError("KAFKA_UNREACHABLE", unreachable(self.options.servers, "no confirmation for 30 s"))


_PRODUCERS: dict[tuple[str, str | None], _Producer] = {}
"""By options and transactional id: they last for as long as the engine."""


def _to_kafka(options: WriteKafka, delivery: Delivery, context: SinkContext) -> None:
    name = None
    if options.delivery == "exactly_once":
        name = options.transactional_id or f"headgate-{context.signature}"
    who = (options.model_dump_json(), name)
    try:
        producer = _PRODUCERS.get(who) or _Producer(options, name)
        _PRODUCERS[who] = producer
        if not producer.marker.has(delivery.origin, delivery.epoch):
            producer.failure = None
            producer.write(delivery.table(), delivery.epoch, delivery.origin)
    except kafka().KafkaException as error:
        _PRODUCERS.pop(who, None)  # the next one ends what this one leaves open
        raise HeadgateError("KAFKA_UNREACHABLE", _reason(options, error.args[0])) from None
    except BaseException:
        _PRODUCERS.pop(who, None)
        raise


def _reason(options: WriteKafka, error: Any) -> str:
    if error.code() == kafka().KafkaError._FENCED:
        return "another engine writes with the same transactional_id; give this one a different transactional_id"
    return unreachable(options.servers, error)


def _check(options: WriteKafka, spark: SparkSession, columns: Sequence[Sequence[str]]) -> None:
    del spark, columns
    if options.topic not in topics_there(options, [options.topic]):
        message = f"Kafka at {options.servers} has no topic '{options.topic}'; make it, or correct the name"
        raise InputError("SINK_UNUSABLE", message)


WRITE_KAFKA = TaskType("write_kafka", WriteKafka, SINK, work=SinkWork(_to_kafka, _check))
