"""A fragment of windows and joins: its epochs fold chains of state, and what comes out runs on as in any fragment.

Spark's query is the clock; it has no rows. An epoch first folds the chains, in a job whose workers map the files of the
exchange (:mod:`headgate.runtime.chains.host`), and then runs the tasks behind them over the rows that come out, if any
do. The commit of the epoch names the files of state, so that state and outputs are there together, or neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from headgate.runtime.chains.clock import TOPICS, clock_stream
from headgate.runtime.chains.host import ChainHost, FoldedEpoch, FoldedTask
from headgate.runtime.chains.jobs import registered_chain
from headgate.runtime.chains.made_rows import MadeRows, made_frame
from headgate.runtime.chains.spark_jobs import SparkChainJobs
from headgate.runtime.chains.topics import ChainTopics
from headgate.runtime.compile.plan import CompiledPlan, Fragment, Kind
from headgate.runtime.epochs.commit import EpochResult
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.epochs.splits import Splits
from headgate.runtime.observing.counting import RowCounts
from headgate.runtime.observing.job_tags import tagged
from headgate.runtime.spark_internals.failures import JOB_FAILURES, storage_refused
from headgate.store.entries import FragmentBegun

__all__ = ["ChainedFragment", "running_fragment"]


def running_fragment(fragment: Fragment, number: int, context: FragmentContext) -> RunningFragment:
    """A fragment of a plan of that number, to be started."""
    kind = ChainedFragment if fragment.kind is Kind.CHAINED else RunningFragment
    return kind(fragment, number, context)


class ChainedFragment(RunningFragment):
    """A host of chains."""

    def __init__(self, fragment: Fragment, number: int, context: FragmentContext) -> None:
        super().__init__(fragment, number, context)
        self._topics = ChainTopics(self.folder)
        if fragment.id in context.current().fragments or not self._topics.all():
            self._topics.adopt(fragment, number)  # otherwise it has left, and reads what it still has to
        partitions = int(context.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        jobs = SparkChainJobs(context.spark, self.folder / "chains")
        self._chains = ChainHost(jobs, self.folder / "outputs", partitions, self._offer)

    def _offer(self, work: Callable[[], None]) -> bool:
        """Do something in the background, when there is room."""
        nothing = self.context.spark.range(1)
        return self.context.background.offer(nothing, lambda _: work())

    def _begin(self, number: int) -> FragmentBegun:
        for topic in self.fragment.reads:  # of a run that is over
            self.context.exchange.forget(topic)
        return super()._begin(number)

    def adopt(self, fragment: Fragment, number: int) -> None:
        super().adopt(fragment, number)
        self._topics.adopt(fragment, number)

    def topics(self) -> Sequence[str]:
        return list(self._topics.all())

    def drop_topics(self, is_drained: Callable[[str, int], bool]) -> list[str]:
        """Read topics of tasks that are gone no more, once they are drained; returns them."""
        return self._topics.drop(is_drained)

    def snapshots_under_way(self) -> list[int]:
        last = [topic.left - 1 for topic in self._topics.all().values() if topic.left is not None]
        return [*super().snapshots_under_way(), *last]

    def prepare(self, plan: CompiledPlan) -> DataFrame:
        for root in plan.fragments[self.fragment.id].roots:
            self.context.schemas.chain(plan, plan.tasks[root])
        return clock_stream(self.context.spark, self.folder, self.context.exchange, self.context.trigger_s)

    def _ends(self, epoch: int) -> dict[str, int]:
        offset = self._checkpoint.whole_offset(epoch, TOPICS) or {TOPICS: {}}
        return {topic: int(end) for topic, end in offset[TOPICS].items()}

    def _plans(self, epoch: int) -> list[CompiledPlan]:
        """The plan that the rows of an epoch belong to; they have one snapshot."""
        exchange = self.context.exchange
        new = {topic: end for topic, end in self._ends(epoch).items() if end > exchange.position(topic)}
        carried = {exchange.snapshot_of(topic, end) for topic, end in new.items()}
        return [self.context.plan(number) for number in sorted(number for number in carried if number is not None)]

    def _run(self, rows: DataFrame, epoch: int, plans: Sequence[CompiledPlan], ingested_us: int) -> EpochResult:
        del rows  # there are none
        commit = self._commit()
        before = () if commit is None else commit.chains
        if not plans:
            return EpochResult(chains=before)
        (plan,) = plans
        self._planned = plan.number
        with tagged(self.context.spark, self._tag(epoch)):
            folded = self._folded(epoch, plan)
            result = self._put_out(folded, epoch, plan, ingested_us)
        self.last.snapshot = plan.number
        return replace(result, counts=result.counts + _counts(folded), chains=folded.kept)

    def _folded(self, epoch: int, plan: CompiledPlan) -> FoldedEpoch:
        """Fold the chains of an epoch; tasks that raise rest, as others do."""
        commit, ends, quarantine = self._commit(), self._ends(epoch), self.epochs.quarantine
        here = plan.fragments.get(self.fragment.id)
        resting = quarantine.resting()
        inputs: dict[str, dict[int, list[str]]] = {}
        for topic, one in self._topics.all().items():
            files = self.context.exchange.files(topic, ends.get(topic, -1))
            if files:
                inputs.setdefault(one.whose.life, {}).setdefault(one.whose.side, []).extend(files)
        tasks = []
        for task in (plan.tasks[root] for root in (here.roots if here is not None else ())):
            if task.life in inputs and task.signature not in resting:
                known = self.context.schemas.chain(plan, task)
                sides = tuple(tuple(inputs[task.life].get(side, ())) for side in range(len(known.sides)))
                tasks.append(FoldedTask(task.signature, task.life, known, sides, task.partitions))
        fold = partial(self._chains.fold, epoch, () if commit is None else commit.chains, tasks, self._is_needed)
        try:
            folded = fold()
        except JOB_FAILURES as error:
            if self._ending or storage_refused(str(error)):
                raise
            folded = fold()  # what a fold raises is a result; the job fails if a worker ends
        for signature, reason in folded.failed.items():
            quarantine.put(signature, reason, by_trial=False)
        quarantine.passed([task.signature for task in tasks if task.signature not in folded.failed])
        return folded

    def _is_needed(self, life: str) -> bool:
        """Whether the state of a life is still needed: its task runs, or rows of it are still to come."""
        return any(topic.whose.life == life for topic in self._topics.all().values())

    def _put_out(self, folded: FoldedEpoch, epoch: int, plan: CompiledPlan, ingested_us: int) -> EpochResult:
        """Run what is behind the chains over the rows that come out."""
        if not folded.outputs:
            return EpochResult()
        schemas = self.context.schemas
        roots = plan.fragments[self.fragment.id].roots
        columns = [(root, registered_chain(schemas.chain(plan, plan.tasks[root]))[2].output) for root in roots]
        reader = MadeRows(tuple((root, schema.serialize().to_pybytes()) for root, schema in columns))
        splits = [(ingested_us, files) for files in folded.outputs]
        frame = made_frame(self.context.spark, reader, splits)
        return self.epochs.run(frame, epoch, [plan], ingested_us, Splits(reader, splits))

    def _note(self, epoch: int, result: EpochResult, began: float, ended: float) -> None:
        super()._note(epoch, result, began, ended)
        commit = self._commit()
        self._chains.tidy(() if commit is None else commit.chains)


def _counts(folded: FoldedEpoch) -> RowCounts:
    counts: RowCounts = Counter()
    for signature, parts in folded.parts.items():
        counts[signature, "in"] += sum(part.read for part in parts)
        counts[signature, "out"] += sum(part.rows for part in parts)
        counts[signature, "late"] += sum(part.late for part in parts)
    return counts
