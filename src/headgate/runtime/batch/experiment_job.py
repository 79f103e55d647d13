"""The cells of an experiment as Spark jobs: waves of cells, each kept as parquet as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import InputError
from headgate.runtime.spark_internals.frames import arrow_schema

__all__ = ["finished_keys", "read_results", "run_waves"]


def finished_keys(spark: SparkSession, folder: Path) -> set[str]:
    """Keys of the cells whose results are there already; none if there is no folder yet."""
    results = _results(spark, folder)
    return set() if results is None else {row["key"] for row in results.select("key").collect()}


def read_results(spark: SparkSession, folder: Path, keys: Collection[str]) -> list[dict[str, Any]]:
    """The results of some cells, without their series."""
    table = _results(spark, folder)
    if table is None:
        return []
    plain = [name for name, kind in table.dtypes if not kind.startswith("array")]
    wanted = set(keys)
    return [row.asDict() for row in table.select(plain).dropDuplicates(["key"]).collect() if row["key"] in wanted]


def _results(spark: SparkSession, folder: Path) -> DataFrame | None:
    return spark.read.parquet(str(folder)) if any(folder.glob("*.parquet")) else None


def run_waves(
    spark: SparkSession,
    cells: Sequence[tuple[str, str]],
    work: Callable[[str], dict[str, Any]],
    columns: str,
    folder: Path,
    progress: Callable[[int, int], None],
    cells_per_core: int = 4,
) -> None:
    """Run (key, text) cells that have no result yet; the results of a wave are durable before the next one begins.

    A wave has a few cells for each core, so that an interruption loses little and no core waits long for the slowest.
    """
    done = finished_keys(spark, folder)
    waiting = [text for key, text in cells if key not in done]
    progress(len(cells) - len(waiting), len(cells))
    cores = max(1, spark.sparkContext.defaultParallelism)
    size = cores * cells_per_core
    schema = spark.createDataFrame([], columns).schema
    for first in range(0, len(waiting), size):
        wave = waiting[first : first + size]
        listed = spark.createDataFrame(list(enumerate(wave)), "place bigint, cell string")
        rows = listed.repartitionByRange(len(wave), "place").select("cell")  # one cell for each of Spark's tasks
        try:
            rows.mapInArrow(_runner(work, arrow_schema(schema)), schema).write.mode("append").parquet(str(folder))
        except PySparkException as error:
            raise InputError("CELL_FAILED", _reason(error)) from None
        progress(len(cells) - len(waiting) + first + len(wave), len(cells))


def _runner(
    work: Callable[[str], dict[str, Any]], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("cell").to_pylist():
                yield pa.RecordBatch.from_pylist([work(text)], schema=schema)

    return run


def _reason(error: PySparkException) -> str:
    """The worker's own sentence, from the end of the traceback that Spark hands on."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if line.startswith(("headgate.errors.", "MemoryError", "ModuleNotFoundError"))]
    sentence = raised[-1].partition(": ")[2] if raised else lines[0] if lines else type(error).__name__
    return f"a simulation failed: {sentence[:300]}; what was finished before is kept"
