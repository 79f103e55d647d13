"""Spark's pools: fair shares between fragments.

Every fragment has a pool. A pool that has fewer tasks running than its minimum goes before those that have it, so the
next free core goes to a fragment that has none, however many tasks a heavy one has waiting. Work beside the epochs has
no minimum: it takes what is left.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

__all__ = ["make_pool"]


def make_pool(context: SparkContext, name: str, minimum: int = 1, weight: int = 1) -> None:
    """Make a pool, unless there is one of that name or Spark does not schedule by pools."""
    jvm: Any = context._jvm
    spark: Any = context._jsc.sc()
    root = spark.taskScheduler().rootPool()
    if str(root.schedulingMode()) != "FAIR" or root.getSchedulableByName(name) is not None:
        return
    first_in_first_out = jvm.org.apache.spark.scheduler.SchedulingMode.FIFO()
    root.addSchedulable(jvm.org.apache.spark.scheduler.Pool(name, first_in_first_out, minimum, weight))
