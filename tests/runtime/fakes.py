"""Spark as epochs see it, in memory: rows are lists, tasks are functions, and jobs run at once in this thread."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headgate.model.task_type import Role
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask
from headgate.runtime.epochs.commit import LETTERS, SINK, TOPIC, StagedEpoch, Target
from headgate.runtime.epochs.fused_jobs import Items, Part, Watching
from headgate.runtime.epochs.splits import Splits
from headgate.runtime.epochs.staging import StagedFile
from headgate.runtime.isolation.blame import feeds_of_items
from headgate.runtime.isolation.quarantine import behind
from headgate.runtime.spark_internals.protocol import BatchProgress, ExecutorInfo, JobInfo, Places
from headgate.store.entries import OutputKind
from headgate.tasks.row_errors import TaskRaised

T = TypeVar("T")
Row = dict[str, Any]
Function = Callable[[Row], Row | None]


class FakeRows:
    """As much of a DataFrame as epochs use themselves."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)
        self.is_cached = False
        self.persisted = 0

    def persist(self) -> FakeRows:
        self.persisted += not self.is_cached
        self.is_cached = True
        return self

    def unpersist(self) -> None:
        self.is_cached = False

    def where(self, text: str) -> FakeRows:
        match = re.fullmatch(r"(\w+) = (\d+)", text)
        assert match is not None, text
        return FakeRows([row for row in self.rows if row[match[1]] == int(match[2])])

    def isEmpty(self) -> bool:
        return not self.rows

    @property
    def frame(self) -> DataFrame:
        return cast(DataFrame, self)


@dataclass
class FakeJobs:
    """Runs the tasks of a fragment over lists of rows, each by the function of its id.

    A task that raises fails the whole job, as on Spark, unless a guard is up. ``names_culprits`` chooses between the
    failures of Python functions, which name the task, and those of SQL, which do not.
    """

    fragment_id: str
    functions: Mapping[str, Function]
    names_culprits: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    jobs: int = 0
    drained: int = 0

    def cancel(self, tag: str) -> None:
        del tag
        self.cancelled.set()

    def some_rows(self, part: Part, task: CompiledTask, items: Items, most: int) -> list[str]:
        del part, task, items, most
        return []

    def stage(
        self,
        parts: Sequence[Part],
        resting: Items,
        guarded: Items,
        folder: Path,
        ingested_us: int,
        watching: Watching,
        splits: Splits | None = None,
    ) -> StagedEpoch | None:
        targets: list[Target] = []
        files: list[StagedFile] = []
        ran: set[str] = set()
        with watching:
            for plan, rows in parts:
                fragment = plan.fragments[self.fragment_id]
                left_out = behind(resting, feeds_of_items(plan, fragment))
                runs = {*fragment.tasks, *(topic.id for topic in fragment.writes)} - left_out
                ran |= runs | {*fragment.roots}
                for (kind, name), made in self._run(plan, cast(FakeRows, rows).rows, runs, guarded).items():
                    if made:
                        path = _written(folder / f"{len(targets)}.arrow", made)
                        times = np.full(1, ingested_us, np.int64).tobytes()
                        files.append(StagedFile(len(targets), path, len(made), times))
                    targets.append(Target(OutputKind(kind), name, plan.number))
        if not targets:
            return None
        return StagedEpoch(files, targets, Counter(), frozenset(ran), lambda _: Counter())

    def attempt(self, part: Part, items: Items, guarded: Items, watching: Watching) -> None:
        plan, rows = part
        with watching:
            self._run(plan, cast(FakeRows, rows).rows, items, guarded)

    def _run(
        self, plan: CompiledPlan, rows: Sequence[Row], items: Items, guarded: Items
    ) -> dict[tuple[str, str], list[Row]]:
        self.jobs += 1
        self.cancelled.clear()
        fragment = plan.fragments[self.fragment_id]
        made: dict[str, list[Row]] = {fragment.roots[0]: list(rows)}
        outputs: dict[tuple[str, str], list[Row]] = {}
        for signature in fragment.tasks:
            if signature not in items:
                continue
            task = plan.tasks[signature]
            entering = [row for feed in task.feeds for row in made.get(feed.source, ())]
            if task.role is Role.SINK:
                outputs[SINK, signature] = entering
                continue
            letters: list[Row] = []
            made[signature] = list(self._through(task, entering, letters if signature in guarded else None))
            if letters:
                outputs[LETTERS, signature] = letters
        for topic in fragment.writes:
            if topic.id in items:
                outputs[TOPIC, topic.id] = [row for feed in topic.feeds for row in made.get(feed.source, ())]
        return outputs

    def _through(self, task: CompiledTask, rows: Sequence[Row], letters: list[Row] | None) -> Iterator[Row]:
        function: Function = self.functions.get(task_id(task), _same)
        for row in rows:
            try:
                result = function(row)
            except Exception as error:
                if letters is None:
                    raise self._failure(task, error) from None
                letters.append({"record": json.dumps(row), "error": None})
                continue
            if result is not None:
                yield result

    def _failure(self, task: CompiledTask, error: Exception) -> Exception:
        if self.names_culprits:
            return TaskRaised(task.signature, f"{type(error).__name__}: {error}")
        return PySparkException(f"{type(error).__name__}: {error}")

    def hang(self, _row: Row) -> Row | None:
        """A function that runs until its job is cancelled."""
        assert self.cancelled.wait(30), "nobody cancels the job"
        raise RuntimeError("job cancelled")

    def drain(self, rows: DataFrame) -> None:
        self.drained += len(cast(FakeRows, rows).rows)

    def unpacked(self, rows: DataFrame, plan: CompiledPlan) -> DataFrame:
        del plan
        return rows

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        del tag
        yield


def _same(row: Row) -> Row:
    return row


def _written(path: Path, rows: Sequence[Row]) -> str:
    table = pa.Table.from_pylist(list(rows))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return str(path)


def task_id(task: CompiledTask) -> str:
    """A task's id in the dataflow that brought it."""
    return task.name.rpartition(".")[2]


def read(files: Sequence[tuple[str, int]]) -> list[Row]:
    """The rows of staged files."""
    rows: list[Row] = []
    for path, _ in files:
        with pa.OSFile(path) as file:
            rows += pa.ipc.open_file(file).read_all().to_pylist()
    return rows


class FakeBackground:
    """Keeps work until a test runs it."""

    def __init__(self, room: int = 4) -> None:
        self.room = room
        self.work: list[tuple[DataFrame, Callable[[DataFrame], None]]] = []

    def offer(self, rows: DataFrame, work: Callable[[DataFrame], None]) -> bool:
        if len(self.work) >= self.room:
            return False
        self.work.append((rows, work))
        return True

    def run(self) -> None:
        while self.work:
            rows, work = self.work.pop(0)
            work(rows)
            rows.unpersist()


@dataclass
class FakeProfiler:
    """Wants the epochs that a test names."""

    wanted: frozenset[int] = frozenset()
    sampled: list[int] = field(default_factory=list)
    budget: Any = field(default_factory=lambda: SimpleNamespace(work=lambda *_: None))

    def wants(self, epoch: int) -> bool:
        return epoch in self.wanted

    def sample(self, rows: DataFrame, plan: CompiledPlan, fragment: Any) -> None:
        del plan, fragment
        self.sampled.append(len(cast(FakeRows, rows).rows))


@dataclass
class FakeInternals:
    """A Spark application with as many executors as a test gives it."""

    present: list[ExecutorInfo] = field(default_factory=list)
    requested: list[int] = field(default_factory=list)
    batches: Sequence[BatchProgress] = ()
    finished: Mapping[str, Sequence[JobInfo]] = field(default_factory=dict)

    def executors(self) -> Sequence[ExecutorInfo]:
        return tuple(self.present)

    def running_s(self, now: float) -> dict[str, float]:
        del now
        return {}

    def run_on_executors(self, work: Callable[[], T], executors: Sequence[ExecutorInfo]) -> dict[str, T]:
        return {executor.id: work() for executor in executors}

    def placed_rows(self, places: Places) -> Any:
        return places

    def locality_wait(self, seconds: float) -> None:
        pass

    def request_executors(self, count: int) -> None:
        self.requested.append(count)

    def decommission(self, ids: Sequence[str]) -> None:
        self.present = [executor for executor in self.present if executor.id not in ids]

    def progress(self, query: StreamingQuery, after_batch: int) -> Sequence[BatchProgress]:
        del query
        return [batch for batch in self.batches if batch.batch > after_batch]

    def jobs(self, tag: str, patience_s: float = 1.0) -> Sequence[JobInfo]:
        del patience_s
        return self.finished.get(tag, ())

    def is_stopped(self) -> bool:
        return False

    def jvm_process(self) -> Any:
        return None

    def unregister_functions(self, names: Iterable[str]) -> None:
        raise AssertionError

    def functions(self) -> frozenset[str]:
        raise AssertionError

    def parsed_query(self, query: str) -> Any:
        raise AssertionError

    def register_functions(self) -> None: ...

    def scheduler_pool(self, name: str, minimum: int = 1, weight: int = 1) -> None: ...

    def check_streaming(self, frame: DataFrame) -> None: ...


class FakeSpark:
    """As much of a session as a fragment uses that is driven by hand."""

    def __init__(self) -> None:
        self.conf = {"spark.sql.shuffle.partitions": "2"}
        self.tags: list[str] = []
        self.sparkContext = SimpleNamespace(
            addJobTag=self.tags.append, removeJobTag=self.tags.remove, cancelJobsWithTag=lambda _tag: None
        )
