"""The task type ``read_kafka``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from headgate.errors import InputError, nearest
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, SOURCE, Inputs, SchemaText, SourceStart, TaskType
from headgate.model.touching import Touch
from headgate.model.work import Past, RowLimit, SourceContext, SourceWork
from headgate.tasks.file_paths import absolute
from headgate.tasks.kafka.connection import KafkaConfig, topics_there

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BEGUN", "PATTERN", "READ_KAFKA", "ReadKafka", "ValueFormat"]

ValueFormat = Literal["bytes", "text", "json", "csv", "avro", "protobuf"]
RecordField = Literal["key", "topic", "partition", "offset", "timestamp", "headers"]

FIELD_TYPES: Mapping[str, str] = {
    "key": "string",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": "array<struct<key:string,value:binary>>",
}

BEGUN = "begun.json"
"""The file of its folder in which a source notes where it began."""

PATTERN = "^"
"""How a topic begins that is a regular expression."""


class ReadKafka(KafkaConfig):
    """Read the records of Kafka topics, in the order of each partition; of transactions, those that were committed.

    The format ``bytes`` gives key and value as they are. The others give the value's columns, and of the record itself
    what ``fields`` names. What cannot be read, and records that the broker had removed before they were read, are
    treated as ``on_error`` says.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "servers": "localhost:9092",
        "topics": ["city"],
        "format": "json",
        "columns": "sensor string, v double",
    }

    topics: tuple[str, ...] = Field(
        min_length=1, description="The topics to read; one that begins with ^ is a regular expression of names."
    )
    format: ValueFormat = Field("bytes", description="How values are written; json means one object.")
    columns: SchemaText | None = Field(
        None, description="The columns of the value, such as 'id string, v double'; bytes and text have one, value."
    )
    schema_file: Annotated[str | None, Touch.READ] = Field(
        None, description="The schema of avro (.avsc) or protobuf (.proto) values, which are nothing but the value."
    )
    message: str | None = Field(
        None, min_length=1, description="The message of a .proto file that values are; its first if left out."
    )
    registry: Annotated[str | None, Touch.READ] = Field(
        None,
        pattern=r"^https?://",
        description="URL of a schema registry: avro and protobuf values begin with the number of their schema.",
    )
    fields: tuple[RecordField, ...] | None = Field(
        None, description="What of the record becomes a column too; for bytes all but headers if left out."
    )
    start: SourceStart | None = Field(
        None,
        description="Where to begin, if not where the dataflow's start says: earliest, now, a time (of the records) or "
        "an age.",
    )
    rows_per_batch: PositiveInt | None = Field(None, description="At most so many records in one micro-batch.")

    @field_validator("topics")
    @classmethod
    def _patterns_can_be_read(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            try:
                re.compile(topic if topic.startswith(PATTERN) else "")
            except re.error as error:
                raise ValueError(f"topic '{topic}' is no regular expression: {error}") from None
        return topics

    @model_validator(mode="after")
    def _columns_are_known(self) -> ReadKafka:
        plain = self.format in ("bytes", "text")
        if self.columns is None and not plain:
            raise ValueError(f"format {self.format} needs columns, such as columns: 'id string, v double'")
        if self.columns is not None and plain:
            raise ValueError(f"format {self.format} has the single column value; leave columns out")
        names = [column.name for column in self.value_columns().columns]
        twice = [name for name in self.record_fields() if name in names]
        if twice:
            raise ValueError(f"fields names '{twice[0]}', which is a column of the value already")
        return self

    @model_validator(mode="after")
    def _schema_is_known(self) -> ReadKafka:
        has_schema = self.format in ("avro", "protobuf")
        if has_schema and (self.schema_file is None) == (self.registry is None):
            raise ValueError(f"format {self.format} needs either schema_file or registry")
        if not has_schema and (self.schema_file is not None or self.registry is not None):
            raise ValueError(f"format {self.format} has no schema; leave schema_file and registry out")
        if self.message is not None and (self.format != "protobuf" or self.schema_file is None):
            raise ValueError("message names a message of the schema_file of format protobuf; leave it out")
        return self

    def value_columns(self) -> Schema:
        """The columns of a value."""
        if self.columns is not None:
            return Schema.parse(self.columns)
        return Schema((Column("value", "binary" if self.format == "bytes" else "string"),))

    def record_fields(self) -> tuple[str, ...]:
        """What of a record becomes a column too."""
        if self.fields is not None:
            return self.fields
        return ("key", "topic", "partition", "offset", "timestamp") if self.format == "bytes" else ()

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        types = {**FIELD_TYPES, **({"key": "binary"} if self.format == "bytes" else {})}
        of_record = tuple(Column(name, types[name]) for name in self.record_fields())
        of_value = self.value_columns().columns
        first = [column for column in of_record if column.name == "key" and self.format == "bytes"]
        rest = [column for column in of_record if column not in first]
        return {OUT: Schema((*first, *of_value, *rest))}


def _read(options: ReadKafka, context: SourceContext) -> DataFrame:
    if not (context.folder / BEGUN).exists():  # once it has begun, it waits for brokers that are away
        from headgate.tasks.kafka.schemas import check_schema

        _check_topics(options)
        check_schema(options)
    # Registered with every session of the engine: it is no matter of this room how records are planned.
    reader: Any = context.spark.readStream.format("headgate_kafka").options(**_reader_options(options, context))
    return reader.load()  # type: ignore[no-any-return]


def _check_topics(options: ReadKafka) -> None:
    named = [topic for topic in options.topics if not topic.startswith(PATTERN)]
    there = topics_there(options, named)
    for topic in named:
        if topic not in there:
            near = nearest(topic, there)
            hint = f"; did you mean '{near}'?" if near else ""
            message = f"Kafka at {options.servers} has no topic '{topic}'{hint}; make it, or correct the name"
            raise InputError("SOURCE_NOT_THERE", message)


def _reader_options(options: ReadKafka, context: SourceContext) -> dict[str, str]:
    """The options of the data source that reads records."""
    from headgate.tasks.frames import declared_schema

    # Spark's process, and its workers, may have been started in another folder than this one.
    file = None if options.schema_file is None else absolute(options.schema_file)
    return {
        "task": options.model_copy(update={"schema_file": file}).model_dump_json(),
        "columns": declared_schema(options).json(),
        "folder": str(context.folder),
        "on_error": context.on_error.value,
        "parts": str(context.spark.sparkContext.defaultParallelism),
    }


def _own_time() -> str:
    return "__ingest"


READ_KAFKA = TaskType(
    "read_kafka",
    ReadKafka,
    SOURCE,
    work=SourceWork(
        _read,
        _own_time,
        RowLimit.HOT,
        by_row=True,
        past=Past.OFFSET,
        splits=_reader_options,
        reader="headgate_kafka",
    ),
)
