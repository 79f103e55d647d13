"""Spark's executors: which there are, what they have done, work on each of them, and how many there should be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark import RDD, SparkContext, TaskContext
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.engine.masters import is_local

__all__ = ["Executor", "Executors"]

DRIVER = "driver"
SETTLED_S = 2.0
"""How long what Spark tells of tasks that have ended may be on its way."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Executor:
    """An executor, as Spark's status store has it."""

    id: str
    host: str
    cores: int
    active_tasks: int
    task_s: float
    """Seconds in tasks that have ended, since it came."""


class Executors:
    """The executors of a Spark application."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.context: SparkContext = spark.sparkContext
        self.local = is_local(str(self.context.master))
        self.target: int | None = None
        """How many there should be; none as long as all that can be had are taken."""

        self._jvm: Any = self.context._jvm
        self._java: Any = self.context._jsc.sc()
        self._store: Any = self._java.statusStore()

    def list(self) -> tuple[Executor, ...]:
        """Those that take work, the oldest first. A local Spark has one."""
        if self.local:
            # As it was recorded: in lists Spark puts the application's age in the place of the driver's task time.
            return (_executor(self._store.executorSummary(DRIVER)),)
        kept = [made for made in map(_executor, _items(self._store.executorList(True))) if made.id != DRIVER]
        return tuple(sorted(kept, key=lambda executor: (len(executor.id), executor.id)))

    def running_s(self, now: float) -> dict[str, float]:
        """Seconds since the tasks began that are under way now, by executor."""
        found: dict[str, float] = {}
        for stage in _items(self._store.activeStages()):
            count = stage.numActiveTasks()
            if count == 0:
                continue
            for task in _items(self._store.taskList(stage.stageId(), stage.attemptId(), stage.numTasks())):
                if task.status() == "RUNNING":
                    elapsed = max(0.0, now - task.launchTime().getTime() / 1000)
                    found[task.executorId()] = found.get(task.executorId(), 0.0) + elapsed
        return found

    # work on each

    def on_each(self, work: Callable[[], T]) -> dict[str, T]:
        """Do something in the Python of every executor, if possible; what came out, by executor.

        A task is offered to each executor first. One that is busy for longer than Spark's locality wait may go without:
        then another one has done it twice, and the latter outcome is taken.
        """
        wanted = self.list()

        def do(items: Iterable[Any]) -> Iterator[Any]:
            list(items)
            context = TaskContext.get()
            assert context is not None
            yield context.stageId(), context.taskAttemptId(), work()

        placed: RDD[Any] = RDD(self._placed(wanted), self.context, CPickleSerializer())
        done = placed.mapPartitions(do).collect()
        if self.local:
            return {DRIVER: done[-1][2]}
        places = self._places_of({stage for stage, _, _ in done}, {task for _, task, _ in done})
        return {places[task]: outcome for _, task, outcome in done if task in places}

    def _placed(self, wanted: Sequence[Executor]) -> Any:
        """An RDD of Java's with an item for each executor, which would like to be treated there."""
        item = bytearray(CPickleSerializer().dumps(None))  # type: ignore[no-untyped-call]
        to_seq = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq
        items = [self._jvm.scala.Tuple2(item, to_seq([f"executor_{found.host}_{found.id}"])) for found in wanted]
        tag = self._jvm.scala.reflect.ClassTag.apply(self._jvm.java.lang.Class.forName("[B"))
        return self._java.makeRDD(to_seq(items), tag).toJavaRDD()

    def _places_of(self, stages: set[int], tasks: set[int]) -> dict[int, str]:
        """Where tasks have run: they cannot tell, Spark's status store does, a moment later."""
        until = time.monotonic() + SETTLED_S
        while True:
            found = {}
            for stage in stages:
                for task in _items(self._store.taskList(stage, 0, 1_000_000)):
                    found[task.taskId()] = task.executorId()
            if tasks <= found.keys() or time.monotonic() > until:
                return found
            time.sleep(0.02)

    # how many

    def request(self, count: int) -> None:
        """Have so many executors: more are asked for, those that are too many end their tasks and leave."""
        if self.local:
            told = "a local Spark has one executor, in its own process; give a cluster with --master"
            raise InputError("CANNOT_SCALE", told)
        if count < 1:
            raise InputError("CANNOT_SCALE", f"{count} executors: at least 1 is needed")
        self._aim(count)
        there = self.list()
        # The idlest first; among equals the youngest, which keeps the least.
        surplus = sorted(there, key=lambda executor: (executor.active_tasks, -_age(executor)))[: len(there) - count]
        if len(there) > count:
            self.decommission([executor.id for executor in surplus])

    def one_more(self) -> None:
        """Let a machine that is about to come have an executor too."""
        if self.target is not None:
            self._aim(self.target + 1)

    def one_less(self) -> None:
        """Ask for no executor in the place of one that is about to leave."""
        if self.target is not None and self.target > 1:
            self._aim(self.target - 1)

    def _aim(self, count: int) -> None:
        self.target = count
        nowhere: Mapping[str, int] = {}
        to_map = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap
        self._java.requestTotalExecutors(count, 0, to_map(nowhere))

    def decommission(self, ids: Sequence[str]) -> None:
        """Let executors end their tasks, hand on what they keep, and leave."""
        backend = self._java.schedulerBackend()
        reason = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "fewer executors are wanted", self._jvm.scala.Option.empty()
        )
        for executor in ids:
            backend.decommissionExecutor(executor, reason, False, False)


def _executor(found: Any) -> Executor:
    host = found.hostPort().rpartition(":")[0] or found.hostPort()
    return Executor(found.id(), host, found.totalCores(), found.activeTasks(), found.totalDuration() / 1000)


def _age(executor: Executor) -> int:
    return int(executor.id) if executor.id.isdigit() else 0


def _items(sequence: Any) -> Iterator[Any]:
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()
