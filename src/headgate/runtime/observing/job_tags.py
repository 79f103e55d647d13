"""What the Spark jobs of an epoch or a trial carry: tags that identify them, and properties that workers read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

__all__ = ["job_property", "tagged"]


@contextmanager
def tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Put a tag on the jobs that this thread starts."""
    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)


@contextmanager
def job_property(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Give the jobs that this thread starts a property."""
    context = spark.sparkContext
    context.setLocalProperty(name, value)
    try:
        yield
    finally:
        context.setLocalProperty(name, None)  # type: ignore[arg-type]
