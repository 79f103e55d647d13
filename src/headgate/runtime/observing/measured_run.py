"""One measured run on Spark: CPU time in the JVM and in Python workers, run time and memory."""

from __future__ import annotations

import resource
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.observing.job_tags import tagged
from headgate.runtime.spark_internals.internals import internals
from headgate.tasks.batch import METER, Run

__all__ = ["Trial", "Trials", "drain"]


@dataclass(frozen=True, slots=True)
class Trial:
    """The cost of a run."""

    cpu_s: float
    run_s: float
    memory_bytes: int


class _Most(AccumulatorParam[float]):
    def zero(self, value: float) -> float:
        return value

    def addInPlace(self, value1: float, value2: float) -> float:
        return max(value1, value2)


class Trials:
    """Measures runs, one at a time."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._cpu = spark.sparkContext.accumulator(0.0)
        self._memory = spark.sparkContext.accumulator(0.0, _Most())

    @contextmanager
    def metering(self) -> Iterator[None]:
        """Measure Python functions that are put into frames here."""
        cpu, memory = self._cpu, self._memory

        def meter(run: Run) -> Run:
            def measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                yield from run(batches)
                cpu.add(time.process_time() - began)
                memory.add(1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))

            return measured

        token = METER.set(meter)
        try:
            yield
        finally:
            METER.reset(token)

    def run(self, work: Callable[[], Any]) -> Trial:
        """Run something that starts jobs, and measure them."""
        cpu_before: float = self._cpu.value
        self._memory.value = 0.0
        tag = f"trial-{uuid.uuid4().hex}"
        with tagged(self._spark, tag):
            work()
        jobs = internals(self._spark).jobs(tag)
        in_python = self._cpu.value - cpu_before
        memory = max((job.memory_bytes for job in jobs), default=0) + int(self._memory.value)
        return Trial(sum(job.cpu_s for job in jobs) + in_python, sum(job.run_s for job in jobs), memory)


def drain(frame: DataFrame) -> None:
    """Compute all rows of a frame and drop them."""
    frame.write.format("noop").mode("append").save()
