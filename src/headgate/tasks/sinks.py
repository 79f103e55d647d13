"""Task types that hand rows over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, PositiveInt

from headgate.model.schema import Schema
from headgate.model.task_type import SINK, ColumnName, Inputs, TaskConfig, TaskType
from headgate.tasks.user_defined import ImportPath

__all__ = ["TYPES", "WriteCall", "WriteConsole", "WriteFiles", "WriteKafka", "WriteMemory", "WriteTable"]


class SinkConfig(TaskConfig):
    """A task that hands rows over has no outputs."""

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {}


class WriteFiles(SinkConfig):
    """Write rows as files, each micro-batch once."""

    example: ClassVar[Mapping[str, Any]] = {"path": "out/alarms", "format": "json"}

    path: str = Field(min_length=1, description="Folder for the files.")
    format: Literal["json", "csv", "parquet", "text"] = Field(
        "json", description="How to write; json means one object a line, text the only column as it is, a line a row."
    )


class WriteConsole(SinkConfig):
    """Print rows, the first few of each micro-batch."""

    rows: PositiveInt = Field(20, description="How many rows of a micro-batch to print.")


class WriteMemory(SinkConfig):
    """Keep rows in memory, for tests and notebooks."""

    example: ClassVar[Mapping[str, Any]] = {"name": "alarms"}

    name: str = Field(min_length=1, max_length=128, description="Under which name the rows are found.")


class WriteCall(SinkConfig):
    """Hand the rows of each micro-batch to a Python function, once."""

    example: ClassVar[Mapping[str, Any]] = {"function": "alarms.page_somebody"}

    function: ImportPath = Field(description="Import path of a function that takes (rows, epoch).")


class WriteKafka(SinkConfig):
    """Write rows to a Kafka topic, as JSON unless there is a value column."""

    example: ClassVar[Mapping[str, Any]] = {"servers": "localhost:9092", "topic": "alarms", "key": "sensor"}

    servers: str = Field(min_length=1, description="Bootstrap servers, comma separated.")
    topic: str = Field(min_length=1, description="The topic.")
    key: ColumnName | None = Field(None, description="The column that becomes the record's key.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        if self.key is not None:
            inputs.check_columns("key", [self.key])
        return {}


class WriteTable(SinkConfig):
    """Append rows to a SQL table, each micro-batch in one transaction."""

    example: ClassVar[Mapping[str, Any]] = {"url": "sqlite:///city.db", "table": "alarms"}

    url: str = Field(min_length=1, description="SQLAlchemy URL of the database; SQLite and PostgreSQL are tested.")
    table: str = Field(min_length=1, max_length=128, description="The table; it is made if it is not there.")


TYPES = (
    TaskType("write_files", WriteFiles, SINK),
    TaskType("write_console", WriteConsole, SINK),
    TaskType("write_memory", WriteMemory, SINK),
    TaskType("write_call", WriteCall, SINK),
    TaskType("write_kafka", WriteKafka, SINK),
    TaskType("write_table", WriteTable, SINK),
)
