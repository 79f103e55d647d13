"""Tags that identify the Spark jobs of an epoch or a trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

__all__ = ["tagged"]


@contextmanager
def tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Put a tag on the jobs that this thread starts."""
    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)
