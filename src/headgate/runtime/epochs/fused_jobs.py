"""The Spark jobs of a fragment's epochs: its tasks are fused into one job, which stages all outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.model.identity import remembered
from headgate.model.task_type import Role
from headgate.runtime.compile.arrow_stage import staged_tasks
from headgate.runtime.compile.chained import enter_chained, shaped
from headgate.runtime.compile.fused_frame import Output, union
from headgate.runtime.compile.fusion import Fusion
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Feed, Kind
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.epochs.commit import HOST_LETTERS, LETTERS, SINK, TOPIC, StagedEpoch, Target
from headgate.runtime.epochs.fused_job import FusedJob, KeptJobs, release
from headgate.runtime.epochs.placing import ExecutorsOf, wait_s, with_misplaced
from headgate.runtime.epochs.splits import Splits, frame_for_splits, split_frame, staged_splits
from headgate.runtime.epochs.staging import pack, staging_frame
from headgate.runtime.exchange.files import topic_columns
from headgate.runtime.io.sinks import form_of
from headgate.runtime.isolation.blame import feeds_of_items
from headgate.runtime.isolation.quarantine import behind
from headgate.runtime.isolation.sql_guard import AS_JSON, GuardSettings
from headgate.runtime.keyed.host import hosted_schema, unpacked
from headgate.runtime.observing.job_tags import tagged
from headgate.runtime.observing.measured_run import drain
from headgate.runtime.spark_internals.internals import internals
from headgate.runtime.spark_internals.protocol import Places
from headgate.store.entries import OutputKind

__all__ = ["EpochJobs", "FusedJobs", "Part"]

Items = AbstractSet[str]
"""Tasks and topics of a fragment, by signature and id."""

Watching = AbstractContextManager[None]
"""Limits the time of what runs inside."""

Part = tuple[CompiledPlan, DataFrame]
"""The rows of an epoch that belong to a plan."""

TRIED = Output("tried", "arrow")


class EpochJobs(Protocol):
    """Runs the tasks of a fragment over rows: on Spark, or in memory for tests."""

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
        """Run all tasks except resting ones and what they feed, and stage the outputs; ``None`` if none is left.

        ``splits`` are the same rows, for workers that read them by themselves.
        """

    def attempt(self, part: Part, items: Items, guarded: Items, watching: Watching) -> None:
        """Run some tasks and topics and drop their rows; raises what they raise."""

    def some_rows(self, part: Part, task: CompiledTask, items: Items, most: int) -> list[str]:
        """Some of the rows that a task makes or a sink takes, as JSON; ``items`` are the tasks that are run for it."""

    def drain(self, rows: DataFrame) -> None:
        """Compute rows and drop them."""

    def unpacked(self, rows: DataFrame, plan: CompiledPlan) -> DataFrame:
        """The rows of an epoch, those of a keyed host unpacked."""

    def tagged(self, tag: str) -> AbstractContextManager[None]:
        """Put a tag on the jobs that this thread starts."""


class FusedJobs:
    """The jobs of one fragment on Spark."""

    def __init__(
        self,
        spark: SparkSession,
        fragment_id: str,
        schemas: Schemas,
        time_budget_s: float,
        counting: bool,
        executors_of: ExecutorsOf,
    ) -> None:
        self._spark = spark
        self._fragment_id = fragment_id
        self._schemas = schemas
        self._time_budget_s = time_budget_s
        self._counting = counting
        self._executors_of = executors_of
        self._waits = False
        """Whether its last job waited for the places of its partitions."""

        self._kept = KeptJobs()
        self._parts_of = remembered(self._job_parts, most=4)

    def _job_parts(self, plan: CompiledPlan) -> tuple[object, ...]:
        return plan.job_parts(self._fragment_id)

    def drain(self, rows: DataFrame) -> None:
        drain(rows)

    def tagged(self, tag: str) -> AbstractContextManager[None]:
        return tagged(self._spark, tag)

    def unpacked(self, rows: DataFrame, plan: CompiledPlan) -> DataFrame:
        keyed = plan.fragments[self._fragment_id].kind is Kind.KEYED
        return unpacked(rows, self._topic_columns(plan)) if keyed else rows

    def _topic_columns(self, plan: CompiledPlan) -> StructType:
        """The columns of the topics that a keyed host reads."""
        feed = plan.fragments[self._fragment_id].feeds[0]
        return topic_columns(self._schemas.of(plan, plan.tasks[feed.source]))

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
        places = self._places(parts, splits)
        kept = None
        if splits is not None and len(parts) == 1:
            kept = self._kept_job(parts[0][0], resting, guarded, splits, places)
        if kept is not None and splits is not None:
            splits.store(folder)
            with watching:
                return with_misplaced(kept.stage(folder, ingested_us), places)
        job = self._job(parts, resting, guarded)
        try:
            with watching:
                return job.stage(folder, ingested_us)
        finally:
            job.release()

    def _places(self, parts: Sequence[Part], splits: Splits | None) -> Places:
        """The executors of each split, where partitions are placed."""
        machines = parts[0][0].places_of(self._fragment_id) if len(parts) == 1 else ()
        if splits is None or len(splits.parts) != len(machines):
            machines = ()
        if machines or self._waits:
            internals(self._spark).locality_wait(wait_s(parts[0][0] if machines else None))
        self._waits = bool(machines)
        return self._executors_of(machines) if machines else ()

    def _kept_job(
        self, plan: CompiledPlan, resting: Items, guarded: Items, splits: Splits, places: Places
    ) -> FusedJob | None:
        """The job that reads splits, planned before or now; ``None`` if it cannot be run again."""

        def build() -> FusedJob:
            frame = frame_for_splits(self._spark, len(splits.parts), places)
            return self._job([(plan, split_frame(frame, splits.reader))], resting, guarded, splits, frame)

        where = tuple(tuple(each.id for each in executors) for executors in places)
        key = (self._parts_of(plan), frozenset(resting), frozenset(guarded), len(splits.parts), where)
        job = self._kept.job(key, build) if splits.parts else None
        return None if job is None else job.under(plan.number)

    def _job(
        self,
        parts: Sequence[Part],
        resting: Items,
        guarded: Items,
        splits: Splits | None = None,
        partitions: DataFrame | None = None,
    ) -> FusedJob:
        fusions: list[Fusion] = []
        try:
            return self._built(parts, resting, guarded, fusions, splits, partitions)
        except BaseException:
            release(fusions)
            raise

    def _built(
        self,
        parts: Sequence[Part],
        resting: Items,
        guarded: Items,
        fusions: list[Fusion],
        splits: Splits | None,
        partitions: DataFrame | None,
    ) -> FusedJob:
        targets: list[Target] = []
        ran: set[str] = set()
        frames = []
        for plan, rows in parts:
            fusion, leaving, running = self._fused(plan, rows, resting, guarded, len(targets), fusions)
            targets += leaving
            ran |= running
            frame = fusion.result(packed=len(parts) == 1)
            frames += [] if frame is None else [frame]
        staging = None
        if frames:
            forms = [output.form for fusion in fusions for output in fusion.outputs]
            stages = {number: one for fusion in fusions for number, one in fusion.stages.items()}
            names = [target.name for target in targets]
            if splits is not None and partitions is not None and fusions[0].only_stages:
                staging = staged_splits(partitions, splits.reader, forms, stages, names)
            else:
                frame = frames[0] if len(parts) == 1 else pack(union(frames))
                staging = staging_frame(frame, forms, stages, names=names)
        return FusedJob(staging, tuple(fusions), tuple(targets), frozenset(ran))

    def _fused(
        self,
        plan: CompiledPlan,
        rows: DataFrame,
        resting: Items,
        guarded: Items,
        first_output: int,
        fusions: list[Fusion],
    ) -> tuple[Fusion, list[Target], set[str]]:
        """The tasks that are to run, fused; where each output goes; and what runs."""
        fragment = plan.fragments[self._fragment_id]
        feeds = feeds_of_items(plan, fragment)
        left_out = behind(resting, feeds)
        runs = partial(_is_not_in, left_out)
        schema_of = partial(self._schemas.of, plan)
        stages = staged_tasks(plan, fragment, runs, frozenset(guarded), schema_of)
        guards = GuardSettings(frozenset(guarded), self._time_budget_s)
        fusion = Fusion(
            plan, fragment, first_output, guards, counting=self._counting, stages=stages, schema_of=schema_of
        )
        fusions.append(fusion)
        leaving = self._fuse(fusion, rows, runs, packs=stages.packs)
        return fusion, leaving, {*feeds, *fragment.roots} - left_out

    def attempt(self, part: Part, items: Items, guarded: Items, watching: Watching) -> None:
        plan, rows = part
        guards = GuardSettings(frozenset(guarded), self._time_budget_s)
        fusion = Fusion(plan, plan.fragments[self._fragment_id], 0, guards)
        try:
            self._fuse(fusion, rows, lambda item: item in items, all_outputs=True)
            frame = fusion.result(packed=False)
            with watching:
                drain(rows if frame is None else frame)
        finally:
            release([fusion])

    def some_rows(self, part: Part, task: CompiledTask, items: Items, most: int) -> list[str]:
        plan, rows = part
        sink = task.role is Role.SINK
        outputs = [Feed(task.signature, port.name, "in", None, None, False) for port in task.ports.outputs]
        # Every task has a guard: what raises for a row is no reason to show none.
        fusion = Fusion(
            plan, plan.fragments[self._fragment_id], 0, GuardSettings(frozenset(items), self._time_budget_s)
        )
        try:
            self._fuse(fusion, rows, lambda item: item in items and not (sink and item == task.signature), topics=False)
            before = len(fusion.outputs)
            fusion.put(task.feeds if sink else outputs, TRIED)
            frame = fusion.result(packed=False)
            shown = [f"o{number}" for number in range(before, len(fusion.outputs))]
            if frame is None or not shown:
                return []
            rows_of = frame.select(F.explode(F.array(*shown)).alias("row")).where("row is not null").limit(most)
            return [row["text"] for row in rows_of.select(F.expr(f"to_json(row, {AS_JSON}) as text")).collect()]
        finally:
            release([fusion])

    def _fuse(
        self,
        fusion: Fusion,
        rows: DataFrame,
        runs: Callable[[str], bool],
        *,
        all_outputs: bool = False,
        packs: bool = False,
        topics: bool = True,
    ) -> list[Target]:
        """Add to a fusion the tasks and topics that are to run; returns where each output goes.

        With ``all_outputs`` the rows of every task are an output, so that no task is optimised away.
        """
        plan, fragment = fusion.plan, fusion.fragment
        targets = _Targets(fusion)
        self._enter(fusion, rows, runs, packs)
        if fragment.kind is Kind.KEYED:
            targets.add(HOST_LETTERS, fragment.id)
        targets.add(LETTERS, fragment.roots[0])
        for signature in filter(runs, fragment.tasks):
            task = plan.tasks.get(signature)
            if task is None or (fragment.kind is Kind.FEEDBACK and signature == fragment.roots[0]):
                continue
            targets.add(_add_task(fusion, task), signature)
            if all_outputs:
                fusion.put([Feed(signature, port.name, "in", None, None, False) for port in task.ports.outputs], TRIED)
        for topic in fragment.writes if topics else ():
            if runs(topic.id) and topic.chained is not None:
                does = shaped(plan, self._schemas, topic.chained)
                fusion.put_shaped(topic.feeds, Output(topic.id, "topic"), does)
                targets.add(TOPIC, topic.id)
            elif runs(topic.id):
                schema = self._schemas.of(plan, plan.tasks[topic.feeds[0].source])
                fusion.put(topic.feeds, Output(topic.id, "topic"), schema.names)
                targets.add(TOPIC, topic.id)
        return targets.list

    def _enter(self, fusion: Fusion, rows: DataFrame, runs: Callable[[str], bool], packs: bool) -> None:
        """Let an epoch's rows into a fusion."""
        plan, fragment = fusion.plan, fusion.fragment
        root = fragment.roots[0]
        if fragment.kind is Kind.KEYED:
            hosted = [plan.tasks[signature] for signature in fragment.roots]
            if packs:
                fusion.hosted_in_stage(hosted, rows, hosted_schema(self._topic_columns(plan)))
            else:
                fusion.hosted(hosted, unpacked(rows, self._topic_columns(plan)))
        elif fragment.kind is Kind.FEEDBACK:
            if root in plan.tasks and runs(root):
                fusion.feedback(plan.tasks[root], rows)
        elif fragment.kind is Kind.PROXY:
            fusion.proxy(plan.tasks[root], rows)
        elif fragment.kind is Kind.CHAINED:
            enter_chained(fusion, rows, self._schemas)
        else:
            fusion.source(root, rows)


class _Targets:
    """Where the outputs of a fusion go, one after the other."""

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self.list: list[Target] = []

    def add(self, kind: OutputKind, name: str) -> None:
        """The outputs that the fusion has got since the last call go there."""
        new = len(self._fusion.outputs) - len(self.list)
        self.list += [Target(kind, name, self._fusion.plan.number)] * new


def _add_task(fusion: Fusion, task: CompiledTask) -> OutputKind:
    """Add a task or a sink; returns the kind of the outputs that it brings."""
    if task.role is Role.SINK:
        fusion.put(task.feeds, Output(task.signature, form_of(task)))
        return SINK
    fusion.run(task)
    return LETTERS


def _is_not_in(some: set[str], item: str) -> bool:
    return item not in some
