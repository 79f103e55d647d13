"""What a fragment does with the rows of an epoch: fuse its tasks into one Spark job, run it, and stage the outputs.

Tasks that make the job fail are found out (:mod:`headgate.runtime.isolation.blame`). One that is to go on without the
rows for which it raises gets a guard (:mod:`headgate.runtime.isolation.sql_guard`); others are left out for a while,
with all that is behind them (:mod:`headgate.runtime.isolation.quarantine`).
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.model.task_type import Role
from headgate.runtime.compile.arrow_stage import staged_tasks
from headgate.runtime.compile.fusion import Fusion, Output, union
from headgate.runtime.compile.plan import CompiledPlan, Feed, Fragment, Kind
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.staging import pack, stage
from headgate.runtime.exchange.files import SNAPSHOT, topic_columns
from headgate.runtime.io.sinks import form_of
from headgate.runtime.isolation.blame import before, blame
from headgate.runtime.isolation.failed_rows import HOST_LETTERS, FailedRows
from headgate.runtime.isolation.quarantine import Quarantine, behind
from headgate.runtime.isolation.sql_guard import ActiveGuards, GuardSettings
from headgate.runtime.isolation.watchdog import Allowance, TimeLimitExceeded, Watchdog
from headgate.runtime.keyed.host import hosted_schema, unpacked
from headgate.runtime.observing.counting import RowCounts
from headgate.runtime.observing.records import Arrivals
from headgate.runtime.spark_internals.failures import JOB_FAILURES, named_culprit, reason_of, workers_were_late

__all__ = ["EpochResult", "Epochs"]

TRIED = Output("tried", "arrow")


@dataclass(frozen=True, slots=True)
class EpochResult:
    """What an epoch came to: its commit, with all that was staged, and what was measured on the way."""

    commit: dict[str, Any]
    counts: RowCounts = field(default_factory=Counter)
    arrivals: Mapping[Signature, list[Arrivals]] = field(default_factory=dict)


class Epochs:
    """Runs the epochs of one fragment."""

    def __init__(self, fragment: Fragment, context: FragmentContext, stopping: Callable[[], bool]) -> None:
        self._fragment = fragment
        self._context = context
        self._stopping = stopping
        self.quarantine = Quarantine()
        self.guards = ActiveGuards()
        self.runs_again = 0
        """How often an epoch had to be run again because of a task: what misbehaving has cost the others."""

        self._letters = FailedRows(fragment, context, self.quarantine)
        self._allowance = Allowance()
        self._watchdog = Watchdog(context.spark.sparkContext, fragment.id)
        self._trials = Watchdog(context.spark.sparkContext, f"trial-{fragment.id}")

    def remember(self, rows: DataFrame) -> None:
        """Take rows in without letting any out: what stateful operators keep must not miss an epoch."""
        if self._fragment.kind in (Kind.KEYED, Kind.NATIVE):
            rows.write.format("noop").mode("append").save()

    def run(self, rows: DataFrame, epoch: int, plans: Sequence[CompiledPlan], ingested_us: int) -> EpochResult:
        """Run an epoch under the plans that its rows belong to.

        ``ingested_us`` is when its events were taken in, where that is not known row by row.
        """
        due = self.quarantine.due()
        sampled = not due and bool(plans) and self._context.profiler.wants(epoch)
        # Rows that come out of a stateful operator must not be asked of it again and again.
        if len(plans) > 1 or due or (sampled and self._fragment.kind is not Kind.SOURCE):
            rows = rows.persist()
        handed_over = False
        began = time.monotonic()
        try:
            outcome = self._run_isolated(rows, epoch, plans, ingested_us)
            if due:
                handed_over = self._try_in_background(due, rows, plans)
            elif sampled:
                handed_over = self._context.background.offer(rows, partial(self._sample, plans[-1]))
            return outcome
        finally:
            self._context.profiler.budget.work(began, time.monotonic())
            self._allowance.note(time.monotonic() - began)
            if rows.is_cached and not handed_over:
                rows.unpersist()

    def _sample(self, plan: CompiledPlan, rows: DataFrame) -> None:
        """Let tasks be measured on an epoch's rows."""
        if self._fragment.id in plan.fragments:
            rows = self._unpacked(rows, plan) if self._fragment.kind is Kind.KEYED else rows
            self._context.profiler.sample(rows, plan, plan.fragments[self._fragment.id])

    def _unpacked(self, packs: DataFrame, plan: CompiledPlan) -> DataFrame:
        """The rows that a keyed host puts out."""
        return unpacked(packs, self._topic_columns(plan))

    def _topic_columns(self, plan: CompiledPlan) -> StructType:
        """The columns of the topics that a keyed host reads."""
        feed = plan.fragments[self._fragment.id].feeds[0]
        return topic_columns(self._context.schemas.of(plan, plan.tasks[feed.source]))

    def _run_isolated(
        self, rows: DataFrame, epoch: int, plans: Sequence[CompiledPlan], ingested_us: int
    ) -> EpochResult:
        """Run an epoch; tasks that make it fail are guarded or left out, and it is run again."""
        known = sum(
            len(plan.fragments[self._fragment.id].tasks) for plan in plans if self._fragment.id in plan.fragments
        )
        least_s = self._least_budget(plans)
        limit_s = None if least_s is None else self._allowance.limit_s(least_s)
        for _ in range(known + 2):
            try:
                return self._run_without(self.quarantine.resting(), rows, epoch, plans, ingested_us, limit_s)
            except (*JOB_FAILURES, TimeLimitExceeded) as error:
                if self._stopping():
                    raise
                self.runs_again += 1
                # Rows that come out of a stateful operator must not be asked of it again and again.
                rows = rows.persist()
                if not self._isolate(error, rows, plans):
                    if workers_were_late(str(error)):
                        raise
                    limit_s = None  # it was nobody's fault
                    break
        return self._run_without(self.quarantine.resting(), rows, epoch, plans, ingested_us, limit_s)

    def _isolate(self, error: Exception, rows: DataFrame, plans: Sequence[CompiledPlan]) -> bool:
        """Guard tasks that make an epoch fail, or let them rest; returns whether there are any."""
        found = False
        for plan, here in self._parts(rows, plans):
            feeds = _feeds_of_items(plan, plan.fragments[self._fragment.id])
            left_out = behind(self.quarantine.resting(), feeds)
            open_feeds = {item: sources for item, sources in feeds.items() if item not in left_out}

            def attempt(
                items: Sequence[str], limit_s: float | None, plan: CompiledPlan = plan, here: DataFrame = here
            ) -> str | None:
                return self._tried(plan, here, set(items), self._watchdog, limit_s)

            for item, reason in blame(error, open_feeds, plan, attempt).items():
                found = True
                task = plan.tasks.get(Signature(item))
                over = reason.startswith("TimeoutError: over its time budget")
                if task is None or task.on_error is OnError.FAIL or over or item in self.guards.tasks:
                    self.quarantine.put(item, reason)
                else:
                    self.guards.put_up(item)
                    self._letters.reasons.add(item, reason)
        return found

    def _parts(self, rows: DataFrame, plans: Sequence[CompiledPlan]) -> Iterator[tuple[CompiledPlan, DataFrame]]:
        """The rows of each plan that has this fragment; if those who want them have paused or are gone, they pass."""
        for plan in plans:
            if self._fragment.id in plan.fragments:
                yield plan, rows.where(f"{SNAPSHOT} = {plan.number}") if len(plans) > 1 else rows

    def _least_budget(self, plans: Sequence[CompiledPlan]) -> float | None:
        """The smallest budget that a task states: of the others none could be blamed for what all take together."""
        found: list[float] = []
        for plan in plans:
            if self._fragment.id in plan.fragments:
                tasks = [plan.tasks[task] for task in plan.fragments[self._fragment.id].tasks if task in plan.tasks]
                found += [task.time_budget_s for task in tasks if task.time_budget_s is not None]
        return min(found, default=None)

    def _try_in_background(self, due: set[str], rows: DataFrame, plans: Sequence[CompiledPlan]) -> bool:
        """Try tasks that have rested on this epoch's rows, beside the next epochs; returns whether rows were taken."""
        parts = list(self._parts(rows, plans))
        if not parts:
            return False
        plan, here = parts[-1]
        self.quarantine.try_now(due)

        def work(kept: DataFrame) -> None:
            del kept
            context = self._context.spark.sparkContext
            context.addJobTag(self._trials.tag)
            try:
                for item in due:
                    self._try(item, plan, here)
            finally:
                context.removeJobTag(self._trials.tag)
                self.quarantine.try_now(due, is_tried=False)

        if self._context.background.offer(rows, work):
            return True
        self.quarantine.try_now(due, is_tried=False)
        return False

    def _try(self, item: str, plan: CompiledPlan, rows: DataFrame) -> None:
        """Let a task come back if it does not raise for these rows."""
        feeds = _feeds_of_items(plan, plan.fragments[self._fragment.id])
        if item not in feeds:
            self.quarantine.forget(item)
            return
        if rows.isEmpty():
            return
        task = plan.tasks.get(Signature(item))
        budget_s = self._context.time_budget_s if task is None or task.time_budget_s is None else task.time_budget_s
        told = self._tried(plan, rows, {item, *before(item, feeds)}, self._trials, self._allowance.limit_s(budget_s))
        if told is None:
            self.quarantine.passed([item])
        else:
            self.quarantine.put(item, told)

    def _tried(
        self, plan: CompiledPlan, rows: DataFrame, wanted: set[str], watchdog: Watchdog, limit_s: float | None
    ) -> str | None:
        """Why some tasks and topics fail for these rows, if they do; nothing is put out."""
        guards = GuardSettings(self.guards.tasks, self._context.time_budget_s)
        fusion = Fusion(plan, plan.fragments[self._fragment.id], 0, guards)
        try:
            self._fuse(fusion, rows, lambda item: item in wanted, all_outputs=True)
            frame = fusion.result(packed=False)
            with watchdog.watching(limit_s):
                (rows if frame is None else frame).write.format("noop").mode("append").save()
        except (*JOB_FAILURES, TimeLimitExceeded) as error:
            named = named_culprit(str(error))
            return reason_of(str(error)) if named is None else named[1]
        finally:
            for stored in fusion.stored:
                stored.unpersist()
        return None

    def _run_without(
        self,
        resting: set[str],
        rows: DataFrame,
        epoch: int,
        plans: Sequence[CompiledPlan],
        ingested_us: int,
        limit_s: float | None,
    ) -> EpochResult:
        """Run an epoch without some tasks and what is behind them, and stage what the others put out."""
        staging = self._context.state.path / "staging" / self._fragment.id
        shutil.rmtree(staging, ignore_errors=True)
        # A worker that outlives a killed engine for a moment must not write into what the next engine stages.
        staging = staging / f"{epoch}-{os.getpid()}"
        staging.mkdir(parents=True)
        fusions: list[Fusion] = []
        targets: list[tuple[str, str, CompiledPlan]] = []
        parts = []
        ran: set[str] = set()
        guards = GuardSettings(self.guards.tasks, self._context.time_budget_s)
        counting = self._context.counting
        for plan, here in self._parts(rows, plans):
            fragment = plan.fragments[self._fragment.id]
            feeds = _feeds_of_items(plan, fragment)
            left_out = behind(resting, feeds)
            runs = partial(_is_not_in, left_out)
            schema_of = partial(self._context.schemas.of, plan)
            stages = staged_tasks(plan, fragment, runs, frozenset(self.guards.tasks), schema_of)
            fusion = Fusion(plan, fragment, len(targets), guards, counting=counting, stages=stages, schema_of=schema_of)
            ran |= {*feeds, *fragment.roots} - left_out
            found = self._fuse(fusion, here, runs, packs=stages.packs)
            targets += [(kind, name, plan) for kind, name in found]
            fusions.append(fusion)
            part = fusion.result(packed=len(plans) == 1)
            if part is not None:
                parts.append(part)
        try:
            if not parts:
                self.remember(rows)
                return EpochResult({"epoch": epoch, "done": True, "targets": []})
            forms = [output.form for fusion in fusions for output in fusion.outputs]
            with self._watchdog.watching(limit_s):
                stages_by_output = {number: stage for fusion in fusions for number, stage in fusion.stages.items()}
                whole = parts[0] if len(plans) == 1 else pack(union(parts))
                staged, counted = stage(whole, forms, staging, ingested_us, stages_by_output)
        finally:
            for fusion in fusions:
                for stored in fusion.stored:
                    stored.unpersist()
        files: dict[tuple[str, str, int], list[tuple[str, int]]] = {}
        arrivals: dict[tuple[str, str, int], list[Arrivals]] = {}
        rows_of = Counter(counted)
        for item in staged:
            kind, name, plan = targets[item.output]
            files.setdefault((kind, name, plan.number), []).append((item.path, item.rows))
            some = Arrivals(item.rows, np.frombuffer(item.ingested, np.int64))
            arrivals.setdefault((kind, name, plan.number), []).append(some)
            rows_of[item.output] += item.rows
        by_number = {plan.number: plan for plan in plans}
        files, culprits = self._letters.opened(files, by_number, staging)
        for number, failed in culprits.items():
            gone = behind(failed, _feeds_of_items(by_number[number], by_number[number].fragments[self._fragment.id]))
            files = {key: kept for key, kept in files.items() if key[2] != number or key[1] not in gone}
            ran -= gone
        self.quarantine.passed(ran)
        bad = {name for kind, name, _ in files if kind == "letters"}
        self.guards.epoch(bad, lambda task: all(task not in plan.tasks for plan in plans))
        counts: RowCounts = sum((fusion.counted(rows_of) for fusion in fusions), start=Counter())
        at_sinks: dict[Signature, list[Arrivals]] = {}
        for (kind, name, number), kept in files.items():
            if kind == "letters":
                counts[Signature(name), "errors"] += sum(count for _, count in kept)
            elif kind == "sink":
                at_sinks.setdefault(Signature(name), []).extend(arrivals[kind, name, number])
        commit = {"epoch": epoch, "done": not files, "targets": self._numbered(files, arrivals)}
        return EpochResult(commit, counts, at_sinks)

    def _numbered(
        self,
        files: Mapping[tuple[str, str, int], list[tuple[str, int]]],
        arrivals: Mapping[tuple[str, str, int], list[Arrivals]],
    ) -> list[dict[str, Any]]:
        """Targets in the order of their snapshots; what goes to a topic gets its number before it is durable."""
        heads: dict[str, int] = {}
        found = []
        for (kind, name, snapshot), staged in sorted(files.items(), key=lambda item: item[0][2]):
            target: dict[str, Any] = {"kind": kind, "name": name, "snapshot": snapshot, "files": staged}
            if kind == "topic":
                heads[name] = heads.get(name, self._context.exchange.head(name)) + 1
                target["number"] = heads[name]
                some = arrivals[kind, name, snapshot]
                means = [float(part.ingested_us.mean()) for part in some]
                target["ingested_us"] = int(np.average(means, weights=[part.rows for part in some]))
            elif kind == "letters":
                target["reasons"] = self._letters.reasons.of(name)
            found.append(target)
        return found

    def _fuse(
        self,
        fusion: Fusion,
        rows: DataFrame,
        runs: Callable[[str], bool],
        *,
        all_outputs: bool = False,
        packs: bool = False,
    ) -> list[tuple[str, str]]:
        """Put those of the fragment's tasks and topics that are to run into a fusion; returns where each output goes.

        With ``all_outputs`` the rows of every task are an output, so that each task has work to do.
        """
        plan, fragment = fusion.plan, fusion.fragment
        targets: list[tuple[str, str]] = []
        if fragment.kind is Kind.KEYED:
            hosted = [plan.tasks[signature] for signature in fragment.roots]
            if packs:
                fusion.hosted_in_stage(hosted, rows, hosted_schema(self._topic_columns(plan)))
            else:
                fusion.hosted(hosted, self._unpacked(rows, plan))
            targets += [(HOST_LETTERS, fragment.id)] * len(fusion.outputs)
        elif fragment.kind is Kind.FEEDBACK:
            if fragment.roots[0] in plan.tasks and runs(fragment.roots[0]):
                fusion.feedback(plan.tasks[fragment.roots[0]], rows)
        elif fragment.kind is Kind.PROXY:
            fusion.proxy(plan.tasks[fragment.roots[0]], rows)
        else:
            fusion.source(fragment.roots[0], rows)
        targets += [("letters", fragment.roots[0])] * (len(fusion.outputs) - len(targets))
        for signature in filter(runs, fragment.tasks):
            task = plan.tasks.get(signature)
            if task is None or (fragment.kind is Kind.FEEDBACK and signature == fragment.roots[0]):
                continue
            if task.role is Role.SINK:
                fusion.put(task.feeds, Output(signature, form_of(task)))
                targets += [("sink", signature)] * (len(fusion.outputs) - len(targets))
            else:
                fusion.run(task)
                targets += [("letters", signature)] * (len(fusion.outputs) - len(targets))
            if all_outputs:
                fusion.put([Feed(signature, port.name, "in", None, None, False) for port in task.ports.outputs], TRIED)
        for topic in fragment.writes:
            if runs(topic.id):
                schema = self._context.schemas.of(plan, plan.tasks[topic.feeds[0].source])
                names = [field.name for field in schema.fields]
                fusion.put(topic.feeds, Output(topic.id, "topic"), names)
                targets += [("topic", topic.id)] * (len(fusion.outputs) - len(targets))
        return targets


def _is_not_in(some: set[str], item: str) -> bool:
    return item not in some


def _feeds_of_items(plan: CompiledPlan, fragment: Fragment) -> dict[str, list[str]]:
    """The tasks of a fragment, sinks among them, and its topics, with what feeds each; those that feed others first."""
    tasks = [plan.tasks[signature] for signature in fragment.tasks if signature in plan.tasks]
    items: dict[str, list[str]] = {t.signature: [f.source for f in t.feeds if not f.feedback] for t in tasks}
    return items | {topic.id: [feed.source for feed in topic.feeds] for topic in fragment.writes}
