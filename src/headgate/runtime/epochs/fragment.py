"""A running fragment: one Spark streaming query whose every epoch runs a plan snapshot and commits its outputs once.

An epoch, step by step:

1. if it was committed before a failure, its deliveries are finished and nothing is run;
2. its snapshot is chosen: for rows from a source, the current one; for rows from the exchange, the one that they carry.
   An epoch that was not committed has left nothing behind, so one that is run again is planned anew;
3. the fragment's tasks are fused into one Spark job, which stages all outputs (:mod:`headgate.runtime.epochs.epoch`);
4. the commit is made durable: from here on the epoch is never run again;
5. sinks and topics get their files (:mod:`headgate.runtime.epochs.delivery`). What a sink refuses is queued and
   retried; the others go on.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headgate.model.names import Signature
from headgate.runtime.compile.plan import FED, CompiledPlan, Fragment, Kind
from headgate.runtime.epochs.backlog import Backlog
from headgate.runtime.epochs.commit import EpochResult
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.delivery import Deliveries
from headgate.runtime.epochs.epoch import Epochs
from headgate.runtime.epochs.fused_jobs import FusedJobs
from headgate.runtime.epochs.last_epoch import LastEpoch, mean_us
from headgate.runtime.epochs.splits import SourceReader, Splits
from headgate.runtime.epochs.stream import TopicStream
from headgate.runtime.io.broken_records import broken_records
from headgate.runtime.io.sources import read_source, split_reader
from headgate.runtime.isolation.admission import Admission
from headgate.runtime.isolation.failed_rows import FailedRows
from headgate.runtime.isolation.quarantine import Quarantine
from headgate.runtime.isolation.reasons import ReasonFinder, Reasons
from headgate.runtime.keyed.host import groups_for
from headgate.runtime.observing.counting import RowCounts
from headgate.runtime.observing.job_tags import tagged
from headgate.runtime.observing.records import EpochRecord
from headgate.runtime.spark_internals.checkpoint import Checkpoint
from headgate.runtime.spark_internals.failures import JOB_FAILURES, reason_of
from headgate.runtime.spark_internals.internals import internals
from headgate.store.entries import Delivered, EpochCommitted, FragmentBegun, FragmentRemoved, OutputKind, StagedRows
from headgate.store.files import damaged
from headgate.store.journal import Journal
from headgate.tasks.source_folder import admit

__all__ = ["RunningFragment", "begun_in"]

Times = tuple[float, float, float]
"""When an epoch began, was committed and ended."""


class RunningFragment:
    """A fragment's query, from its start to its stop."""

    def __init__(self, fragment: Fragment, number: int, context: FragmentContext) -> None:
        self.fragment = fragment
        self.context = context
        self.folder = context.state.fragment(fragment.id)
        self.last, self.started = LastEpoch(), time.time()
        self.query: StreamingQuery | None = None
        self.refusal: str | None = None
        """Why it could not be started, if it could not."""

        self.admission = Admission(context.trigger_s)
        admit(self.folder, self.admission.limit)
        self._raised: str | None = None
        """Why its last epoch failed, if one did."""

        self._ending = False
        self.epochs = _epochs(fragment, context, lambda: self._ending)
        self._at_work = threading.Lock()
        self._journal = context.state.journal
        self.begun = begun_in(self._journal, fragment.id) or self._begin(number)
        """With which snapshot it came; it is described there if it has left the plan at a restart."""

        place = self.folder, context.state.path / "hosts", self.begun.start, self.begun.groups
        self._stream = TopicStream(context.spark, context.exchange, context.schemas, *place, context.trigger_s)
        self._deliveries = Deliveries(context.exchange, context.outbox, context.dead_letters, context.plan)
        self._planned: int | None = None
        """The snapshot of the epoch that runs."""

        self._checkpoint = Checkpoint(self.folder / "checkpoint")
        read = self.folder, self._checkpoint, context.exchange
        self.backlog = Backlog(*read, lambda: self.fragment.reads, self._is_active)
        self.epochs.broken_lines = self._broken_lines
        self._reader: SourceReader | None = None
        self._check_commits()
        self._checkpoint.clear_false_start()

    def _begin(self, number: int) -> FragmentBegun:
        """Begin anew: after all that is in its topics now."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        start = {topic: self.context.exchange.head(topic) for topic in self.fragment.reads}
        groups = groups_for(int(self.context.spark.conf.get("spark.sql.shuffle.partitions") or 0))
        return FragmentBegun(self.fragment.id, number, uuid.uuid4().hex[:8], start, groups)

    def _check_commits(self) -> None:
        """Raise unless the journal has every epoch that Spark has committed; let Spark have the last one."""
        done, commit = self._checkpoint.last_committed(), self._commit()
        if commit is not None and commit.offsets:
            self._checkpoint.restore(commit.epoch, commit.offsets)
        if done is not None and (commit is None or commit.epoch < done):
            raise damaged(self._journal.path, f"lacks epoch {done} of fragment {self.fragment.id}, which Spark has")

    def _commit(self) -> EpochCommitted | None:
        """The last epoch that was committed."""
        return self._journal.latest(EpochCommitted, self.begun.origin)

    def _is_delivered(self, commit: EpochCommitted) -> bool:
        delivered = self._journal.latest(Delivered, commit.origin)
        return not commit.outputs or (delivered is not None and delivered.epoch == commit.epoch)

    def is_past(self, number: int) -> bool:
        """Whether no epoch will run a plan before that one any more; for fragments that run the current plan.

        Epochs to come run the current plan, also one that has begun and is run again after a failure.
        """
        if self.last.snapshot >= number:
            return True
        if not self._at_work.acquire(blocking=False):
            return False
        try:
            commit = self._commit()
            return commit is None or self._is_delivered(commit)
        finally:
            self._at_work.release()

    def between_epochs(self, do: Callable[[Mapping[str, Any]], None], patience_s: float = 0.0) -> bool:
        """Do something with the offset up to which was read, unless an epoch is running; returns whether."""
        is_free = self._at_work.acquire(timeout=patience_s)
        if is_free:
            try:
                do(self.last_offset())
            finally:
                self._at_work.release()
        return is_free

    def last_batch(self) -> int:
        """The number of the batch of files up to which epochs that were committed have read."""
        return int(self.last_offset().get("batch", 0))

    def rows_read(self) -> int:
        """The rows that they have read, where their source counts them."""
        return int(self.last_offset().get("rows", 0))

    def last_offset(self) -> Mapping[str, Any]:
        """The offset up to which they have read; empty before the first, and where its source counts no rows."""
        commit = self._commit()
        return {} if commit is None else self._checkpoint.whole_offset(commit.epoch, "rows") or {}

    def is_delivered(self) -> bool:
        """Whether sinks and topics have what was committed."""
        commit = self._commit()
        return commit is None or self._is_delivered(commit)

    def snapshots_under_way(self) -> list[int]:
        """The snapshots of the running epoch, and of the last one that was committed."""
        commit, planned = self._commit(), self._planned
        committed = [] if commit is None else [output.target.snapshot for output in commit.outputs]
        return committed if planned is None else [*committed, planned]

    def finish(self) -> None:
        """Deliver what was committed and not yet delivered; for a fragment that is not started again."""
        with self._at_work:
            commit = self._commit()
            if commit is not None and not self._is_delivered(commit):
                self._deliver(commit)

    # the query

    def prepare(self, plan: CompiledPlan) -> DataFrame:
        """The fragment's stream, up to where its epochs begin; raises before anything has been started."""
        if self.fragment.kind is Kind.SOURCE:
            root = plan.tasks[plan.fragments[self.fragment.id].roots[0]]
            self._reader = split_reader(self.context.spark, root, self.folder)
            return read_source(self.context.spark, root, self.context.limit(root.signature), self.folder)
        return self._stream.build(plan, self.fragment)

    def start(self, stream: DataFrame) -> None:
        """Start the query, in a scheduler pool and with a job tag of its own."""
        if begun_in(self._journal, self.fragment.id) != self.begun:
            self._journal.append(self.begun)
        spark = self.context.spark
        internals(spark).scheduler_pool(self.fragment.id)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.fragment.id)
        writer = stream.writeStream.queryName(self.fragment.id).foreachBatch(self._epoch)
        writer = writer.option("checkpointLocation", str(self._checkpoint.folder))
        # Readers of topics wait by themselves, for rows and not for the clock.
        every_s = self.context.trigger_s if self.fragment.kind is Kind.SOURCE else 0
        with tagged(spark, self.fragment.id):  # the query's thread inherits the tag, by which its jobs are cancelled
            self.query = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds").start()

    def end(self) -> None:
        """Start no further epoch."""
        self._ending = True

    def stop(self, patience_s: float = 30.0) -> None:
        """Stop the query, after the running epoch if it ends in time."""
        self.end()
        if self.query is None:
            return
        until = time.monotonic() + patience_s
        while self._is_active() and self._checkpoint.epoch_to_replay() is not None and time.monotonic() < until:
            time.sleep(0.01)
        self.query.stop()

    def _is_active(self) -> bool:
        return self.query is not None and self.query.isActive

    @property
    def failure(self) -> str | None:
        """Why the query ended or could not be started, if it failed."""
        if self.refusal is not None or self._ending:
            return self.refusal
        if self.query is None or self.query.isActive:
            return None
        error = self.query.exception()
        return self._raised if error is None else reason_of(str(error))

    # an epoch

    def _epoch(self, rows: DataFrame, epoch: int) -> None:
        with self._at_work:
            if self._ending:
                raise RuntimeError("the fragment is being stopped; this epoch runs when it is started again")
            try:
                self._work(rows, epoch)
            except JOB_FAILURES as error:
                # Spark searches what is raised here with an expression that overflows its stack on a long text, and
                # the query would end without a word.
                self._raised = reason_of(str(error))
                raise RuntimeError(self._raised) from None

    def _work(self, rows: DataFrame, epoch: int) -> None:
        self.context.finish_redrives()
        began = time.time()
        ends = self._ends(epoch)
        batches = [batch for topic, end in ends.items() for batch in self.context.exchange.waiting(topic, end)]
        commit = self._commit()
        replayed = commit is not None and commit.epoch == epoch
        if commit is not None and replayed:
            self.epochs.absorb(rows)
            result = EpochResult(commit.outputs)
        else:
            # Where it is not known when rows came in, they did so one by one since the last epoch began.
            plans = self._plans(epoch)
            if self.fragment.kind is Kind.SOURCE:
                self.context.settle(self.fragment, plans[-1].number, self.last_offset())
            result = self._run(rows, epoch, plans, mean_us(batches, (began + self.last.began) / 2))
            numbers = tuple(plan.number for plan in plans)
            offsets = self._checkpoint.offsets_text(epoch)
            commit = EpochCommitted(self.begun.origin, epoch, numbers, result.outputs, offsets)
            self._journal.append(commit)
        committed = time.time()
        delivered = {} if self._is_delivered(commit) else self._deliver(commit)
        for topic, end in ends.items():
            self.context.exchange.done(topic, end)
        ended = time.time()
        read = sum(count for count, _ in batches) if ends else self._rows_read(epoch, result.counts)
        self._admit(read, ended - began)
        self._note_missed(read)
        self.last.rows_in = self._as_spark_counts() if read is None else read
        self._note(epoch, result, began, ended)
        if not replayed and self.context.counting:
            self._record(epoch, result, (began, committed, ended), read or 0, delivered)

    def _run(self, rows: DataFrame, epoch: int, plans: Sequence[CompiledPlan], ingested_us: int) -> EpochResult:
        """Run an epoch; nothing of it is durable before it is committed."""
        self._planned = min((plan.number for plan in plans), default=None)
        with tagged(self.context.spark, self._tag(epoch)):
            result = self.epochs.run(rows, epoch, plans, ingested_us, self._splits(epoch))
        self.last.snapshot = plans[-1].number if plans else self.last.snapshot
        return result

    def _splits(self, epoch: int) -> Splits | None:
        """The parts of an epoch's input, if workers can read them by themselves."""
        if self._reader is None:
            return None
        start, end = (self._checkpoint.whole_offset(at, "batch") for at in (epoch - 1, epoch))
        if end is None or (epoch > 0 and start is None):
            return None
        return Splits(self._reader, self._reader.partitions(start or {"batch": 0}, end))

    def _tag(self, epoch: int) -> str:
        """The tag of an epoch's jobs."""
        return f"{self.begun.origin}-{epoch}"

    def _deliver(self, commit: EpochCommitted) -> dict[Signature, float]:
        """Deliver a commit, and note that: a power loss may take the note, and what is delivered again changes little.

        Kafka and functions get it twice then; files, tables and topics know it.
        """
        delivered = self._deliveries.deliver(commit)
        self._journal.append(Delivered(commit.origin, commit.epoch), durable=False)
        return delivered

    def _plans(self, epoch: int) -> list[CompiledPlan]:
        """The plans that an epoch's rows belong to."""
        if self.fragment.kind is Kind.KEYED or self.fragment.kind in FED:
            carried = {self.context.exchange.snapshot_of(topic, end) for topic, end in self._ends(epoch).items()}
            return [self.context.plan(number) for number in sorted(number for number in carried if number is not None)]
        return [self.context.current()]

    def _ends(self, epoch: int) -> dict[str, int]:
        """Up to which batch of each topic an epoch reads, from the offsets that Spark stored before it began."""
        if not self.fragment.reads:
            return {}
        return dict(zip(self._stream.topics, self._checkpoint.offsets(epoch, "number"), strict=True))

    # what is noted of an epoch

    def _broken_lines(self, epoch: int) -> list[StagedRows]:
        """The files with what its source could not read in an epoch."""
        batches = self._checkpoint.offsets(epoch, "batch")
        return [StagedRows(*file) for file in broken_records(self.folder, batches[0])] if batches else []

    def _rows_read(self, epoch: int, counts: RowCounts) -> int | None:
        """How many rows an epoch has read from a source; ``None`` where counting them would cost too much."""
        if self.context.counting:
            return counts[self.fragment.roots[0], "out"]
        end, start = (next(iter(self._checkpoint.offsets(at, "rows")), None) for at in (epoch, epoch - 1))
        return None if end is None else end - (start or 0)

    def _admit(self, rows: int | None, seconds: float) -> None:
        """Admit fewer rows if they take longer than a trigger, and more if they do not."""
        limit = self.admission.limit
        sources = sum(fragment.kind is Kind.SOURCE for fragment in self.context.current().fragments.values())
        # With no other source to make room for, only whoever decides needs epochs to end.
        most_s = self.context.trigger_s if sources > 1 else self.context.longest_s()
        if most_s is None:
            self.admission.lift()
        elif rows is not None:
            self.admission.trigger_s = most_s
            self.admission.epoch(rows, seconds)
        if self.admission.limit != limit:
            admit(self.folder, self.admission.limit)

    def _note_missed(self, read: int | None) -> None:
        """Count the rows that have passed resting tasks."""
        resting = self.epochs.quarantine.resting()
        if not resting:
            return
        self.epochs.quarantine.miss(resting, self._as_spark_counts() if read is None else read)

    def _as_spark_counts(self) -> int:
        """The rows of the epoch before this one, as Spark reports them."""
        progress = self.query.lastProgress if self.query is not None else None
        return int(progress["numInputRows"]) if progress else 0

    def _note(self, epoch: int, result: EpochResult, began: float, ended: float) -> None:
        self.last.rows_per_s = self.last.rows_in / max(began - self.last.began, 0.001)
        self.last.epoch, self.last.began, self.last.seconds = epoch, began, ended - began
        self.last.rows_out = sum(one.rows for one in result.outputs if one.target.kind is not OutputKind.LETTERS)

    def _record(
        self, epoch: int, result: EpochResult, times: Times, read: int, delivered: dict[Signature, float]
    ) -> None:
        """Hand what was measured of an epoch to observers."""
        if self.fragment.kind in (Kind.SOURCE, Kind.NATIVE):
            result.counts[self.fragment.roots[0], "in"] = read
        arrived = {sink: some for sink, some in result.arrivals.items() if sink in delivered}
        arrivals = {sink: [replace(one, at=delivered[sink]) for one in some] for sink, some in arrived.items()}
        about = self.fragment.id, epoch, self._tag(epoch)
        self.context.records.add(EpochRecord(*about, *times, read, result.counts, arrivals, self.last.snapshot))


def begun_in(journal: Journal, fragment: str) -> FragmentBegun | None:
    """The run of a fragment that has begun and not been removed."""
    begun, removed = journal.latest(FragmentBegun, fragment), journal.latest(FragmentRemoved, fragment)
    return begun if begun is not None and (removed is None or removed.run != begun.run) else None


def _epochs(fragment: Fragment, context: FragmentContext, stopping: Any) -> Epochs:
    quarantine, reasons = Quarantine(), Reasons()
    finder = ReasonFinder(context.spark, context.schemas, context.background.offer, reasons)
    return Epochs(
        fragment,
        FusedJobs(context.spark, fragment.id, context.schemas, context.time_budget_s, context.counting),
        FailedRows(fragment.id, quarantine, reasons, finder.explain),
        quarantine,
        context.background,
        context.profiler,
        context.exchange.head,
        context.state.path / "staging" / fragment.id,
        context.time_budget_s,
        context.spark.sparkContext.cancelJobsWithTag,
        stopping,
        tails=context.tails,
    )
