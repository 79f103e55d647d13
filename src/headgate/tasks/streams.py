"""The task type ``read_stream``: what another dataflow publishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from headgate.model.schema import Schema
from headgate.model.task_type import OUT, SOURCE, Inputs, SchemaText, TaskConfig, TaskType

__all__ = ["READ_STREAM", "ReadStream"]


class ReadStream(TaskConfig):
    """Read a stream that another dataflow publishes.

    The tasks that make it become tasks of this dataflow, which it shares with the other one. So it goes on when that is
    withdrawn, and reads the stream as it was made when it was submitted.
    """

    example: ClassVar[Mapping[str, Any]] = {"stream": "alarms"}

    stream: str = Field(min_length=1, max_length=200, description="The name under which it is published.")
    columns: SchemaText | None = Field(
        None, description="Its columns, so that what reads them can be checked before it is submitted."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: None if self.columns is None else Schema.parse(self.columns)}


READ_STREAM = TaskType("read_stream", ReadStream, SOURCE)
