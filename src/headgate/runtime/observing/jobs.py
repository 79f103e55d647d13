"""What Spark's status store tells of the jobs of an epoch or a trial, found by their tag."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

__all__ = ["Job", "finished_jobs", "tagged"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job of Spark that has ended."""

    submitted: float
    completed: float
    """Both in seconds since 1970."""

    scheduling_s: float
    """From the hand-over of its stages to their first tasks at work."""

    run_s: float
    """Its tasks' time at work, waiting included."""

    cpu_s: float
    """Its tasks' CPU time in Spark's own process; what Python workers use is not in it."""

    memory_bytes: int
    """The most memory that its tasks took for sorting, joining and aggregating."""


@contextmanager
def tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Jobs that this thread starts can be found by the tag."""
    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)


def finished_jobs(spark: SparkSession, tag: str, patience_s: float = 1.0) -> list[Job]:
    """The jobs of a tag, once the store has heard that they are done; those it has forgotten are left out."""
    context: Any = spark.sparkContext._jsc.sc()
    store = context.statusStore()
    until = time.monotonic() + patience_s
    found = []
    for number in context.statusTracker().getJobIdsForTag(tag):
        # The store hears of things a moment after they have happened.
        while (job := _job(store, number)) is None and time.monotonic() < until:
            time.sleep(0.005)
        if job is not None:
            found.append(job)
    return found


def _job(store: Any, number: int) -> Job | None:
    try:
        told = store.job(number)
        if told.completionTime().isEmpty():
            return None
        ids = told.stageIds()
        stages = [store.lastStageAttempt(ids.apply(at)) for at in range(ids.size())]
    except Py4JJavaError:  # not there yet, or there no more
        return None
    ran = [stage for stage in stages if stage.firstTaskLaunchedTime().isDefined()]
    return Job(
        _seconds(told.submissionTime()),
        _seconds(told.completionTime()),
        sum(_seconds(stage.firstTaskLaunchedTime()) - _seconds(stage.submissionTime()) for stage in ran),
        sum(stage.executorRunTime() for stage in ran) / 1e3,
        sum(stage.executorCpuTime() for stage in ran) / 1e9,
        max((stage.peakExecutionMemory() for stage in ran), default=0),
    )


def _seconds(time_option: Any) -> float:
    return float(time_option.get().getTime()) / 1e3
