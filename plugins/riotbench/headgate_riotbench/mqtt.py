"""Task types that talk to an MQTT broker, by Eclipse Paho."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from headgate.errors import InputError, missing_package
from headgate.model.schema import Schema
from headgate.model.task_type import OUT, SINK, SOURCE, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.touching import HostNames
from headgate.model.work import Delivery, RowLimit, SinkContext, SinkWork, SourceContext, SourceWork
from headgate.tasks.heavy import orjson

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TYPES", "Broker", "ReadMqtt", "WriteMqtt", "check_mqtt", "connected_client", "publish"]


PATIENCE_S = 20.0
"""How long a broker may take to answer."""


class Broker(TaskConfig):
    """Where a broker is, and how sure its messages are to arrive."""

    host: HostNames = Field("localhost", min_length=1, description="Where the broker is.")
    port: int = Field(1883, ge=1, le=65_535, description="Its port.")
    qos: Literal[0, 1, 2] = Field(1, description="Quality of service: at most, at least, or exactly once on the way.")


def check_mqtt(options: Broker) -> None:
    """Raise :class:`InputError` where MQTT cannot be spoken, or the broker does not answer."""
    if find_spec("paho") is None:
        raise missing_package("NO_MQTT", "MQTT", "paho-mqtt", "mqtt")
    try:
        connected_client(options).disconnect()
    except OSError as error:
        message = f"the MQTT broker at {options.host}:{options.port} does not answer ({error})"
        raise InputError("NO_BROKER", f"{message}; start it, or correct the address") from None


def connected_client(options: Broker) -> Any:
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


class ReadMqtt(Broker):
    """Subscribe to topics of an MQTT broker: topic and payload of each message, the payload as text.

    A broker hands a message over once: what has come and is not processed when the engine ends is lost.
    """

    example: ClassVar[Mapping[str, Any]] = {"host": "localhost", "topics": ["city/+/models"]}

    topics: tuple[str, ...] = Field(min_length=1, description="The topics; + and # stand for levels of them.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: Schema.parse("topic string, value string")}


def _read(options: ReadMqtt, context: SourceContext) -> DataFrame:
    from headgate.tasks.frames import declared_schema
    from headgate_riotbench.mqtt_reader import MqttSource

    check_mqtt(options)
    context.spark.dataSource.register(MqttSource)
    reader: Any = context.spark.readStream.format(MqttSource.name()).option("task", options.model_dump_json())
    return reader.option("columns", declared_schema(options).json()).load()  # type: ignore[no-any-return]


class WriteMqtt(Broker):
    """Publish each row to a topic of an MQTT broker.

    After a failure the messages of a micro-batch may come again.
    """

    example: ClassVar[Mapping[str, Any]] = {"host": "localhost", "topic": "city/readings", "column": "value"}

    topic: str = Field(min_length=1, max_length=1_024, pattern=r"^[^+#]*$", description="The topic.")
    column: ColumnName | None = Field(None, description="The column that is the payload; the row as JSON if left out.")
    retain: bool = Field(False, description="Whether the broker keeps the last message for those who come later.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [] if self.column is None else [self.column])
        return {}


_CLIENTS: dict[tuple[str, int], Any] = {}


def publish(options: WriteMqtt, rows: Sequence[dict[str, Any]]) -> None:
    """Publish rows, and wait until the broker has them all."""
    place = (options.host, options.port)
    if place not in _CLIENTS:
        _CLIENTS[place] = connected_client(options)
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


def _write(options: WriteMqtt, delivery: Delivery, context: SinkContext) -> None:
    del context
    publish(options, delivery.table().to_pylist())


def _check(options: WriteMqtt, spark: Any, columns: Sequence[Sequence[str]]) -> None:
    del spark, columns
    check_mqtt(options)


TYPES = (
    TaskType("read_mqtt", ReadMqtt, SOURCE, package="headgate-riotbench", work=SourceWork(_read, limit=RowLimit.NEVER)),
    TaskType("write_mqtt", WriteMqtt, SINK, package="headgate-riotbench", work=SinkWork(_write, _check)),
)
