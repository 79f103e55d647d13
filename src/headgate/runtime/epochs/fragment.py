"""A running fragment: one Spark streaming query whose every epoch runs a plan snapshot and commits its outputs once.

An epoch, step by step:

1. if it was committed before a failure, its deliveries are finished and nothing is run;
2. its snapshot is found: for rows from a source, the current one, made durable in the plan log first; for rows from the
   exchange, the one that they carry;
3. the fragment's tasks are fused into one Spark job, which stages all outputs (:mod:`headgate.runtime.epochs.epoch`);
4. the commit is made durable: from here on the epoch is never run again;
5. sinks and topics get their files. What a sink refuses is kept and offered again later; the others go on.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headgate.model.names import Signature
from headgate.runtime.compile.native import native_stream
from headgate.runtime.compile.plan import FED, CompiledPlan, Feed, Fragment, Kind
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.epoch import EpochResult, Epochs
from headgate.runtime.epochs.limits import admit, due_in
from headgate.runtime.epochs.plan_log import PlanLog
from headgate.runtime.exchange.files import INGEST, ORDER, SNAPSHOT, topic_columns
from headgate.runtime.io.sinks import StagedDelivery
from headgate.runtime.io.sources import read_source
from headgate.runtime.isolation.admission import Admission
from headgate.runtime.isolation.dead_letters import Letters
from headgate.runtime.keyed.host import groups_for, host, places_of
from headgate.runtime.observing.counting import RowCounts
from headgate.runtime.observing.job_tags import tagged
from headgate.runtime.observing.records import EpochRecord
from headgate.runtime.spark_internals.failures import JOB_FAILURES, reason_of
from headgate.runtime.spark_internals.internals import internals
from headgate.store.files import read_json, write_json
from headgate.tasks.replay import is_played, recorded_rows

__all__ = ["RunningFragment"]

ROWS_PER_BATCH = 500_000
"""The most rows that a fragment takes from a topic at once, whole batches of the topic aside."""


@dataclass(slots=True)
class LastEpoch:
    """What the last epoch of a fragment was like."""

    epoch: int = -1
    snapshot: int = 0
    rows_out: int = 0
    began: float = field(default_factory=time.time)
    seconds: float = 0.0


class RunningFragment:
    """A fragment's query, from its start to its stop."""

    def __init__(self, fragment: Fragment, number: int, context: FragmentContext) -> None:
        self.fragment = fragment
        self.context = context
        self.folder = context.state.fragment(fragment.id)
        self.log = PlanLog(self.folder / "plan_log.json")
        self.last = LastEpoch()
        self.query: StreamingQuery | None = None
        self.refusal: str | None = None
        """Why it could not be started, if it could not."""

        self.admission = Admission(context.trigger_s)
        admit(self.folder, self.admission.limit)
        self._raised: str | None = None
        """Why its last epoch failed, if one did."""

        self._ending = False
        self.epochs = Epochs(fragment, context, lambda: self._ending)
        self._at_work = threading.Lock()
        self._topics: list[str] = []
        """The topics it reads, in the order in which Spark notes their offsets."""

        self._begin(number)
        self._clear_false_start()
        self._replayed = self._epoch_to_replay()

    def _begin(self, number: int) -> None:
        """Remember, at the first start, where in its topics this fragment begins to read."""
        file = self.folder / "fragment.json"
        if not file.exists():
            start = {topic: self.context.exchange.head(topic) for topic in self.fragment.reads}
            groups = groups_for(int(self.context.spark.conf.get("spark.sql.shuffle.partitions") or 0))
            write_json(file, {"snapshot": number, "start": start, "run": uuid.uuid4().hex[:8], "groups": groups})
        begun = read_json(file)
        self.begun: int = begun["snapshot"]
        """The snapshot with which it came; where it is described should it have left the plan at a restart."""

        self._start: Mapping[str, int] = begun["start"]
        # Epochs count from 0 again when a fragment comes back after it was gone: sinks must not take them for old ones.
        self._run_id: str = begun["run"]
        self._groups: int = begun["groups"]

    def _clear_false_start(self) -> None:
        """Remove what Spark left when it was killed before its first epoch: it would not start over that."""
        checkpoint = self.folder / "checkpoint"
        if checkpoint.is_dir() and _last_number(checkpoint / "offsets") is None:
            shutil.rmtree(checkpoint)

    def _epoch_to_replay(self) -> int | None:
        """The epoch that Spark began and did not commit, if there is one."""
        begun, committed = (_last_number(self.folder / "checkpoint" / name) for name in ("offsets", "commits"))
        return begun if begun is not None and (committed is None or begun > committed) else None

    def is_past(self, number: int) -> bool:
        """Whether no epoch will run a plan before that one any more; for fragments that run the current plan."""
        if self.last.snapshot >= number:
            return True
        if not self._at_work.acquire(blocking=False):
            return False
        try:
            if self._epoch_to_replay() is not None:
                return False
            # Killed before it is logged, the next epoch would be taken for one of the plan before.
            done = _last_number(self.folder / "checkpoint" / "commits")
            self.log.record(0 if done is None else done + 1, self.context.current().number)
            return True
        finally:
            self._at_work.release()

    def snapshots_under_way(self) -> list[int]:
        """The snapshots that its epoch under way, or one that may be run again, names."""
        commit = read_json(self.folder / "commit.json") or {"targets": []}
        committed = [target["snapshot"] for target in commit["targets"]]
        return [*committed, *(number for _, number in self.log.entries[-2:])]

    def finish(self) -> None:
        """Deliver what was committed and not yet delivered; for a fragment that is not started again."""
        with self._at_work:
            commit = read_json(self.folder / "commit.json")
            if commit is not None and not commit["done"]:
                self._deliver(commit)
                write_json(self.folder / "commit.json", {**commit, "done": True})

    # the stream

    def prepare(self, plan: CompiledPlan) -> DataFrame:
        """The fragment's stream, up to where its epochs begin; raises before anything has been started."""
        self._topics.clear()
        root = plan.tasks[plan.fragments[self.fragment.id].roots[0]]
        if self.fragment.kind is Kind.SOURCE:
            return read_source(self.context.spark, root, self.context.limit(root.signature), self.folder)
        if self.fragment.kind is Kind.NATIVE:
            sides: dict[int, list[DataFrame]] = {}
            for side in sorted({feed.side or 0 for feed in self.fragment.feeds}):
                feeds = [feed for feed in self.fragment.feeds if (feed.side or 0) == side]
                sides[side] = [self._topic(plan, topic, feeds[0]) for topic in self._topics_of(plan, feeds)]
            joined = [reduce(DataFrame.unionByName, parts).drop(INGEST, SNAPSHOT, ORDER) for parts in sides.values()]
            return native_stream(root, joined)
        feed = self.fragment.feeds[0]
        rows = reduce(DataFrame.unionByName, [self._topic(plan, topic, feed) for topic in self.fragment.reads])
        if self.fragment.kind is Kind.KEYED:
            columns = topic_columns(self.context.schemas.of(plan, plan.tasks[feed.source]))
            return host(rows, columns, self.fragment.key, self.fragment.id, self.context.state.path / "hosts")
        return rows

    def _topics_of(self, plan: CompiledPlan, feeds: Sequence[Feed]) -> list[str]:
        wanted = set(feeds)
        writers = plan.fragments.values()
        return [t.id for w in writers for t in w.writes if t.reader == self.fragment.id and wanted & set(t.feeds)]

    def _topic(self, plan: CompiledPlan, topic: str, feed: Feed) -> DataFrame:
        columns = topic_columns(self.context.schemas.of(plan, plan.tasks[feed.source]))
        self._topics.append(topic)
        reader = self.context.spark.readStream.format("headgate_exchange").option("columns", columns.json())
        if self.fragment.kind is Kind.KEYED:
            packing = {"key": places_of(columns.names, self.fragment.key), "groups": self._groups}
            reader = reader.option("packing", json.dumps(packing))
        reader = reader.option("folder", str(self.context.exchange.folder(topic)))
        reader = reader.option("rank", len(self._topics)).option("limits", str(self.folder))
        if len(self._topics) == 1:
            started = {str(self.context.exchange.folder(name)): self._start[name] for name in self.fragment.reads}
            reader = reader.option("topics", json.dumps(started)).option("wait_s", self.context.trigger_s)
        return reader.option("start", self._start[topic]).option("rows_per_batch", ROWS_PER_BATCH).load()

    def start(self, stream: DataFrame) -> None:
        """Start the query."""
        context = self.context.spark.sparkContext
        internals(self.context.spark).scheduler_pool(self.fragment.id)
        context.setLocalProperty("spark.scheduler.pool", self.fragment.id)
        writer = stream.writeStream.queryName(self.fragment.id).foreachBatch(self._epoch)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        # Readers of topics wait by themselves, for rows and not for the clock.
        every_s = self.context.trigger_s if self.fragment.kind is Kind.SOURCE else 0
        # The query's thread inherits the tag, by which its jobs are cancelled when they take too long.
        context.addJobTag(self.fragment.id)
        try:
            self.query = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds").start()
        finally:
            context.removeJobTag(self.fragment.id)

    def end(self) -> None:
        """Let the epoch under way be the last."""
        self._ending = True

    def stop(self, patience_s: float = 30.0) -> None:
        """Stop the query, after the epoch that is under way if it ends in time."""
        self.end()
        if self.query is None:
            return
        until = time.monotonic() + patience_s
        while self.query.isActive and self._epoch_to_replay() is not None and time.monotonic() < until:
            time.sleep(0.01)
        self.query.stop()

    @property
    def failure(self) -> str | None:
        """Why the query ended or could not be started, if it failed."""
        if self.refusal is not None or self._ending:
            return self.refusal
        if self.query is None or self.query.isActive:
            return None
        error = self.query.exception()
        return self._raised if error is None else reason_of(str(error))

    def behind(self) -> int:
        """How many rows have come, to its topics or to a source that tells, whose epoch is not done yet."""
        return self._in_topics() + self._at_source()

    def held_back(self) -> int:
        """How many rows wait in its topics, or at its source because of a limit."""
        due = due_in(self.folder)
        return self._in_topics() + (0 if due is None else due.held_back)

    def _in_topics(self) -> int:
        return sum(self.context.exchange.rows_behind(topic) for topic in self.fragment.reads)

    def _at_source(self) -> int:
        due = due_in(self.folder)
        if due is None:
            return 0
        come = due.by(time.time()) if self.query is not None and self.query.isActive else due.rows
        total = recorded_rows(self.folder)
        return max((come if total is None else min(come, total)) - self._rows_played(), 0)

    def has_more(self) -> bool:
        """Whether there are rows that it has not read yet, as far as can be known."""
        return self.held_back() > 0 or not is_played(self.folder, self._rows_played())

    def _rows_played(self) -> int:
        """How many rows of a recording have been taken in, from what Spark noted of the last epoch that is done."""
        done = _last_number(self.folder / "checkpoint" / "commits")
        if done is None:
            return 0
        noted = (self.folder / "checkpoint" / "offsets" / str(done)).read_text(encoding="utf-8").splitlines()
        return next((json.loads(line)["rows"] for line in noted if line.startswith('{"rows"')), 0)

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
        began = time.time()
        commit_file = self.folder / "commit.json"
        stored = read_json(commit_file) if epoch == self._replayed else None
        ends = self._ends(epoch)
        waiting = [batch for topic, end in ends.items() for batch in self.context.exchange.waiting(topic, end)]
        tag = f"{self.fragment.id}-{self._run_id}-{epoch}"
        if stored is not None and stored["epoch"] == epoch:
            self.epochs.remember(rows)
            outcome = EpochResult(stored)
        else:
            plans = self._plans(epoch)
            with tagged(self.context.spark, tag):
                # Where nothing is known of when rows came in, they did so one by one since the last epoch began.
                outcome = self.epochs.run(rows, epoch, plans, _mean_us(waiting, (began + self.last.began) / 2))
            if outcome.commit["targets"]:
                write_json(commit_file, outcome.commit)
            self.last.snapshot = plans[-1].number if plans else self.last.snapshot
        commit = outcome.commit
        committed = time.time()
        delivered: dict[Signature, float] = {}
        if not commit["done"]:
            delivered = self._deliver(commit)
            write_json(commit_file, {**commit, "done": True})
        for topic, end in ends.items():
            self.context.exchange.done(topic, end)
        ended = time.time()
        read = sum(count for count, _ in waiting) if ends else self._rows_read(epoch, outcome.counts)
        self._hold_back(read, ended - began)
        resting = self.epochs.quarantine.resting()
        if resting:
            self.epochs.quarantine.miss(resting, self._rows_last_read() if read is None else read)
        self.last.epoch, self.last.began, self.last.seconds = epoch, began, ended - began
        put_out = [target for target in commit["targets"] if target["kind"] != "letters"]
        self.last.rows_out = sum(count for target in put_out for _, count in target["files"])
        if outcome.commit is not stored and self.context.counting:
            if self.fragment.kind in (Kind.SOURCE, Kind.NATIVE):
                outcome.counts[self.fragment.roots[0], "in"] = read or 0
            arrivals = {
                sink: [replace(some, at=delivered[sink]) for some in found]
                for sink, found in outcome.arrivals.items()
                if sink in delivered
            }
            times = began, committed, ended
            self.context.records.add(
                EpochRecord(self.fragment.id, epoch, tag, *times, read or 0, outcome.counts, arrivals)
            )

    def _rows_read(self, epoch: int, counts: RowCounts) -> int | None:
        """How many rows an epoch has read from a source; ``None`` where that is not known by cheap means."""
        if self.context.counting:
            return counts[self.fragment.roots[0], "out"]
        end, start = (self._played(number) for number in (epoch, epoch - 1))
        return None if end is None else end - (start or 0)

    def _rows_last_read(self) -> int:
        """How many rows Spark's own sources have read, by what it tells of the epoch before this one."""
        progress = self.query.lastProgress if self.query is not None else None
        return int(progress["numInputRows"]) if progress else 0

    def _played(self, epoch: int) -> int | None:
        """Up to which row of a recording an epoch reads."""
        file = self.folder / "checkpoint" / "offsets" / str(epoch)
        noted = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return next((json.loads(line)["rows"] for line in noted if line.startswith('{"rows"')), None)

    def _hold_back(self, rows: int | None, seconds: float) -> None:
        """Admit fewer rows if they take longer than a trigger, and more if they do not."""
        before = self.admission.limit
        sources = sum(found.kind is Kind.SOURCE for found in self.context.current().fragments.values())
        if sources < 2:  # there is nobody else to make room for
            self.admission.lift()
        elif rows is not None:
            self.admission.epoch(rows, seconds)
        if self.admission.limit != before:
            admit(self.folder, self.admission.limit)

    def _plans(self, epoch: int) -> list[CompiledPlan]:
        """The plans that an epoch's rows belong to."""
        if self.fragment.kind is Kind.KEYED or self.fragment.kind in FED:
            return [self.context.plan(number) for number in self._carried(epoch)]
        number = self.log.at(epoch) if epoch == self._replayed else None
        plan = self.context.current() if number is None else self.context.plan(number)
        self.log.record(epoch, plan.number)
        return [plan]

    def _ends(self, epoch: int) -> dict[str, int]:
        """Up to which batch of each topic an epoch reads, from what Spark noted before it began."""
        if not self.fragment.reads:
            return {}
        noted = (self.folder / "checkpoint" / "offsets" / str(epoch)).read_text(encoding="utf-8").splitlines()
        ends = [json.loads(line)["number"] for line in noted if line.startswith('{"number"')]
        return dict(zip(self._topics, ends, strict=True))

    def _carried(self, epoch: int) -> list[int]:
        """The snapshots that the rows of an epoch carry: those of the last batch that each topic contributed."""
        found = {self.context.exchange.snapshot_of(topic, end) for topic, end in self._ends(epoch).items()}
        return sorted(number for number in found if number is not None)

    def _deliver(self, commit: Mapping[str, Any]) -> dict[Signature, float]:
        """Hand over what an epoch has committed; returns when each sink had its rows."""
        delivered = {}
        for target in commit["targets"]:
            files = [(path, rows) for path, rows in target["files"]]
            if target["kind"] == "topic":
                described = target["number"], target["snapshot"], files, target["ingested_us"]
                self.context.exchange.publish(target["name"], *described)
            elif target["kind"] == "letters":
                self._keep_failed(commit["epoch"], target, files)
            else:
                delivery = StagedDelivery(
                    f"{self.fragment.id}-{self._run_id}", commit["epoch"], target["snapshot"], files
                )
                self.context.outbox(target["snapshot"], Signature(target["name"]), delivery)
                delivered[Signature(target["name"])] = time.time()
        return delivered

    def _keep_failed(self, epoch: int, target: Mapping[str, Any], files: Sequence[tuple[str, int]]) -> None:
        """Keep or count the rows for which a task raised."""
        task = self.context.plan(target["snapshot"]).tasks[Signature(target["name"])]
        origin = f"{self.fragment.id}-{self._run_id}-{target['snapshot']}"
        self.context.dead_letters.take(
            Letters(
                task.signature,
                task.name,
                task.users,
                task.on_error,
                origin,
                target["snapshot"],
                epoch,
                files,
                target["reasons"],
            )
        )


def _mean_us(waiting: Sequence[tuple[int, int]], now: float) -> int:
    """When the events of some batches were taken in, in the mean; ``now``, if there are none."""
    rows = sum(count for count, _ in waiting)
    return sum(count * ingested for count, ingested in waiting) // rows if rows else int(now * 1e6)


def _last_number(folder: Path) -> int | None:
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=None)
