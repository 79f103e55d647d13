"""What a fragment does with the rows of an epoch: run its tasks as one job, and stage the outputs.

Tasks that make the job fail are searched for (:mod:`headgate.runtime.isolation.blame`). One that is to go on without
the rows that fail gets a guard (:mod:`headgate.runtime.isolation.sql_guard`); others are left out for a while, with all
that they feed (:mod:`headgate.runtime.isolation.quarantine`).
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame

from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.runtime.compile.plan import CompiledPlan, Fragment, Kind
from headgate.runtime.epochs.commit import LETTERS, SINK, EpochResult, Files, StagedEpoch, Target, outputs_of
from headgate.runtime.epochs.fused_jobs import EpochJobs, Part
from headgate.runtime.epochs.splits import Splits
from headgate.runtime.exchange.files import SNAPSHOT
from headgate.runtime.isolation.blame import OVER_BUDGET, before, blame, feeds_of_items
from headgate.runtime.isolation.failed_rows import FailedRows
from headgate.runtime.isolation.quarantine import Quarantine, behind
from headgate.runtime.isolation.sql_guard import ActiveGuards
from headgate.runtime.isolation.watchdog import Allowance, TimeLimitExceeded, Watchdog
from headgate.runtime.observing.profiler import Profiler
from headgate.runtime.observing.records import Arrivals
from headgate.runtime.observing.tails import MOST_ROWS, Tails
from headgate.runtime.spark_internals.failures import (
    JOB_FAILURES,
    named_culprit,
    reason_of,
    source_was_unreadable,
    storage_refused,
    workers_were_late,
)
from headgate.store.entries import StagedRows
from headgate.store.files import sync_folder

__all__ = ["Background", "Epochs"]


class Background(Protocol):
    """Takes work that nobody waits for (:class:`headgate.runtime.epochs.background_jobs.BackgroundJobs`)."""

    def offer(self, rows: DataFrame, work: Callable[[DataFrame], None]) -> bool: ...


@dataclass(slots=True)
class Epochs:
    """Runs the epochs of one fragment."""

    fragment: Fragment
    jobs: EpochJobs
    failed_rows: FailedRows
    quarantine: Quarantine
    background: Background
    profiler: Profiler
    head_of: Callable[[str], int]
    """The number of the last batch of a topic."""

    staging: Path
    time_budget_s: float
    """How long a task may take for a micro-batch if it does not say."""

    cancel: Callable[[str], None]
    """Cancels the jobs of a tag."""

    stopping: Callable[[], bool]
    tails: Tails = field(default_factory=Tails)
    """Who looks at rows of its tasks."""

    broken_lines: Callable[[int], list[StagedRows]] = lambda _epoch: []
    """Files with what its source could not read in an epoch, and how many records each has."""

    guards: ActiveGuards = field(default_factory=ActiveGuards)
    runs_again: int = 0
    """How often an epoch had to be run again because a task failed or took too long."""

    _allowance: Allowance = field(default_factory=Allowance)
    _watchdog: Watchdog = field(init=False)
    _trials: Watchdog = field(init=False)

    def __post_init__(self) -> None:
        self._watchdog = Watchdog(self.cancel, self.fragment.id)
        self._trials = Watchdog(self.cancel, f"trial-{self.fragment.id}")

    def absorb(self, rows: DataFrame) -> None:
        """Take rows in without any output: the state of a keyed host must not miss an epoch."""
        if self.fragment.kind is Kind.KEYED:
            self.jobs.drain(rows)

    def run(
        self,
        rows: DataFrame,
        epoch: int,
        plans: Sequence[CompiledPlan],
        ingested_us: int,
        splits: Splits | None = None,
    ) -> EpochResult:
        """Run an epoch under the plans that its rows belong to.

        ``ingested_us`` is when its events were taken in, where that is not known row by row. ``splits`` are the same
        rows, for workers that read them by themselves.
        """
        due = self.quarantine.due()
        sampled = not due and bool(plans) and self.profiler.wants(epoch)
        tailed = [] if due or not plans else self.tails.due((*self.fragment.roots, *self.fragment.tasks))
        # A stateful operator must not compute its rows several times.
        if len(plans) > 1 or due or ((sampled or tailed) and self.fragment.kind is not Kind.SOURCE):
            rows = rows.persist()
            if self.fragment.kind is Kind.CHAINED:
                rows.count()  # what they are read from goes with the epoch
        handed_over = False
        began = time.monotonic()
        try:
            result = self._run_isolated(rows, epoch, plans, ingested_us, splits)
            if due:
                handed_over = self._try_in_background(due, rows, plans)
            elif sampled or tailed:
                handed_over = self.background.offer(rows, partial(self._look, plans[-1], sampled, tailed))
            return result
        finally:
            self.profiler.budget.work(began, time.monotonic())
            self._allowance.note(time.monotonic() - began)
            if rows.is_cached and not handed_over:
                rows.unpersist()

    def _look(self, plan: CompiledPlan, sampled: bool, tailed: Sequence[Signature], rows: DataFrame) -> None:
        """Look at an epoch's rows: show some to people, and let tasks be measured on them."""
        self._show(plan, tailed, rows)
        if sampled:
            self._sample(plan, rows)

    def _sample(self, plan: CompiledPlan, rows: DataFrame) -> None:
        """Let tasks be measured on an epoch's rows."""
        if self.fragment.id in plan.fragments:
            self.profiler.sample(self.jobs.unpacked(rows, plan), plan, plan.fragments[self.fragment.id])

    def _show(self, plan: CompiledPlan, tailed: Sequence[Signature], rows: DataFrame) -> None:
        """Show some rows of tasks to those who look at them."""
        if self.fragment.id not in plan.fragments:
            return
        feeds = feeds_of_items(plan, plan.fragments[self.fragment.id])
        for task in tailed:
            if task in plan.tasks:
                running = {*before(task, feeds), task} - behind(self.quarantine.resting(), feeds)
                self.tails.show(task, self.jobs.some_rows((plan, rows), plan.tasks[task], running, MOST_ROWS))

    def _parts(self, rows: DataFrame, plans: Sequence[CompiledPlan]) -> Iterator[Part]:
        """The rows of each plan that has this fragment; rows of other plans are dropped."""
        for plan in plans:
            if self.fragment.id in plan.fragments:
                yield plan, rows.where(f"{SNAPSHOT} = {plan.number}") if len(plans) > 1 else rows

    # isolation

    def _run_isolated(
        self, rows: DataFrame, epoch: int, plans: Sequence[CompiledPlan], ingested_us: int, splits: Splits | None
    ) -> EpochResult:
        """Run an epoch; if tasks make it fail, guard them or leave them out, and run it again."""
        here = [plan.fragments[self.fragment.id] for plan in plans if self.fragment.id in plan.fragments]
        least_s = self._least_budget(plans)
        limit_s = None if least_s is None else self._allowance.limit_s(least_s)
        for _ in range(sum(len(fragment.tasks) for fragment in here) + 2):
            try:
                return self._run_once(rows, epoch, plans, ingested_us, limit_s, splits)
            except (*JOB_FAILURES, TimeLimitExceeded) as error:
                failure = str(error)
                if self.stopping() or storage_refused(failure) or source_was_unreadable(failure):
                    raise
                self.runs_again += 1
                rows = rows.persist()
                if not workers_were_late(str(error)) and not self._isolate(error, rows, plans):
                    limit_s = None  # no single task is to blame
                    break
        return self._run_once(rows, epoch, plans, ingested_us, limit_s, splits)

    def _least_budget(self, plans: Sequence[CompiledPlan]) -> float | None:
        """The smallest time budget that a task states; tasks without one cannot be blamed for time."""
        budgets = [
            plan.tasks[task].time_budget_s
            for plan in plans
            if self.fragment.id in plan.fragments
            for task in plan.fragments[self.fragment.id].tasks
            if task in plan.tasks
        ]
        return min((budget for budget in budgets if budget is not None), default=None)

    def _isolate(self, error: Exception, rows: DataFrame, plans: Sequence[CompiledPlan]) -> bool:
        """Guard tasks that make an epoch fail, or let them rest; returns whether there are any."""
        restrained: set[str] = set()
        for plan, here in self._parts(rows, plans):
            feeds = feeds_of_items(plan, plan.fragments[self.fragment.id])
            left_out = behind(self.quarantine.resting(), feeds)
            running = {item: sources for item, sources in feeds.items() if item not in left_out}
            attempt = partial(self._attempt, (plan, here), self._watchdog)
            for item, reason in blame(error, running, plan, attempt).items():
                if item not in restrained:  # it may be in several of the epoch's plans
                    restrained.add(item)
                    self._restrain(item, reason, plan)
        return bool(restrained)

    def _restrain(self, item: str, reason: str, plan: CompiledPlan) -> None:
        """Guard a task whose bad rows may be left out; let others rest."""
        task = plan.tasks.get(Signature(item))
        must_rest = task is None or task.on_error is OnError.FAIL or item in self.guards.tasks
        if must_rest or reason.startswith(OVER_BUDGET):
            self.quarantine.put(item, reason)
        else:
            self.guards.put_up(item)
            self.failed_rows.reasons.add(item, reason)

    def _attempt(self, part: Part, watchdog: Watchdog, items: Sequence[str], limit_s: float | None) -> str | None:
        """Why some tasks and topics fail for these rows, if they do."""
        try:
            self.jobs.attempt(part, set(items), self.guards.tasks, watchdog.watching(limit_s))
        except (*JOB_FAILURES, TimeLimitExceeded) as error:
            if storage_refused(str(error)) or workers_were_late(str(error)):
                raise  # no task's fault
            named = named_culprit(str(error))
            return reason_of(str(error)) if named is None else named[1]
        return None

    # tasks that come back

    def _try_in_background(self, due: set[str], rows: DataFrame, plans: Sequence[CompiledPlan]) -> bool:
        """Try tasks that have rested on this epoch's rows, beside the next epochs; returns whether rows were taken."""
        parts = list(self._parts(rows, plans))
        if not parts:
            return False
        self.quarantine.try_now(due)

        def work(_rows: DataFrame) -> None:
            try:
                with self.jobs.tagged(self._trials.tag):
                    for item in due:
                        self._try(item, parts[-1])
            finally:
                self.quarantine.try_now(due, is_tried=False)

        if self.background.offer(rows, work):
            return True
        self.quarantine.try_now(due, is_tried=False)
        return False

    def _try(self, item: str, part: Part) -> None:
        """Let a task come back if it does not raise for these rows."""
        plan, rows = part
        feeds = feeds_of_items(plan, plan.fragments[self.fragment.id])
        if item not in feeds:
            self.quarantine.forget(item)
            return
        if rows.isEmpty():
            return
        task = plan.tasks.get(Signature(item))
        budget_s = self.time_budget_s if task is None or task.time_budget_s is None else task.time_budget_s
        reason = self._attempt(part, self._trials, [item, *before(item, feeds)], self._allowance.limit_s(budget_s))
        if reason is None:
            self.quarantine.passed([item])
        else:
            self.quarantine.put(item, reason)

    # one run

    def _run_once(
        self,
        rows: DataFrame,
        epoch: int,
        plans: Sequence[CompiledPlan],
        ingested_us: int,
        limit_s: float | None,
        splits: Splits | None,
    ) -> EpochResult:
        """Run an epoch without resting tasks and what they feed, and stage what the others put out."""
        folder = self._empty_folder(epoch)
        parts = list(self._parts(rows, plans))
        resting, guarded = self.quarantine.resting(), self.guards.tasks
        watching = self._watchdog.watching(limit_s)
        staged = self.jobs.stage(parts, resting, guarded, folder, ingested_us, watching, splits)
        if staged is None:
            self.absorb(rows)
            staged = StagedEpoch((), (), Counter(), frozenset(), lambda _rows: Counter())
        return self._committed(epoch, staged, plans, folder)

    def _empty_folder(self, epoch: int) -> Path:
        shutil.rmtree(self.staging, ignore_errors=True)
        # A worker that outlives a killed engine for a moment must not write into what the next engine stages.
        folder = self.staging / f"{epoch}-{os.getpid()}"
        folder.mkdir(parents=True)
        return folder

    def _committed(self, epoch: int, staged: StagedEpoch, plans: Sequence[CompiledPlan], folder: Path) -> EpochResult:
        """The result of a run: rows that failed are sorted out, and what comes after failed tasks is dropped."""
        files, arrivals = staged.by_target()
        files, failed = self.failed_rows.sorted_by_task(files, {plan.number: plan for plan in plans}, folder)
        files, dropped = self._without_failed(files, failed, plans)
        broken = self.broken_lines(epoch)
        if broken and plans:
            files[Target(LETTERS, self.fragment.roots[0], plans[-1].number)] = broken
        self.quarantine.passed(staged.ran - dropped)
        bad = {target.name for target in files if target.kind == LETTERS}
        self.guards.epoch(bad, lambda task: all(task not in plan.tasks for plan in plans))
        at_sinks: dict[Signature, list[Arrivals]] = {}
        for target in files:
            if target.kind == SINK:
                at_sinks.setdefault(Signature(target.name), []).extend(arrivals[target])
        outputs = outputs_of(files, arrivals, self.head_of, self.failed_rows.reasons.of)
        if outputs:  # the files themselves are on the disk already
            for place in (folder, self.staging, self.staging.parent):
                sync_folder(place)
        return EpochResult(outputs, staged.counts(files), at_sinks, misplaced=staged.misplaced)

    def _without_failed(
        self, files: Files, failed: dict[int, set[str]], plans: Sequence[CompiledPlan]
    ) -> tuple[Files, set[str]]:
        """The files without those of failed tasks and what they feed; and these tasks and topics."""
        dropped: set[str] = set()
        for plan in plans:
            if plan.number in failed:
                gone = behind(failed[plan.number], feeds_of_items(plan, plan.fragments[self.fragment.id]))
                files = {key: kept for key, kept in files.items() if not _is_of(key, plan.number, gone)}
                dropped |= gone
        return files, dropped


def _is_of(target: Target, snapshot: int, names: set[str]) -> bool:
    return target.snapshot == snapshot and target.name in names
