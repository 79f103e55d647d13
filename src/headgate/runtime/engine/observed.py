"""What of an engine is observed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from headgate.runtime.engine.plans import Plans
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.io.outbox import SinkOutbox
from headgate.runtime.observing.observer import ObservedEngine, Observer
from headgate.runtime.observing.profiler import Profiler
from headgate.runtime.observing.records import Records
from headgate.runtime.observing.workers import Workers
from headgate.runtime.spark_internals.internals import internals

__all__ = ["observer_of"]


def observer_of(
    spark: SparkSession,
    records: Records,
    plans: Plans,
    running: Mapping[str, RunningFragment],
    outbox: SinkOutbox,
    profiler: Profiler,
    workers: Workers,
) -> Observer:
    """One who observes from now on."""
    observed = ObservedEngine(
        internals(spark),
        records,
        plans,
        lambda: list(running.values()),
        lambda: list(outbox.refusals),
        profiler.profiles,
        partial(workers.observe, spent={}),
        profiler.kept,
    )
    return Observer(observed)
