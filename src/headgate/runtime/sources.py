"""How each source task type is read as a stream."""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import InputError
from headgate.model.task_type import TaskConfig
from headgate.runtime.plan import RunningTask
from headgate.runtime.replay import replayed
from headgate.tasks.sources import Rate, ReadFiles, ReadKafka, ReadSocket, Replay

__all__ = ["read_source"]


def read_source(spark: SparkSession, task: RunningTask, limit: int | None) -> DataFrame:
    """The stream of a source task; raises :class:`InputError` when it cannot be read."""
    try:
        return _READERS[type(task.options)](spark, task.options, limit)
    except PySparkException as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError("SOURCE_UNREADABLE", f"task '{task.name}' cannot read its source: {reason}") from None


def _files(spark: SparkSession, options: ReadFiles, limit: int | None) -> DataFrame:
    if not glob.glob(options.path):  # noqa: PTH207  (patterns may be absolute)
        told = f"no files at '{options.path}': make the folder, or mend the path"
        raise InputError("SOURCE_NOT_THERE", told)
    reader = spark.readStream.format(options.format)
    if options.columns is not None:
        reader = reader.schema(options.columns)
    if options.format == "csv":
        reader = reader.option("header", options.header)
    files = limit if limit is not None else options.files_per_batch
    if files is not None:
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.load(options.path)


def _rate(spark: SparkSession, options: Rate, limit: int | None) -> DataFrame:
    del limit
    return spark.readStream.format("rate").option("rowsPerSecond", options.rows_per_s).load()


def _socket(spark: SparkSession, options: ReadSocket, limit: int | None) -> DataFrame:
    del limit
    return spark.readStream.format("socket").option("host", options.host).option("port", options.port).load()


def _kafka(spark: SparkSession, options: ReadKafka, limit: int | None) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", options.servers)
    reader = reader.option("subscribe", ",".join(options.topics)).option("startingOffsets", options.start)
    rows = limit if limit is not None else options.rows_per_batch
    if rows is not None:
        reader = reader.option("maxOffsetsPerTrigger", rows)
    return reader.load().drop("timestampType")


def _replay(spark: SparkSession, options: Replay, limit: int | None) -> DataFrame:
    if not Path(options.path).exists():
        raise InputError("SOURCE_NOT_THERE", f"no file at '{options.path}': mend the path")
    return replayed(spark, options, limit)


_READERS: dict[type[TaskConfig], Callable[..., DataFrame]] = {
    ReadFiles: _files,
    Rate: _rate,
    ReadSocket: _socket,
    ReadKafka: _kafka,
    Replay: _replay,
}
