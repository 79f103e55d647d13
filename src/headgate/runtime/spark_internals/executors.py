"""Spark's executors: which there are, work on each of them, and how many there should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.engine.masters import is_local
from headgate.runtime.spark_internals.internals import internals
from headgate.runtime.spark_internals.protocol import ExecutorInfo, SparkInternals

__all__ = ["Executors"]

T = TypeVar("T")


class Executors:
    """The executors of a Spark application."""

    def __init__(self, spark: SparkSession, inside: SparkInternals | None = None) -> None:
        self.context: SparkContext = spark.sparkContext
        self.local = is_local(str(self.context.master))
        self.target: int | None = None
        """How many there should be; ``None`` means all that the master can give."""

        self._inside = internals(spark) if inside is None else inside

    def list(self) -> Sequence[ExecutorInfo]:
        """Those that take tasks, oldest first. A local Spark has one."""
        return self._inside.executors()

    def running_s(self, now: float) -> dict[str, float]:
        """Seconds since the start of the tasks that run now, by executor."""
        return self._inside.running_s(now)

    def on_each(self, work: Callable[[], T]) -> dict[str, T]:
        """Run a function in the Python of every executor, if possible; results by executor.

        A task is offered to each executor first. If one is busy for longer than Spark's locality wait, another one
        runs the function twice, and its second result counts.
        """
        return self._inside.run_on_executors(work, self.list())

    def request(self, count: int) -> None:
        """Set the number of executors: more are requested, surplus ones finish their tasks and leave."""
        if self.local:
            message = "a local Spark has one executor, in its own process; give a cluster with --master"
            raise InputError("CANNOT_SCALE", message)
        if count < 1:
            raise InputError("CANNOT_SCALE", f"{count} executors: at least 1 is needed")
        self._set_target(count)
        present = self.list()
        # The idlest first; among equals the youngest, which has the least in memory.
        surplus = sorted(present, key=lambda each: (each.active_tasks, -_age(each)))[: len(present) - count]
        if len(present) > count:
            self._inside.decommission([executor.id for executor in surplus])

    def one_more(self) -> None:
        """Ask for an executor on a machine that is about to join."""
        if self.target is not None:
            self._set_target(self.target + 1)

    def one_less(self) -> None:
        """Do not ask for a replacement of an executor that is about to leave."""
        if self.target is not None and self.target > 1:
            self._set_target(self.target - 1)

    def _set_target(self, count: int) -> None:
        self.target = count
        self._inside.request_executors(count)


def _age(executor: ExecutorInfo) -> int:
    return int(executor.id) if executor.id.isdigit() else 0
