"""How each source task type is read as a stream."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.errors import InputError
from headgate.model.task_type import OUT, Inputs, TaskConfig
from headgate.runtime.compile.plan import CompiledTask
from headgate.runtime.exchange.files import INGEST
from headgate.runtime.io.replay import replayed
from headgate.tasks.frames import parsed_schema
from headgate.tasks.generated import records
from headgate.tasks.generating import Generate
from headgate.tasks.mqtt import ReadMqtt
from headgate.tasks.mqtt_client import MqttSource, check_mqtt
from headgate.tasks.rowwise import quoted
from headgate.tasks.sources import Rate, ReadFiles, ReadKafka, ReadSocket, Replay

__all__ = ["check_kafka", "hot_limit", "read_source", "source_schema"]


def read_source(spark: SparkSession, task: CompiledTask, limit: int | None, folder: Path) -> DataFrame:
    """The stream of a source task; raises :class:`InputError` when it cannot be read.

    ``limit`` is the most that it hands over per trigger; ``folder`` is where a source keeps what it needs.
    """
    try:
        found = _READERS[type(task.options)](spark, task.options, limit, folder)
        # Spark adds columns for folders such as day=monday; those that were asked for are the stream.
        names = [quoted(field.name) for field in source_schema(task.options).fields]
        ingested = _ingested(task.options)
        return found.selectExpr(*names, *([] if ingested is None else [f"{ingested} as {INGEST}"]))
    except InputError as error:
        raise InputError(error.condition, f"task '{task.name}': {error.message}") from None
    except PySparkException as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError("SOURCE_UNREADABLE", f"task '{task.name}' cannot read its source: {reason}") from None


def _ingested(options: TaskConfig) -> str | None:
    """When a row was taken in, in microseconds since 1970, where a source knows that."""
    if isinstance(options, ReadFiles):
        # A file that was there long before waited for nobody until now.
        return f"greatest(unix_micros(_metadata.file_modification_time), {time.time_ns() // 1_000}L)"
    if isinstance(options, (Rate, ReadKafka)):
        return "unix_micros(timestamp)"
    return INGEST if isinstance(options, (Generate, Replay)) else None


def source_schema(options: TaskConfig) -> StructType:
    """The columns of a source, from its options alone."""
    schema = options.outputs(Inputs({}))[OUT]
    assert schema is not None
    return parsed_schema(", ".join(f"{quoted(column.name)} {column.type}" for column in schema.columns))


def hot_limit(options: TaskConfig) -> bool:
    """Whether a source heeds a new limit at its next micro-batch; raises where it can have none."""
    if isinstance(options, (Generate, Rate, ReadMqtt, ReadSocket)):
        told = "Spark gives this kind of source no limit: it hands over all that came since the last micro-batch"
        raise InputError("CANNOT_LIMIT", told)
    return isinstance(options, Replay)


def _files(spark: SparkSession, options: ReadFiles, limit: int | None, folder: Path) -> DataFrame:
    del folder
    if not glob.glob(options.path):  # noqa: PTH207  (patterns may be absolute)
        told = f"no files at '{options.path}': make the folder, or mend the path"
        raise InputError("SOURCE_NOT_THERE", told)
    reader = spark.readStream.format(options.format).schema(source_schema(options))
    if options.format == "csv":
        reader = reader.option("header", options.header)
    files = limit if limit is not None else options.files_per_batch
    if files is not None:
        reader = reader.option("maxFilesPerTrigger", files)
    # Spark's process, and its workers, may have been started in another folder than this one.
    return reader.load(str(Path(options.path).absolute()))


def _rate(spark: SparkSession, options: Rate, limit: int | None, folder: Path) -> DataFrame:
    del limit, folder
    return spark.readStream.format("rate").option("rowsPerSecond", options.rows_per_s).load()


def _socket(spark: SparkSession, options: ReadSocket, limit: int | None, folder: Path) -> DataFrame:
    del limit, folder
    return spark.readStream.format("socket").option("host", options.host).option("port", options.port).load()


def _kafka(spark: SparkSession, options: ReadKafka, limit: int | None, folder: Path) -> DataFrame:
    del folder
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", options.servers)
    reader = reader.option("subscribe", ",".join(options.topics)).option("startingOffsets", options.start)
    rows = limit if limit is not None else options.rows_per_batch
    if rows is not None:
        reader = reader.option("maxOffsetsPerTrigger", rows)
    check_kafka(spark)
    return reader.load()


def check_kafka(spark: SparkSession) -> None:
    """Raise :class:`InputError` when Spark has no connector for Kafka."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "localhost").option("subscribe", "any")
    try:
        reader.load()
    except PySparkException as error:
        if "kafka" in str(error).lower() and "find data source" in str(error).lower():
            raise InputError("NO_KAFKA_CONNECTOR", NO_KAFKA_CONNECTOR) from None
        raise


NO_KAFKA_CONNECTOR = (
    "Kafka needs Spark's connector, which is not there; give Spark its package, for example with "
    "PYSPARK_SUBMIT_ARGS='--packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION pyspark-shell', "
    "VERSION being Spark's"
)


def _replay(spark: SparkSession, options: Replay, limit: int | None, folder: Path) -> DataFrame:
    del limit  # the reader looks into its folder
    if not Path(options.path).is_file():
        raise InputError("SOURCE_NOT_THERE", f"no file at '{options.path}': mend the path")
    here = options.model_copy(update={"path": str(Path(options.path).absolute())})
    return replayed(spark, here, source_schema(options), folder)


def _mqtt(spark: SparkSession, options: ReadMqtt, limit: int | None, folder: Path) -> DataFrame:
    del limit, folder
    check_mqtt(options)
    spark.dataSource.register(MqttSource)
    reader = spark.readStream.format(MqttSource.name()).option("task", options.model_dump_json())
    return reader.option("columns", source_schema(options).json()).load()


def _generate(spark: SparkSession, options: Generate, limit: int | None, folder: Path) -> DataFrame:
    """Spark counts, and records follow from the numbers."""

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = pa.array(records(options, batch.column("value").to_pylist()), pa.binary())
            # Among broken records are some that are no UTF-8, which Arrow would otherwise refuse.
            columns = [batch.column("value"), texts.cast(pa.string(), safe=False), batch.column(INGEST)]
            yield pa.RecordBatch.from_arrays(columns, ["id", "value", INGEST])

    counted = _rate(spark, Rate(rows_per_s=options.rows_per_s), limit, folder)
    counted = counted.selectExpr("value", f"unix_micros(timestamp) as {INGEST}")
    return counted.mapInArrow(made, f"id bigint, value string, {INGEST} bigint")


_READERS: dict[type[TaskConfig], Callable[..., DataFrame]] = {
    Generate: _generate,
    ReadMqtt: _mqtt,
    ReadFiles: _files,
    Rate: _rate,
    ReadSocket: _socket,
    ReadKafka: _kafka,
    Replay: _replay,
}
