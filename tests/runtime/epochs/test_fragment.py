"""A fragment driven by hand, without a JVM: what is committed and delivered, and what happens after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan, Kind
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.fragment import RunningFragment, begun_in
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.io.sinks import StagedDelivery
from headgate.runtime.isolation.dead_letters import DeadLetters
from headgate.runtime.observing.records import Records
from headgate.runtime.observing.tails import Tails
from headgate.store.entries import EpochCommitted, FragmentRemoved
from headgate.tasks.source_folder import limit_of
from tests.compiled import plan_of
from tests.runtime.fakes import (
    FakeBackground,
    FakeJobs,
    FakeProfiler,
    FakeRows,
    FakeSpark,
    Function,
    Row,
    read,
    task_id,
)
from tests.runtime.small import files, flow, memory

SOURCE = {"id": "src", **files(Path("in"))}
KEPT = {"id": "kept", "type": "filter", "config": {"where": "id >= 0"}, "on_error": "dead_letter"}
COUNT = {"type": "count", "config": {"key": ["k"], "into": "n"}}


class Crash(BaseException):
    """The process is killed here."""


class Rig:
    """An engine's parts, real where they need no Spark, and one fragment after the other on them."""

    def __init__(self, tmp_path: Path, *flows: Dataflow, functions: Mapping[str, Function] | None = None) -> None:
        self.functions = functions or {}
        self.delivered: list[tuple[str, int, list[int]]] = []
        self.crash_in_delivery = False
        self.state = StateDirectory(tmp_path / "state")
        self.exchange = FileExchange(self.state.path / "exchange")
        self.spark, self.records = FakeSpark(), Records()
        self.observed = self.records.taken()
        self.publish(1, *flows)
        self.plans = {1: self.plan}
        self.longest_s: float | None = None
        self.context = FragmentContext(
            cast(Any, self.spark),
            self.state,
            self.exchange,
            cast(Any, None),
            lambda number: self.plans[number],
            lambda: self.plan,
            lambda _: None,
            self,
            0.5,
            cast(Any, FakeBackground()),
            DeadLetters(self.state.path / "dead_letters"),
            60.0,
            self.records,
            cast(Any, FakeProfiler()),
            True,
            Tails(),
            lambda: None,
            lambda: self.longest_s,
            lambda *_: None,
            lambda machines: [[] for _ in machines],
        )
        self.fragment = self.start()

    def publish(self, number: int, *flows: Dataflow) -> CompiledPlan:
        self.plan = plan_of(*flows, number=number)
        if number > 1:
            self.plans[number] = self.plan
        return self.plan

    def start(self) -> RunningFragment:
        """Start the fragment, as a new process would."""
        (source,) = [fragment for fragment in self.plan.fragments.values() if fragment.kind is Kind.SOURCE]
        self.fragment = RunningFragment(source, self.plan.number, self.context)
        if begun_in(self.state.journal, source.id) is None:
            self.state.journal.append(self.fragment.begun)
        self.jobs = FakeJobs(source.id, self.functions)
        self.fragment.epochs.jobs = self.jobs
        self.fragment.epochs.failed_rows._explain = lambda *_: None  # that takes Spark
        return self.fragment

    def sync(self) -> None:
        """What has been delivered is in memory."""

    def __call__(self, snapshot: int, sink: Signature, delivery: StagedDelivery) -> None:
        del sink
        if self.crash_in_delivery:
            raise Crash
        self.delivered.append((delivery.origin, snapshot, [row["id"] for row in read(delivery.files)]))

    def epoch(self, number: int, *ids: int) -> None:
        """What Spark does for a micro-batch: it stores offsets, runs it, and commits."""
        for name in ("offsets", "commits"):
            (self.fragment.folder / "checkpoint" / name).mkdir(parents=True, exist_ok=True)
        (self.fragment.folder / "checkpoint" / "metadata").write_text('{"id": "1"}')
        (self.fragment.folder / "checkpoint" / "offsets" / str(number)).write_text(
            f'v1\n{{"a": 1}}\n{{"rows": {number}}}'
        )
        self.fragment._epoch(FakeRows([{"id": each} for each in ids]).frame, number)
        (self.fragment.folder / "checkpoint" / "commits" / str(number)).write_text('v1\n{"a": 1}')

    def rows(self) -> list[list[int]]:
        return [rows for _, _, rows in self.delivered]


@pytest.fixture
def rig_of(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Makes a rig of some dataflows, and closes its state directory after the test."""
    made: list[Rig] = []

    def make(*flows: Dataflow, **more: Any) -> Rig:
        made.append(Rig(tmp_path, *flows, **more))
        return made[-1]

    yield make
    for rig in made:
        rig.state.close()


@pytest.fixture
def rig(rig_of: Callable[..., Rig]) -> Rig:
    return rig_of(flow("some", SOURCE, memory("some")))


def test_an_epoch_is_delivered_and_recorded(rig: Rig) -> None:
    rig.epoch(0, 1, 2)
    rig.epoch(1)
    assert rig.rows() == [[1, 2]]
    assert rig.fragment.last.epoch == 1
    commits = [entry for _, entry in rig.state.journal.read(EpochCommitted)]
    assert [(entry.epoch, entry.snapshots, len(entry.outputs)) for entry in commits] == [(0, (1,), 1), (1, (1,), 0)]
    first, second = rig.observed
    assert [sum(some.rows for some in arrived) for arrived in first.arrivals.values()] == [2]
    assert not second.arrivals
    assert rig.spark.tags == []


def test_epochs_of_a_lone_source_are_bounded_only_while_somebody_decides(rig: Rig) -> None:
    def limit_after(longest_s: float | None) -> int:
        rig.longest_s = longest_s
        for _ in range(5):
            rig.fragment._admit(1_000, 20.0)
        return limit_of(rig.fragment.folder, 10**9)

    assert limit_after(None) == 10**9
    assert limit_after(2.0) < 500
    assert limit_after(None) == 10**9


def test_a_commit_that_was_not_delivered_is_delivered_and_not_run_again(rig: Rig) -> None:
    rig.epoch(0, 1)
    rig.crash_in_delivery = True
    with pytest.raises(Crash):
        rig.epoch(1, 2)
    rig.crash_in_delivery = False
    rig.start()
    rig.epoch(1, 2)
    assert rig.rows() == [[1], [2]]
    assert rig.jobs.jobs == 0
    origins = {origin for origin, _, _ in rig.delivered}
    assert len(origins) == 1, "sinks recognise a repeated delivery by its origin and epoch"
    rig.epoch(2, 3)
    assert rig.rows() == [[1], [2], [3]]


def test_an_epoch_that_was_not_committed_is_planned_anew(rig: Rig) -> None:
    rig.epoch(0, 1)

    def dies(*_: object) -> None:
        raise Crash

    rig.jobs.stage = dies  # type: ignore[assignment,method-assign]
    with pytest.raises(Crash):
        rig.epoch(1, 2)
    rig.publish(2, flow("some", SOURCE, memory("some")), flow("more", SOURCE, memory("more")))
    rig.start()
    rig.epoch(1, 2)
    assert [(snapshot, rows) for _, snapshot, rows in rig.delivered[1:]] == [(2, [2]), (2, [2])]


def test_a_change_that_was_acknowledged_holds_for_an_epoch_that_spark_had_begun(rig: Rig) -> None:
    """Spark had stored the offsets, and the process was killed before the epoch was planned."""
    rig.epoch(0, 1)
    (rig.fragment.folder / "checkpoint" / "offsets" / "1").write_text('v1\n{"a": 1}\n{"rows": 1}')
    rig.publish(2, flow("more", SOURCE, memory("more")))
    rig.start()
    rig.epoch(1, 2)
    assert [(snapshot, rows) for _, snapshot, rows in rig.delivered] == [(1, [1]), (2, [2])]


def test_a_commit_holds_whatever_is_published_after_it(rig: Rig) -> None:
    rig.crash_in_delivery = True
    with pytest.raises(Crash):
        rig.epoch(0, 1)
    rig.crash_in_delivery = False
    rig.publish(2, flow("more", SOURCE, memory("more")))
    rig.start()
    assert not rig.fragment.is_past(2), "rows of plan 1 are still to be delivered"
    rig.epoch(0, 1)
    assert [(snapshot, rows) for _, snapshot, rows in rig.delivered] == [(1, [1])]
    assert rig.fragment.is_past(2)


@pytest.mark.parametrize("left", [None, "", "v1\n{}"])
def test_offsets_that_a_power_loss_took_are_put_back(rig: Rig, left: str | None) -> None:
    """Spark does not sync its files; without its offsets the committed epoch would begin anew with other rows."""
    rig.epoch(0, 1)
    rig.epoch(1, 2)
    checkpoint = rig.fragment.folder / "checkpoint"
    stored = (checkpoint / "offsets" / "1").read_text()
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "offsets" / ".1.crc").touch()
    if left is None:
        (checkpoint / "offsets" / "1").unlink()
    else:
        (checkpoint / "offsets" / "1").write_text(left)
    rig.start()
    assert (checkpoint / "offsets" / "1").read_text() == stored
    assert not (checkpoint / "offsets" / ".1.crc").exists()
    rig.epoch(1, 2)
    assert rig.rows() == [[1], [2]]


def test_a_journal_that_lacks_an_epoch_of_spark_is_refused(rig: Rig) -> None:
    rig.epoch(0, 1)
    (rig.fragment.folder / "checkpoint" / "commits" / "1").write_text('v1\n{"a": 1}')
    with pytest.raises(InputError, match=r"journal lacks epoch 1 of fragment source-\w+") as refused:
        rig.start()
    assert refused.value.condition == "STATE_DAMAGED"


def test_a_fragment_that_begins_again_has_nothing_of_its_former_run(rig: Rig) -> None:
    rig.epoch(0, 1)
    before = rig.fragment.begun
    rig.state.journal.append(FragmentRemoved(before.fragment, before.run))
    rig.start()
    assert rig.fragment.begun.run != before.run
    assert not (rig.fragment.folder / "checkpoint").exists()
    rig.epoch(0, 2)
    assert rig.rows() == [[1], [2]]


def test_a_withdrawn_fragment_finishes_its_deliveries(rig: Rig) -> None:
    rig.crash_in_delivery = True
    with pytest.raises(Crash):
        rig.epoch(0, 1)
    rig.crash_in_delivery = False
    rig.start().finish()
    rig.fragment.finish()
    assert rig.rows() == [[1]]


def test_a_false_start_of_spark_is_removed(rig: Rig) -> None:
    leftover = rig.fragment.folder / "checkpoint" / "metadata"
    leftover.parent.mkdir()
    leftover.write_text("{}")
    rig.start()
    assert not leftover.parent.exists()


def test_failed_rows_become_dead_letters_once(rig_of: Callable[..., Rig]) -> None:
    def odd(row: Row) -> Row:
        if row["id"] % 2:
            raise ValueError("odd")
        return row

    rig = rig_of(flow("some", SOURCE, KEPT, memory("some")), functions={"kept": odd})
    rig.epoch(0, 1, 2, 3)
    assert rig.rows() == [[2]]
    (task,) = [task.signature for task in rig.plan.tasks.values() if task_id(task) == "kept"]
    left_out = rig.context.dead_letters.left_out(task)
    assert (left_out.dead_letters, left_out.latest) == (2, "ValueError: odd")
    assert rig.fragment.last.rows_out == 1


def test_rows_for_a_keyed_task_are_published_with_their_snapshot(rig_of: Callable[..., Rig]) -> None:
    rig = rig_of(flow("keyed", SOURCE, COUNT, memory("keyed")))
    rig.epoch(0, 1)
    rig.epoch(1, 2, 3)
    (topic,) = rig.fragment.fragment.writes
    assert rig.exchange.head(topic.id) == 1
    assert rig.exchange.rows_behind(topic.id) == 3
    assert rig.exchange.snapshot_of(topic.id, 1) == 1


def test_a_resting_task_counts_the_rows_that_pass_it(rig_of: Callable[..., Rig]) -> None:
    def broken(_: Row) -> Row:
        raise ValueError("no")

    task = {"id": "broken", "type": "filter", "config": {"where": "id > 0"}}
    rig = rig_of(flow("some", SOURCE, task, memory("some")), functions={"broken": broken})
    rig.fragment.context = replace(rig.context, counting=False)
    rig.epoch(0, 1)
    rig.epoch(1, 2)
    (reason,) = rig.fragment.epochs.quarantine.reasons.values()
    assert reason == "ValueError: no (1 rows have passed it since)"


def test_what_fails_is_raised_as_one_readable_line(rig: Rig) -> None:
    def fails(*_: object) -> None:
        raise PySparkException("An error occurred while calling o9.save.\n: java.io.IOException: disk full\n\tat a.b")

    rig.jobs.stage = fails  # type: ignore[assignment]
    rig.jobs.attempt = fails  # type: ignore[assignment,method-assign]
    with pytest.raises(RuntimeError) as raised:
        rig.epoch(0, 1)
    assert str(raised.value) == "IOException: disk full"


def test_no_epoch_begins_while_the_fragment_stops(rig: Rig) -> None:
    rig.fragment.end()
    with pytest.raises(RuntimeError, match="being stopped"):
        rig.epoch(0, 1)
    assert rig.delivered == []


def test_a_plan_is_past_once_no_epoch_can_run_an_older_one(rig: Rig) -> None:
    rig.epoch(0, 1)
    rig.publish(2, flow("some", SOURCE, memory("some")))
    assert rig.fragment.is_past(2), "no epoch runs"
    past, under_way = [], []

    def publishes(*_: object) -> None:
        rig.publish(3, flow("some", SOURCE, memory("some")))
        past.append(rig.fragment.is_past(3))
        under_way.extend(rig.fragment.snapshots_under_way())
        raise Crash

    rig.jobs.stage = publishes  # type: ignore[assignment,method-assign]
    with pytest.raises(Crash):
        rig.epoch(1, 2)
    assert past == [False], "epoch 1 runs plan 2"
    assert under_way == [1, 2]
    assert rig.fragment.is_past(3), "and would run plan 3 if it were run again"
