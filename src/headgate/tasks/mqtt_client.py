"""MQTT by Eclipse Paho: publishing a micro-batch's rows, and a Spark source that subscribes."""

from __future__ import annotations

import atexit
import json
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import orjson
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from headgate.errors import InputError, missing_package
from headgate.tasks.mqtt import Broker, ReadMqtt, WriteMqtt

__all__ = ["MqttSource", "check_mqtt", "publish"]

PATIENCE_S = 20.0
"""How long a broker may take to answer."""


def check_mqtt(options: Broker) -> None:
    """Raise :class:`InputError` where MQTT cannot be spoken, or the broker does not answer."""
    if find_spec("paho") is None:
        raise missing_package("NO_MQTT", "MQTT", "paho-mqtt", "mqtt")
    try:
        _client(options).disconnect()
    except OSError as error:
        told = (
            f"the MQTT broker at {options.host}:{options.port} does not answer ({error}): start it, or mend the address"
        )
        raise InputError("NO_BROKER", told) from None


def _client(options: Broker) -> Any:
    """A client that has connected; its network loop runs in a thread of its own."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)
    connected = threading.Event()
    client.on_connect = lambda *_: connected.set()
    client.connect_timeout = PATIENCE_S
    client.connect(options.host, options.port)
    client.loop_start()
    if not connected.wait(PATIENCE_S):
        client.loop_stop()
        raise ConnectionError("it did not let us in")
    return client


_CLIENTS: dict[tuple[str, int], Any] = {}


def publish(options: WriteMqtt, rows: Sequence[dict[str, Any]]) -> None:
    """Publish rows, and wait until the broker has them all."""
    place = (options.host, options.port)
    if place not in _CLIENTS:
        _CLIENTS[place] = _client(options)
        atexit.register(_CLIENTS[place].loop_stop)
    client = _CLIENTS[place]
    sent = [client.publish(options.topic, _payload(options, row), options.qos, options.retain) for row in rows]
    for message in sent:
        message.wait_for_publish(PATIENCE_S)
        if not message.is_published():
            raise ConnectionError(f"the MQTT broker at {options.host}:{options.port} takes no messages")


def _payload(options: WriteMqtt, row: dict[str, Any]) -> Any:
    if options.column is None:
        return orjson.dumps(row, default=str)
    value = row[options.column]
    return value if value is None or isinstance(value, (str, bytes, int, float)) else orjson.dumps(value, default=str)


class _Some(InputPartition):
    """Messages of a micro-batch."""

    def __init__(self, messages: Sequence[tuple[str, str]]) -> None:
        self.messages = messages


def _subscribe(client: Any, topics: Sequence[tuple[str, int]]) -> None:
    """Subscribe, now and whenever the connection was lost, and wait until the broker has noted it."""
    noted = threading.Event()
    client.on_subscribe = lambda *_: noted.set()
    client.on_connect = lambda *_: client.subscribe(list(topics))
    client.subscribe(list(topics))
    if not noted.wait(PATIENCE_S):
        raise ConnectionError("the MQTT broker does not let us subscribe")


class MqttReader(DataSourceStreamReader):
    """Keeps what comes until Spark has taken it. An offset is a number of messages."""

    def __init__(self, task: str) -> None:
        self.options = ReadMqtt.model_validate_json(task)
        self._come: list[tuple[str, str]] = []
        self._taken: int | None = None
        """How many messages, of this and of former runs, are no longer in the list."""

    def initialOffset(self) -> dict[str, int]:
        return {"messages": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        del limit
        if self._taken is None:
            self._taken = start["messages"]
            client = _client(self.options)
            client.on_message = lambda _, __, message: self._come.append(
                (message.topic, message.payload.decode("utf-8", errors="replace"))
            )
            _subscribe(client, [(topic, self.options.qos) for topic in self.options.topics])
        return {"messages": max(start["messages"], self._taken + len(self._come))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        # After a restart the messages of a micro-batch that was not finished are gone.
        taken = end["messages"] if self._taken is None else self._taken
        first, last = max(start["messages"] - taken, 0), max(end["messages"] - taken, 0)
        return [_Some(self._come[first:last])]

    def commit(self, end: dict[str, int]) -> None:
        if self._taken is not None and end["messages"] > self._taken:
            del self._come[: end["messages"] - self._taken]
            self._taken = end["messages"]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str]]:
        assert isinstance(partition, _Some)
        yield from partition.messages

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "_come": [], "_taken": None}


class MqttSource(DataSource):
    """The data source ``headgate_mqtt``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_mqtt"

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["columns"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return MqttReader(self.options["task"])
