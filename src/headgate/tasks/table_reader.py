"""What the types of tasks that read tables have in common: the data source of theirs, and its options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.model.task_type import TaskConfig
from headgate.model.work import SourceContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BEGUN", "own_time", "read_stream", "reader_options"]

BEGUN = "begun.json"
"""The file of its folder in which a source notes where it began."""


def read_stream(kind: str, options: TaskConfig, context: SourceContext, check: Callable[[], None]) -> DataFrame:
    """The rows of a table as a stream.

    ``check`` raises for a table that cannot be read. Once it has begun, a source waits for what is away.
    """
    if not (Path(context.folder) / BEGUN).exists():
        check()
    # Registered with every session of the engine: it is no matter of this room how tables are planned.
    reader: Any = context.spark.readStream.format("headgate_tables").options(**reader_options(kind, options, context))
    return reader.load()  # type: ignore[no-any-return]


def reader_options(kind: str, options: TaskConfig, context: SourceContext) -> dict[str, str]:
    """The options of the data source that reads tables."""
    from headgate.tasks.frames import declared_schema

    return {
        "kind": kind,
        "task": options.model_dump_json(),
        "columns": declared_schema(options).json(),
        "folder": str(context.folder),
        "on_error": context.on_error.value,
        "parts": str(context.spark.sparkContext.defaultParallelism),
    }


def own_time() -> str:
    """When a row came in: its source says so."""
    return "__ingest"
