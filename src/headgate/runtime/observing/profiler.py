"""The profiler: measures single tasks in the background, on rows of sampled epochs.

A task's input is materialised, so that nothing but the task is measured: what it takes to go through the rows with the
task, less what it takes to go through them without. Rows are repeated, or left out, until the difference is large
enough to be measured and small enough to be afforded. Which tasks are measured is decided by what is known of them
least; how many, by the time that epochs have taken.
"""

from __future__ import annotations

import math
import shutil
import statistics
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.model.cluster.observation import TaskProfile
from headgate.model.names import Signature
from headgate.model.task_type import Role, State
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Fragment, Kind
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.epochs.staging import pack, stage
from headgate.runtime.exchange.files import INGEST
from headgate.runtime.observing.isolated_task import IsolatedTask, isolated
from headgate.runtime.observing.kept_profiles import KeptProfiles
from headgate.runtime.observing.measured_run import Trial, Trials, drain
from headgate.runtime.observing.measuring import Measuring, Pace, ProfilingBudget

__all__ = ["Profiler"]

ROWS = 20_000
"""Rows of an epoch that are used."""

WORTH_S, WAITED_S = 0.15, 0.5
"""CPU seconds that a task's own part of a measurement should come to; or seconds, for one that waits. What Spark takes
to begin with a Python worker is some 5 milliseconds of that, and no row's."""

FIRST_ROWS, MOST_ROWS, TRANSFERRED = 64, 400_000, 20_000

FASTEST = 500.0
"""By how much the rows of a measurement may grow at once."""

FIRST_S = 2.0
"""The assumed cost of profiling a task before any has been profiled."""

KEPT = 5
"""How many measurements of a task are kept; the profile is their median."""


@dataclass(frozen=True, slots=True)
class _Sample:
    rows: int
    cpu_s: float
    sojourn_s: float
    transfer_s: float
    memory_bytes: int


Key = tuple[Signature, str]
"""A task and its alternate."""


class Profiler:
    """Keeps the measurements of tasks, and measures more when epochs hand over rows."""

    def __init__(
        self,
        spark: SparkSession,
        measuring: Measuring,
        ended: threading.Event,
        schemas: Schemas | None = None,
        state: Path | None = None,
    ) -> None:
        """When it has ``ended``, the task that is being measured is the last, and there is no rest any more.

        With a ``state`` directory, profiles are kept there for engines to come.
        """
        self._schemas = schemas
        self.kept = None if schemas is None or state is None else KeptProfiles(state, schemas)
        self._every = measuring.sample_every
        self.budget = ProfilingBudget(measuring.share, measuring.at_first_s)
        self._ended = ended
        self._pace = Pace(measuring.share, ended)
        self._trials = Trials(spark)
        self._lock = threading.Lock()
        self._samples: dict[Key, deque[_Sample]] = {}
        self._asked: dict[Key, int] = {}
        self.next_s = FIRST_S
        """The assumed cost of profiling a task: that of the last one."""

    def wants(self, epoch: int) -> bool:
        """Whether an epoch is to keep its rows: one in so many, while the budget allows another task."""
        if self._every is None or epoch < 1 or epoch % self._every or self._pace.goes_on:
            return False
        return self.budget.left_s >= self.next_s

    def sample(self, rows: DataFrame, plan: CompiledPlan, fragment: Fragment) -> None:
        """Measure some of a fragment's tasks on an epoch's rows: at least one, and as many as the budget allows."""
        pace = self._pace
        pace.begin()
        allowed_s = self.budget.left_s
        kept = rows.limit(ROWS).persist()
        try:
            kept.count()
            pace.step()
            for count, task in enumerate(self._in_need(plan, fragment), start=1):
                self._measure(kept, plan, fragment, task)
                self.next_s = pace.busy_s / count
                if self._ended.is_set() or pace.busy_s + self.next_s > allowed_s:
                    break
        finally:
            kept.unpersist()
            self.budget.spend(pace.end())

    def _in_need(self, plan: CompiledPlan, fragment: Fragment) -> list[CompiledTask]:
        """The tasks that can be measured, those measured least often first."""
        hosted = fragment.roots if fragment.kind is Kind.KEYED else ()
        tasks = [plan.tasks[signature] for signature in (*hosted, *fragment.tasks) if signature in plan.tasks]
        measurable = [task for task in tasks if task.role is not Role.SINK and task.state is not State.CHAINED]
        return sorted(measurable, key=lambda task: self._asked.get(_key(task), 0))

    def times(self) -> Mapping[Key, int]:
        """How often each task was due for measurement, whether or not rows reached it."""
        with self._lock:
            return dict(self._asked)

    def samples(self) -> Mapping[Key, Sequence[_Sample]]:
        """The kept measurements by task."""
        with self._lock:
            return {key: tuple(samples) for key, samples in self._samples.items()}

    def profiles(self) -> Mapping[Key, TaskProfile]:
        """The profiles of tasks."""
        return {key: _profile(samples) for key, samples in self.samples().items()}

    def _measure(self, rows: DataFrame, plan: CompiledPlan, fragment: Fragment, task: CompiledTask) -> None:
        key = _key(task)
        with self._lock:
            self._asked[key] = self._asked.get(key, 0) + 1
        work = isolated(rows, plan, fragment, task, self._schemas)
        if work is None:
            return
        try:
            given = work.rows()
            self._pace.step()
            sample = self._sampled(work, given, self._samples.get(key, ())) if given else None
        finally:
            work.close()
        if sample is not None:
            with self._lock:
                self._samples.setdefault(key, deque(maxlen=KEPT)).append(sample)

    def _sampled(self, work: IsolatedTask, given: int, known: Sequence[_Sample]) -> _Sample:
        """Measure with more and more rows, until the task's own cost is large enough to be measured."""
        wanted = _rows_to_begin_with(known[-1], work.times) if known else FIRST_ROWS
        with work.scaled(given, FIRST_ROWS) as (entering, _), self._trials.metering():
            # Warm-up: compilation and imports are not part of the cost of rows.
            for frame in (work.without(entering), work.made(entering)):
                drain(frame)
                self._pace.step()
        while True:
            with work.scaled(given, wanted) as (entering, count):
                with self._trials.metering():
                    without, made = work.without(entering), work.made(entering)
                before = self._run(partial(drain, without))
                after = self._run(partial(drain, made))
                cpu_s, run_s = after.cpu_s - before.cpu_s, after.run_s - before.run_s
                if cpu_s < WORTH_S and run_s < WAITED_S and wanted < MOST_ROWS:
                    grown = 1.5 * min(
                        WORTH_S / cpu_s if cpu_s > 0 else FASTEST, WAITED_S / run_s if run_s > 0 else FASTEST
                    )
                    wanted = min(MOST_ROWS, math.ceil(count * min(max(grown, 2.0), FASTEST)))
                    continue
                done = count * work.times
                cpu_s = max(cpu_s, 0.0) / done
                sample = _Sample(count, cpu_s, max(run_s / done, cpu_s), 0.0, after.memory_bytes // work.times)
            # The cost of passing rows on depends on their columns, which stay: it is measured once.
            transfer_s = known[-1].transfer_s if known else self._transfer(work, given, min(count, TRANSFERRED))
            return replace(sample, transfer_s=transfer_s)

    def _run(self, work: Callable[[], object]) -> Trial:
        trial = self._trials.run(work)
        self._pace.step()
        return trial

    def _transfer(self, work: IsolatedTask, given: int, wanted: int) -> float:
        """CPU seconds per output row to write it to a topic."""
        folder = Path(tempfile.mkdtemp(prefix="headgate-trial-"))
        with work.scaled(given, wanted) as (entering, _):
            output = work.output(entering).persist()
            try:
                rows = output.count()
                before = self._run(partial(drain, output))
                visible = [F.col(f"`{name}`") for name in output.columns if name != INGEST]
                packed = pack(output.select(F.struct(*visible).alias("o0")))
                with self._trials.metering():
                    taken = self._run(lambda: stage(packed, ["topic"], folder, 0))
                return max(taken.cpu_s - before.cpu_s, 0.0) / rows if rows else 0.0
            finally:
                output.unpersist()
                shutil.rmtree(folder, ignore_errors=True)


def _key(task: CompiledTask) -> Key:
    return task.signature, task.alternate.name


def _rows_to_begin_with(known: _Sample, times: int) -> int:
    """How many rows a measurement needs, from earlier measurements."""
    worth = WORTH_S / known.cpu_s if known.cpu_s > 0 else MOST_ROWS
    waited = WAITED_S / known.sojourn_s if known.sojourn_s > 0 else MOST_ROWS
    return min(MOST_ROWS, max(FIRST_ROWS, math.ceil(1.1 * min(worth, waited) / times)))


def _profile(samples: Sequence[_Sample]) -> TaskProfile:
    cpu = [sample.cpu_s for sample in samples]
    middle = statistics.median(cpu)
    spread = None
    if len(cpu) > 1 and middle > 0:
        spread = statistics.stdev(cpu) / math.sqrt(len(cpu)) / middle
    return TaskProfile(
        sum(sample.rows for sample in samples),
        middle,
        statistics.median(sample.sojourn_s for sample in samples),
        statistics.median(sample.transfer_s for sample in samples),
        max(sample.memory_bytes for sample in samples),
        spread,
    )
