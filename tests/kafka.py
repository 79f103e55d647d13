"""Topics of the real broker, records put into them by a client, and what kcat, which is not ours, reads from them."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.services import the_broker

Record = tuple[str | None, str | bytes | None]
"""Key and value."""


def new_topic(partitions: int = 2, **settings: str) -> str:
    """A new topic; skips the test where there is no broker."""
    name = f"t{uuid.uuid4().hex[:8]}"
    client, admin = _admin()
    client.create_topics([admin.NewTopic(name, partitions, 1, config=settings)])[name].result(60)
    return name


def add_partitions(topic: str, count: int) -> None:
    """Let a topic have more partitions."""
    client, admin = _admin()
    client.create_partitions([admin.NewPartitions(topic, count)])[topic].result(60)


def delete_before(topic: str, offset: int) -> None:
    """Remove the first records of a topic's first partition, as retention does."""
    from confluent_kafka import TopicPartition

    client, _ = _admin()
    place = TopicPartition(topic, 0, offset)
    client.delete_records([place])[place].result(60)


def _admin() -> tuple[Any, Any]:
    """A client for topics, and the module with what it is given."""
    import confluent_kafka.admin

    admin: Any = confluent_kafka.admin
    return admin.AdminClient({"bootstrap.servers": the_broker().servers}), admin


def produce(topic: str, records: Iterable[Record], partition: int = -1, **more: Any) -> None:
    """Put records into a topic and wait until they are there."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": the_broker().servers, "partitioner": "murmur2_random"}
    producer = Producer({**settings, "linger.ms": 1, "queue.buffering.max.messages": 1_000_000})
    for key, value in records:
        producer.produce(topic, value, key, partition, **more)
    assert producer.flush(120) == 0


def produce_rows(topic: str, rows: Iterable[Mapping[str, Any]], key: str = "k", **more: Any) -> None:
    """Put rows as JSON objects into a topic, each under the value of a column."""
    produce(topic, ((str(row[key]), json.dumps(row)) for row in rows), **more)


def committed(topic: str) -> list[dict[str, Any]]:
    """The committed records of a topic, as kcat reads them: key, partition, offset, headers and payload."""
    kcat = shutil.which("kcat") or shutil.which("kafkacat")
    if kcat is None:
        pytest.skip("no kcat: a client that is not ours has to check what was written")
    command = [kcat, "-C", "-e", "-q", "-J", "-b", the_broker().servers, "-t", topic, "-o", "beginning"]
    ran = subprocess.run(
        [*command, "-X", "isolation.level=read_committed"], capture_output=True, text=True, timeout=120, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def committed_rows(topic: str) -> list[dict[str, Any]]:
    """The committed values of a topic, as JSON objects, partition by partition."""
    records = sorted(committed(topic), key=lambda record: (record["partition"], record["offset"]))
    return [json.loads(record["payload"]) for record in records]
