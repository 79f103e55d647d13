"""Task types that talk to an MQTT broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from headgate.model.schema import Schema
from headgate.model.task_type import OUT, SINK, SOURCE, ColumnName, Inputs, TaskConfig, TaskType

__all__ = ["TYPES", "Broker", "ReadMqtt", "WriteMqtt"]


class Broker(TaskConfig):
    """Where a broker is, and how sure its messages are to arrive."""

    host: str = Field("localhost", min_length=1, description="Where the broker is.")
    port: int = Field(1883, ge=1, le=65_535, description="Its port.")
    qos: Literal[0, 1, 2] = Field(1, description="Quality of service: at most, at least, or exactly once on the way.")


class ReadMqtt(Broker):
    """Subscribe to topics of an MQTT broker: topic and payload of each message, the payload as text.

    A broker hands a message over once: what has come and is not processed when the engine ends is lost.
    """

    example: ClassVar[Mapping[str, Any]] = {"host": "localhost", "topics": ["city/+/models"]}

    topics: tuple[str, ...] = Field(min_length=1, description="The topics; + and # stand for levels of them.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: Schema.parse("topic string, value string")}


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


SOURCES = (TaskType("read_mqtt", ReadMqtt, SOURCE),)
SINKS = (TaskType("write_mqtt", WriteMqtt, SINK),)
TYPES = (*SOURCES, *SINKS)
