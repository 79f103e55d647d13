"""The Spark source that subscribes to an MQTT broker."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from headgate_riotbench.mqtt import PATIENCE_S, ReadMqtt, connected_client

__all__ = ["MqttReader", "MqttSource"]


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
            client = connected_client(self.options)
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
