"""The private parts of Spark 4.3, through Py4J."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import RDD, TaskContext
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from headgate.runtime.engine.masters import is_local
from headgate.runtime.spark_internals.protocol import BatchProgress, ExecutorInfo, JobInfo, Places
from headgate.tasks.sql_text import SQL_NAMES

__all__ = ["Spark43"]

DRIVER = "driver"
PLACED = StructType().add("one", "integer")
STORE_DELAY_S = 2.0
"""How late Spark's status store may be about tasks that have ended."""

T = TypeVar("T")


class Spark43:
    """The internals of a session of Spark 4.3 (:class:`~headgate.runtime.spark_internals.protocol.SparkInternals`)."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._context = spark.sparkContext
        self._jvm: Any = self._context._jvm
        self._java: Any = self._context._jsc.sc()
        self._store: Any = self._java.statusStore()
        self._local = is_local(str(self._context.master))

    def register_functions(self) -> None:
        session: Any = self._spark._jsparkSession
        registry = session.sessionState().functionRegistry()
        build = self._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase.build
        for name, expression in SQL_NAMES.items():
            described = build(name, self._jvm.scala.Option.empty(), self._class_tag(expression))
            registry.createOrReplaceTempFunction(name, described._2(), "built-in")

    def unregister_functions(self, names: Iterable[str]) -> None:
        session: Any = self._spark._jsparkSession
        registry = session.sessionState().functionRegistry()
        unwanted = set(names)
        for identifier in list(_items(registry.listFunction())):
            if identifier.funcName() in unwanted:
                registry.dropFunction(identifier)

    def parsed_query(self, query: str) -> Any:
        session: Any = self._spark._jsparkSession
        return json.loads(session.sessionState().sqlParser().parsePlan(query).toJSON())

    def functions(self) -> frozenset[str]:
        session: Any = self._spark._jsparkSession
        listed = session.sessionState().functionRegistry().listFunction()
        return frozenset(identifier.funcName() for identifier in _items(listed))

    def _class_tag(self, name: str) -> Any:
        return self._jvm.scala.reflect.ClassTag.apply(self._jvm.java.lang.Class.forName(name))

    def scheduler_pool(self, name: str, minimum: int = 1, weight: int = 1) -> None:
        root = self._java.taskScheduler().rootPool()
        if str(root.schedulingMode()) != "FAIR" or root.getSchedulableByName(name) is not None:
            return
        scheduler = self._jvm.org.apache.spark.scheduler
        root.addSchedulable(scheduler.Pool(name, scheduler.SchedulingMode.FIFO(), minimum, weight))

    def check_streaming(self, frame: DataFrame) -> None:
        checker = self._jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        append = self._jvm.org.apache.spark.sql.streaming.OutputMode.Append()
        java: Any = frame._jdf
        checker.checkForStreaming(java.queryExecution().analyzed(), append)

    def progress(self, query: StreamingQuery, after_batch: int) -> list[BatchProgress]:
        # PySpark's own recentProgress parses all of them from JSON.
        java: Any = query._jsq
        recent = java.recentProgress()
        batches: list[BatchProgress] = []
        for at in range(len(recent) - 1, -1, -1):
            number, spent = recent[at].batchId(), recent[at].durationMs()
            if number <= after_batch:
                break
            planning_ms = sum(spent.get(part) or 0 for part in ("getBatch", "queryPlanning"))
            commit_ms = sum(spent.get(part) or 0 for part in ("walCommit", "commitOffsets"))
            batches.append(BatchProgress(number, planning_ms / 1e3, commit_ms / 1e3))
        return batches[::-1]

    def jobs(self, tag: str, patience_s: float = 1.0) -> list[JobInfo]:
        until = time.monotonic() + patience_s
        jobs = []
        for number in self._java.statusTracker().getJobIdsForTag(tag):
            while (job := self._job(number)) is None and time.monotonic() < until:
                time.sleep(0.005)
            if job is not None:
                jobs.append(job)
        return jobs

    def _job(self, number: int) -> JobInfo | None:
        """A job of the status store; ``None`` if it is not finished, not stored yet, or no longer stored."""
        try:
            job = self._store.job(number)
            if job.completionTime().isEmpty():
                return None
            ids = job.stageIds()
            stages = [self._store.lastStageAttempt(ids.apply(at)) for at in range(ids.size())]
        except Py4JJavaError:
            return None
        ran = [stage for stage in stages if stage.firstTaskLaunchedTime().isDefined()]
        return JobInfo(
            _seconds(job.submissionTime()),
            _seconds(job.completionTime()),
            sum(_seconds(stage.firstTaskLaunchedTime()) - _seconds(stage.submissionTime()) for stage in ran),
            sum(stage.executorRunTime() for stage in ran) / 1e3,
            sum(stage.executorCpuTime() for stage in ran) / 1e9,
            max((stage.peakExecutionMemory() for stage in ran), default=0),
            max(ran, key=lambda stage: stage.executorRunTime()).numTasks() if ran else 1,
        )

    def is_stopped(self) -> bool:
        return bool(self._java.isStopped())

    def jvm_process(self) -> Any:
        return getattr(self._context._gateway, "proc", None)

    # executors

    def executors(self) -> tuple[ExecutorInfo, ...]:
        if self._local:
            # In lists Spark puts the application's age in the place of the driver's task time.
            return (_executor(self._store.executorSummary(DRIVER)),)
        kept = [made for made in map(_executor, _items(self._store.executorList(True))) if made.id != DRIVER]
        return tuple(sorted(kept, key=lambda executor: (len(executor.id), executor.id)))

    def running_s(self, now: float) -> dict[str, float]:
        seconds: dict[str, float] = {}
        for stage in _items(self._store.activeStages()):
            if stage.numActiveTasks() == 0:
                continue
            for task in _items(self._store.taskList(stage.stageId(), stage.attemptId(), stage.numTasks())):
                if task.status() == "RUNNING":
                    elapsed = max(0.0, now - task.launchTime().getTime() / 1000)
                    seconds[task.executorId()] = seconds.get(task.executorId(), 0.0) + elapsed
        return seconds

    def run_on_executors(self, work: Callable[[], T], executors: Sequence[ExecutorInfo]) -> dict[str, T]:
        def do(items: Iterable[Any]) -> Iterator[Any]:
            list(items)
            context = TaskContext.get()
            assert context is not None
            yield context.stageId(), context.taskAttemptId(), work()

        placed: RDD[Any] = RDD(self._placed(executors), self._context, CPickleSerializer())
        done = placed.mapPartitions(do).collect()
        if self._local:
            return {DRIVER: done[-1][2]}
        places = self._places_of({stage for stage, _, _ in done}, {task for _, task, _ in done})
        return {places[task]: result for _, task, result in done if task in places}

    def _placed(self, executors: Sequence[ExecutorInfo]) -> Any:
        """A Java RDD with one item for each executor, which prefers to be processed there."""
        item = bytearray(CPickleSerializer().dumps(None))  # type: ignore[no-untyped-call]
        to_seq = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq
        items = [self._jvm.scala.Tuple2(item, to_seq([f"executor_{each.host}_{each.id}"])) for each in executors]
        return self._java.makeRDD(to_seq(items), self._class_tag("[B")).toJavaRDD()

    def placed_rows(self, places: Places) -> DataFrame:
        to_seq = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq
        values = self._context._gateway.new_array(self._jvm.java.lang.Object, 1)  # type: ignore[union-attr]
        values[0] = 1
        row = self._jvm.org.apache.spark.sql.RowFactory.create(values)
        where = [[f"executor_{each.host}_{each.id}" for each in executors] for executors in places]
        items = [self._jvm.scala.Tuple2(row, to_seq(locations)) for locations in where]
        rows = self._java.makeRDD(to_seq(items), self._class_tag("org.apache.spark.sql.Row")).toJavaRDD()
        session: Any = self._spark._jsparkSession
        return DataFrame(session.createDataFrame(rows, session.parseDataType(PLACED.json())), self._spark)

    def locality_wait(self, seconds: float) -> None:
        # What SparkContext.getConf gives is a copy; schedulers read the original whenever they get tasks.
        self._java.conf().set("spark.locality.wait", f"{round(seconds * 1000)}ms")

    def _places_of(self, stages: set[int], tasks: set[int]) -> dict[int, str]:
        """On which executor tasks have run: only the status store knows, after a moment."""
        until = time.monotonic() + STORE_DELAY_S
        while True:
            places = {}
            for stage in stages:
                for task in _items(self._store.taskList(stage, 0, 1_000_000)):
                    places[task.taskId()] = task.executorId()
            if tasks <= places.keys() or time.monotonic() > until:
                return places
            time.sleep(0.02)

    def request_executors(self, count: int) -> None:
        nowhere: dict[str, int] = {}
        to_map = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap
        self._java.requestTotalExecutors(count, 0, to_map(nowhere))

    def decommission(self, ids: Sequence[str]) -> None:
        backend = self._java.schedulerBackend()
        reason = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "fewer executors are needed", self._jvm.scala.Option.empty()
        )
        for executor in ids:
            backend.decommissionExecutor(executor, reason, False, False)


def _executor(summary: Any) -> ExecutorInfo:
    host = summary.hostPort().rpartition(":")[0] or summary.hostPort()
    seconds = summary.totalDuration() / 1000
    return ExecutorInfo(summary.id(), host, summary.totalCores(), summary.activeTasks(), seconds)


def _items(sequence: Any) -> Iterator[Any]:
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _seconds(time_option: Any) -> float:
    return float(time_option.get().getTime()) / 1e3
