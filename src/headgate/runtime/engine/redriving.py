"""Redriving: rows that failed are offered again to the task that refused them, each exactly once.

A redrive is an epoch of its own that begins at the task (:mod:`headgate.runtime.compile.redriven`). It runs between two
epochs of the task's fragment, because both number the batches of the same topics. What it puts out is committed
together with which letters it has used; from then on these count as redriven, whatever is killed. Rows that the task
refuses again are letters anew.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.errors import InputError, counted
from headgate.model.names import Signature
from headgate.model.redrive_result import RedriveResult
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask
from headgate.runtime.compile.redriven import RedrivenPart, redriven_part
from headgate.runtime.compile.schemas import ddl
from headgate.runtime.engine.find_task import find_task
from headgate.runtime.engine.plans import Plans
from headgate.runtime.epochs.commit import StagedEpoch, outputs_of
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.delivery import Deliveries
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.epochs.fused_jobs import FusedJobs
from headgate.runtime.isolation.dead_letters import LetterDelivery
from headgate.runtime.spark_internals.failures import JOB_FAILURES, named_culprit, reason_of
from headgate.sharing.applied import AcknowledgeRedrive
from headgate.store.entries import Delivered, EpochCommitted, LettersRedriven, OutputKind
from headgate.store.files import sync_folder
from headgate.store.journal import Journal

__all__ = ["Redrives"]

PATIENCE_S = 60.0
"""How long the running epoch of a fragment may take until a redrive gives up."""


@dataclass(slots=True)
class Redrives:
    """The redrives of an engine."""

    context: FragmentContext
    plans: Plans
    running: Mapping[str, RunningFragment]
    _unfinished: list[LettersRedriven] = field(init=False)
    _finishing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._unfinished = [one for one in self._journal.every(LettersRedriven) if not self._is_done(one)]

    def redrive(self, dataflow: str, name: str, acknowledge: AcknowledgeRedrive | None) -> RedriveResult:
        """Offer all rows again that a task of a dataflow has refused; nothing has changed if this raises."""
        self.finish()
        signature, plan = find_task(self.plans.snapshot, dataflow, name)[0], self.plans.current
        task = plan.tasks.get(signature)
        if task is None:
            message = f"dataflow '{dataflow}' is paused, so its tasks take no rows"
            raise InputError("CANNOT_REDRIVE", f"{message}; resume it first: headgate resume {dataflow}")
        letters = self._letters(dataflow, f"{dataflow}.{name}", signature)
        whose = frozenset(
            {dataflow}
            | {one for each in letters if each.task == signature for one in each.dataflows if one in task.used_by}
        )
        fragment = self._home(plan, task)
        part = redriven_part(plan, fragment.fragment.id, task, whose)
        done: list[RedriveResult] = []
        if not fragment.between_epochs(
            lambda _batch: done.append(self._run(fragment, part, task, letters, whose, acknowledge)), PATIENCE_S
        ):
            message = f"a micro-batch of '{task.name}' has been running for {PATIENCE_S:.0f} s"
            raise InputError("REDRIVE_BUSY", f"{message}; nothing was redriven, try again later")
        self.finish()
        return done[0]

    def finish(self) -> None:
        """Deliver what was committed and not yet delivered, by an engine before this one perhaps.

        To be called before each epoch: both number the batches of the same topics.
        """
        if not self._unfinished:
            return
        with self._finishing:
            for one in list(self._unfinished):
                self._finish(one)

    def _finish(self, one: LettersRedriven) -> None:
        commit = self._journal.latest(EpochCommitted, one.redrive)
        assert commit is not None  # both are one append
        self._deliveries.deliver(commit, one.dataflows)
        self.context.dead_letters.settle(one.redrive, one.deliveries, one.dataflows)
        self._journal.append(Delivered(one.redrive, commit.epoch))
        self._unfinished.remove(one)
        shutil.rmtree(self._folder(one.redrive), ignore_errors=True)

    @property
    def _deliveries(self) -> Deliveries:
        context = self.context
        return Deliveries(context.exchange, context.outbox, context.dead_letters, context.plan)

    @property
    def _journal(self) -> Journal:
        return self.context.state.journal

    def _is_done(self, one: LettersRedriven) -> bool:
        return self._journal.latest(Delivered, one.redrive) is not None

    def _folder(self, redrive: str) -> Path:
        return self.context.state.path / "staging" / redrive

    def _letters(self, dataflow: str, full_name: str, signature: Signature) -> list[LetterDelivery]:
        """The letters of a task, also those that it got before its dataflow was replaced."""
        letters = self.context.dead_letters.of(dataflow, lambda task, called: task == signature or called == full_name)
        if not letters:
            raise InputError("NO_DEAD_LETTERS", f"there are no dead letters of '{full_name}' to be offered again")
        return letters

    def _home(self, plan: CompiledPlan, task: CompiledTask) -> RunningFragment:
        """A fragment that runs a task for single rows."""
        homes = [self.running[home] for home in plan.homes.get(task.signature, ()) if home in self.running]
        free = [home for home in homes if task.signature in home.fragment.tasks]
        if homes and not free:
            reason = "reads rows from elsewhere" if not task.feeds else "has state, in which other rows have followed"
            message = f"'{task.name}' {reason}: single rows cannot be offered to it again"
            raise InputError("CANNOT_REDRIVE", f"{message}; export them, and put them where its sources read")
        ready = [home for home in free if home.failure is None and home.is_delivered()]
        if not ready:
            raise InputError(
                "REDRIVE_BUSY", f"the fragment of '{task.name}' does not run; nothing was redriven, try again later"
            )
        return ready[0]

    def _run(
        self,
        fragment: RunningFragment,
        part: RedrivenPart,
        task: CompiledTask,
        letters: Sequence[LetterDelivery],
        whose: frozenset[str],
        acknowledge: AcknowledgeRedrive | None,
    ) -> RedriveResult:
        if not fragment.is_delivered():
            raise InputError(
                "REDRIVE_BUSY", f"rows of '{task.name}' are still on their way; nothing was redriven, try again later"
            )
        redrive = f"redrive-{uuid.uuid4().hex[:12]}"
        folder = self._folder(redrive)
        folder.mkdir(parents=True)
        try:
            staged = self._staged(part, task, [record for each in letters for record in each.records], folder)
            files, arrivals = staged.by_target()
            outputs = outputs_of(files, arrivals, self.context.exchange.head, fragment.epochs.failed_rows.reasons.of)
            for place in (folder, folder.parent):
                sync_folder(place)
            rows = sum(len(each.records) for each in letters)
            again = [
                one for one in outputs if one.target.kind is OutputKind.LETTERS and one.target.name == task.signature
            ]
            refused = sum(one.rows for one in again)
            result = RedriveResult(tuple(sorted(whose)), task.name, rows, refused, part.plan.number)
            used = LettersRedriven(redrive, tuple((each.task, each.stem) for each in letters), result.dataflows)
            commit = EpochCommitted(redrive, 0, (part.plan.number,), outputs)
            self._journal.append(commit, used, *(() if acknowledge is None else acknowledge(result)))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._unfinished.append(used)
        self.finish()
        return result

    def _staged(self, part: RedrivenPart, task: CompiledTask, records: Sequence[str], folder: Path) -> StagedEpoch:
        """Run the rows, and stage what comes out."""
        rows = self._rows(part, task, records)
        known = self.context
        jobs = FusedJobs(known.spark, part.fragment, known.schemas, known.time_budget_s, False, known.executors_of)
        try:
            staged = jobs.stage([(part.plan, rows)], frozenset(), part.guarded, folder, _now_us(), nullcontext())
        except JOB_FAILURES as error:
            named = named_culprit(str(error))
            who, why = ("a task", reason_of(str(error))) if named is None else (_called(part.plan, named[0]), named[1])
            raise InputError("REDRIVE_FAILED", f"{who} raised {why}; nothing was redriven") from None
        if staged is None:
            raise InputError("CANNOT_REDRIVE", f"nothing is behind '{task.name}' that would take the rows")
        return staged

    def _rows(self, part: RedrivenPart, task: CompiledTask, records: Sequence[str]) -> DataFrame:
        """The rows as they came in; raises :class:`InputError` if the task reads other columns now."""
        schema = self.context.schemas.of(part.plan, part.plan.tasks[part.source])
        texts = self.context.spark.createDataFrame([(record,) for record in records], "record string")
        _check_columns(texts, schema, task)
        parsed = F.from_json(F.col("record"), ddl(schema), {"mode": "FAILFAST"})
        rows = texts.select(parsed.alias("row")).select("row.*")
        try:
            rows.foreach(_drop)
        except JOB_FAILURES as error:
            message = f"the rows do not have the types any more that '{task.name}' reads: {reason_of(str(error))}"
            raise InputError("CANNOT_REDRIVE", message) from None
        return rows


def _drop(_row: object) -> None:
    """Take a row."""


def _check_columns(texts: DataFrame, schema: StructType, task: CompiledTask) -> None:
    """Raise unless the records have every column of a schema."""
    names = texts.select(F.explode(F.expr("json_object_keys(record)")).alias("name"), "record")
    counts = {row["name"]: row["count"] for row in names.groupBy("name").count().collect()}
    rows = texts.count()
    lacking = [name for name in schema.names if counts.get(name, 0) < rows]
    if lacking:
        columns = ", ".join(f"'{name}'" for name in lacking)
        message = f"'{task.name}' reads {columns} now, which {counted(rows, 'dead letter')} do not have"
        raise InputError("CANNOT_REDRIVE", f"{message}; export them, and put them where its sources read")


def _called(plan: CompiledPlan, task: str) -> str:
    known = plan.tasks.get(Signature(task))
    return "a task" if known is None else f"task '{known.name}'"


def _now_us() -> int:
    return int(time.time() * 1e6)
