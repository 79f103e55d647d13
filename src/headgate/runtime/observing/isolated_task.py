"""A task on its own over stored rows, so that its cost can be measured."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.model.names import Signature
from headgate.model.task_type import State
from headgate.model.work import KeyedWork, RowExpression
from headgate.runtime.compile.chained import enter_chained
from headgate.runtime.compile.fusion import Fusion
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Fragment, Kind
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.exchange.files import INGEST, SNAPSHOT
from headgate.runtime.isolation.sql_guard import GuardSettings
from headgate.runtime.keyed.host import ERRORS, RESULTS, TEXTS, Results, Values, hosting, places_of, stepped
from headgate.runtime.keyed.packing import key_codes
from headgate.tasks.batch import metered
from headgate.tasks.frames import run_frames
from headgate.tasks.keyed_base import KeyedConfig
from headgate.tasks.sql_text import quoted

__all__ = ["IsolatedTask", "isolated", "repeated"]

Frames = Mapping[str, DataFrame]


class IsolatedTask(ABC):
    """A task and its input, with the frames to compare: with the task and without it."""

    times = 1
    """How many copies of the task the measured frame contains."""

    def __init__(self, task: CompiledTask, entering: Frames) -> None:
        self.task = task
        self.entering = {port: frame.persist() for port, frame in entering.items()}

    def rows(self) -> int:
        """The number of input rows; materialises them."""
        return sum(frame.count() for frame in self.entering.values())

    @contextmanager
    def scaled(self, given: int, wanted: int) -> Iterator[tuple[Frames, int]]:
        """About so many rows, materialised: some of those given, or all of them several times.

        How many is rounded to powers of two: they stand in the code that Spark makes of the plan, and what has been
        compiled for one measurement is then there for the next.

        Rows that are repeated only as they are read seemed to cost half as much again: Spark compiles the repetition
        differently with the task and without it.
        """
        times = _power_of_two(wanted / given)
        if times == 1 and wanted >= given:
            yield self.entering, given
            return
        some = _power_of_two(wanted / len(self.entering))
        frames = {
            port: (repeated(frame, times) if times > 1 else frame.limit(some)).persist()
            for port, frame in self.entering.items()
        }
        try:
            yield frames, sum(frame.count() for frame in frames.values())
        finally:
            for frame in frames.values():
                frame.unpersist()

    @abstractmethod
    def without(self, entering: Frames) -> DataFrame:
        """The rows without the task."""

    @abstractmethod
    def made(self, entering: Frames) -> DataFrame:
        """What the task makes of the rows. Rows that it would not let pass are there too, where that is possible: the
        work that others are spared is not its own."""

    @abstractmethod
    def output(self, entering: Frames) -> DataFrame:
        """The task's output."""

    def close(self) -> None:
        """Unpersist the rows."""
        for frame in self.entering.values():
            frame.unpersist()


def _power_of_two(number: float) -> int:
    """The nearest power of two.

    >>> [_power_of_two(number) for number in (0.3, 1, 3, 64, 100)]
    [1, 1, 4, 64, 128]
    """
    return 1 << max(0, round(math.log2(number)))


def repeated(frame: DataFrame, times: int) -> DataFrame:
    """All rows, several times over; one row many times in succession would cost a processor less."""
    again = frame.sparkSession.range(0, times, 1, 1).select(F.col("id").alias("__again"))
    return again.crossJoin(F.broadcast(frame)).select(*map(quoted, frame.columns))


class _Stateless(IsolatedTask):
    def __init__(self, task: CompiledTask, fusion: Fusion) -> None:
        super().__init__(task, fusion.inputs(task))
        self._fusion = fusion

    def without(self, entering: Frames) -> DataFrame:
        frames = list(entering.values())
        return frames[0] if len(frames) == 1 else frames[0].select(F.lit(1)).union(frames[1].select(F.lit(1)))

    def made(self, entering: Frames) -> DataFrame:
        work = self.task.work
        if not isinstance(work, RowExpression):
            return run_frames(work, self.task.options, entering)
        (frame,) = entering.values()
        names = [name for name in frame.columns if name != INGEST]
        does = work.sql(self.task.options, names)
        # The time of ingest stays with the rows, as it does without the task: reading it is not part of its work.
        beside = [F.col(name) for name in frame.columns if name == INGEST]
        if does.condition is not None:
            beside.append(F.expr(does.condition).alias("__passes"))
        if does.row is not None:
            return frame.select(F.expr(does.row).alias("row"), *beside)
        columns = does.columns or tuple((name, quoted(name)) for name in names)
        return frame.select(*(F.expr(text).alias(name) for name, text in columns), *beside)

    def output(self, entering: Frames) -> DataFrame:
        work = self.task.work
        if isinstance(work, RowExpression):
            entering = {port: frame.drop(INGEST) for port, frame in entering.items()}
        return run_frames(work, self.task.options, entering)

    def close(self) -> None:
        super().close()
        for frame in self._fusion.stored:
            frame.unpersist()


class _Keyed(IsolatedTask):
    """A hosted task: steps through rows as the host does, with the task several times and once, and state of its own.

    What a host takes for any task at all is shared by those that it hosts, and is not the task's own. It is more than
    most tasks take, so that a difference of one task would be lost in what disturbs both.
    """

    times = 4

    def __init__(self, task: CompiledTask, frame: DataFrame) -> None:
        super().__init__(task, {"in": frame})
        self._options = cast(KeyedConfig, task.options)

    def without(self, entering: Frames) -> DataFrame:
        return self._hosting(entering["in"], copies=1)

    def made(self, entering: Frames) -> DataFrame:
        return self._hosting(entering["in"], copies=1 + self.times)

    def output(self, entering: Frames) -> DataFrame:
        return entering["in"].withColumn("result", F.lit(0.0))

    def _hosting(self, frame: DataFrame, *, copies: int) -> DataFrame:
        names, options, work = tuple(frame.columns), self._options, self.task.work
        assert isinstance(work, KeyedWork)
        key = places_of(names, options.key)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # All rows at once, as in a large epoch, so that the fixed cost of each key matters little.
            if not (given := list(batches)):
                return
            does = hosting([(f"life {copy}", "way", work, options) for copy in range(copies)], names)
            table = pa.Table.from_batches(given)
            codes, _ = key_codes([table.column(at).combine_chunks() for at in key])
            table = table.take(pa.array(np.argsort(codes, kind="stable")))
            values = Values([table.column(at).combine_chunks() for at in does.columns], len(table))
            results, begin = Results(len(does.tasks)), 0
            for count in np.bincount(codes).tolist():
                stepped(None, values, (begin, begin + count), does.tasks, results)
                begin += count
            # The host passes results on with the rows, which is part of a task's cost.
            yield pa.RecordBatch.from_arrays(results.arrays()[:2], ["results", "texts"])

        return frame.mapInArrow(metered(run), "results array<double>, texts array<string>")


def isolated(
    rows: DataFrame, plan: CompiledPlan, fragment: Fragment, task: CompiledTask, schemas: Schemas | None = None
) -> IsolatedTask | None:
    """A task of a fragment on its own, over rows of one of its epochs; ``None`` where no row reaches it."""
    if SNAPSHOT in rows.columns:
        rows = rows.where(f"{SNAPSHOT} = {plan.number}")
    if task.state is State.KEYED:
        return _Keyed(task, rows.drop(RESULTS, TEXTS, ERRORS, SNAPSHOT, INGEST))
    fusion = Fusion(plan, fragment, 0, GuardSettings())
    if fragment.kind is Kind.KEYED:
        fusion.hosted([plan.tasks[signature] for signature in fragment.roots], rows)
    elif fragment.kind is Kind.FEEDBACK:
        if fragment.roots[0] == task.signature:
            return None  # it is the root here; where it is not, it can be measured
        fusion.feedback(plan.tasks[fragment.roots[0]], rows)
    elif fragment.kind is Kind.CHAINED:
        if schemas is None:
            return None
        enter_chained(fusion, rows, schemas)
    else:
        fusion.source(fragment.roots[0], rows)
    before = _before(task, plan)
    for signature in fragment.tasks:
        if signature in before and not (fragment.kind is Kind.FEEDBACK and signature == fragment.roots[0]):
            fusion.run(plan.tasks[signature])
    with suppress(LookupError):
        return _Stateless(task, fusion)
    return None


def _before(task: CompiledTask, plan: CompiledPlan) -> set[Signature]:
    """All tasks whose rows reach a task."""
    earlier: set[Signature] = set()
    waiting = [task]
    while waiting:
        for feed in waiting.pop().feeds:
            if not feed.feedback and feed.source not in earlier:
                earlier.add(feed.source)
                waiting.append(plan.tasks[feed.source])
    return earlier
