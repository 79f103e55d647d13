"""Reading a source task as a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import InputError
from headgate.model.work import RowLimit, SourceContext, SourceWork
from headgate.runtime.compile.plan import CompiledTask
from headgate.runtime.epochs.splits import SourceReader
from headgate.runtime.exchange.files import INGEST
from headgate.runtime.file_source.source import FileReader
from headgate.runtime.io.secret_options import used_options
from headgate.runtime.kafka_source.source import KafkaReader
from headgate.runtime.table_source.source import TableReader
from headgate.store.secrets import SECRETS
from headgate.tasks.frames import declared_schema
from headgate.tasks.sql_text import quoted

__all__ = ["hot_limit", "read_source", "split_reader"]

READERS: Mapping[str, Callable[[Mapping[str, str]], SourceReader]] = {
    "headgate_files": FileReader,
    "headgate_kafka": KafkaReader,
    "headgate_tables": TableReader,
}
"""What reads the parts of a micro-batch in workers, by the name of the data source."""


def read_source(spark: SparkSession, task: CompiledTask, limit: int | None, folder: Path) -> DataFrame:
    """The stream of a source task; raises :class:`InputError` when it cannot be read.

    ``limit`` is the most that it hands over per trigger; ``folder`` is where a source keeps what it needs.
    """
    assert isinstance(task.work, SourceWork)
    try:
        with used_options(task) as options:
            stream: DataFrame = task.work.read(options, SourceContext(spark, limit, folder, task.on_error))
        # Spark adds columns for folders such as day=monday; those that were asked for are the stream.
        names = [quoted(field.name) for field in declared_schema(task.options).fields]
        ingested = [] if task.work.ingested is None else [f"{task.work.ingested()} as {INGEST}"]
        return stream.selectExpr(*names, *ingested)
    except InputError as error:
        raise InputError(error.condition, f"task '{task.name}': {error.message}") from None
    except PySparkException as error:
        reason = SECRETS.hidden(" ".join(str(error).split()))[:300]
        raise InputError("SOURCE_UNREADABLE", f"task '{task.name}' cannot read its source: {reason}") from None


def split_reader(spark: SparkSession, task: CompiledTask, folder: Path) -> SourceReader | None:
    """What reads the parts of a micro-batch of a source task in workers; ``None`` if only Spark can."""
    assert isinstance(task.work, SourceWork)
    if task.work.splits is None:
        return None
    with used_options(task) as options:
        return READERS[task.work.reader](task.work.splits(options, SourceContext(spark, None, folder, task.on_error)))


def hot_limit(task: CompiledTask) -> bool:
    """Whether a source heeds a new limit at its next micro-batch; raises where it can have none."""
    assert isinstance(task.work, SourceWork)
    if task.work.limit is RowLimit.NEVER:
        message = "a source of this type cannot be limited: it hands over all that arrived since the last micro-batch"
        raise InputError("CANNOT_LIMIT", message)
    return task.work.limit is RowLimit.HOT
