"""What an observer makes of records and of what Spark reports, on a fake Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.machine_observations import MachineObservations
from headgate.model.names import Signature
from headgate.model.task_type import Role
from headgate.runtime.observing.observer import ObservedEngine, Observer
from headgate.runtime.observing.records import Arrivals, EpochRecord, Records
from headgate.runtime.spark_internals.protocol import BatchProgress, JobInfo
from headgate.tasks.registry import default_registry
from tests.compiled import plan_of
from tests.runtime.fakes import FakeInternals
from tests.runtime.small import files, flow, memory

SOME = flow("some", {"id": "src", **files(Path("in"))}, memory("some"))


class Rig:
    """An observer, and an engine whose measurements a test makes up."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waiting: int | None = 7
        snapshot = SimpleNamespace(
            dataflows=(SOME,), paused=frozenset(), chosen={}, shared=SimpleNamespace(registry=default_registry())
        )
        self.plan = plan_of(SOME)
        (self.fragment,) = self.plan.fragments.values()
        (self.sink,) = [task.signature for task in self.plan.tasks.values() if task.role is Role.SINK]
        self.source: Signature = self.fragment.roots[0]
        self.inside = FakeInternals()
        self.records = Records()
        self.refusing: list[Signature] = []
        running: Any = SimpleNamespace(
            fragment=self.fragment, query=object(), backlog=SimpleNamespace(rows=lambda: self.waiting, bytes=lambda: 80)
        )
        self.engine = ObservedEngine(
            self.inside,
            self.records,
            cast(Any, SimpleNamespace(current=self.plan, snapshot=snapshot)),
            lambda: [running],
            lambda: self.refusing,
            dict,
            lambda _: MachineObservations(("m",), speed=(0.5,)),
        )
        self.observer = self.another()

    def another(self) -> Observer:
        return Observer(self.engine, lambda: self.now)

    def record(self, epoch: int, rows: int, committed: float = 1.0) -> None:
        """An epoch that began at 90 s, was committed so many seconds later and ended a half after that."""
        ingested = np.full(1, 88_000_000, np.int64)
        arrivals = {self.sink: [Arrivals(rows, ingested, at=91.0)]}
        counts = Counter({(self.source, cast(Any, "out")): rows})
        times = 90.0, 90.0 + committed, 90.5 + committed
        self.records.add(EpochRecord(self.fragment.id, epoch, f"tag-{epoch}", *times, rows, counts, arrivals))


def test_rows_and_sojourn_since_the_last_look() -> None:
    rig = Rig()
    rig.record(0, 10)
    rig.record(1, 30)
    rig.now = 105.0
    observed = rig.observer.observe()
    assert (observed.ended, observed.seconds) == (105.0, 5.0)
    assert [task.rows_out for task in observed.tasks] == [40]
    (sink,) = observed.sinks
    assert sink.rows == 40
    assert sink.sojourn is not None
    assert sink.sojourn.p99_s == pytest.approx(3.0)
    (fragment,) = observed.fragments
    assert (fragment.batches, fragment.rows_in, fragment.rows_behind, fragment.bytes_behind) == (2, 40, 7, 80)
    again = rig.observer.observe()
    assert (again.tasks[0].rows_out, again.sinks[0].rows, again.fragments[0].batches) == (0, 0, 0)


def test_time_is_divided_as_the_latest_batches_spend_it() -> None:
    rig = Rig()
    rig.inside.finished = {f"tag-{n}": [JobInfo(90.0, 90.5, 0.1, 0.0, 0.0, 0)] for n in range(4, 8)}
    rig.inside.batches = [BatchProgress(n, 0.25, 0.125) for n in range(8)]
    for epoch in range(8):
        rig.record(epoch, 1)
    (fragment,) = rig.observer.observe().fragments
    # Eight seconds in epochs: half of that in jobs, a fifth of which they waited. Spark's own part comes on top.
    assert fragment.execution_s == pytest.approx(3.2)
    assert fragment.scheduling_s == pytest.approx(0.8)
    assert fragment.planning_s == pytest.approx(4.0 + 8 * 0.25)
    assert fragment.commit_s == pytest.approx(8 * 0.5 + 8 * 0.125)
    parts = fragment.planning_s, fragment.scheduling_s, fragment.execution_s, fragment.commit_s
    assert fragment.batch_s == pytest.approx(sum(parts))
    rig.inside.batches = [*rig.inside.batches, BatchProgress(8, 0.5, 0.0)]
    (later,) = rig.observer.observe().fragments
    assert later.planning_s == pytest.approx(0.5), "a batch counts once"


def test_jobs_that_spark_has_forgotten_count_as_planning() -> None:
    rig = Rig()
    rig.record(0, 1, committed=2.0)
    (fragment,) = rig.observer.observe().fragments
    assert (fragment.planning_s, fragment.execution_s) == (2.0, 0.0)


def test_rows_for_a_sink_that_refuses_them_have_not_arrived() -> None:
    rig = Rig()
    rig.record(0, 5)
    rig.refusing.append(rig.sink)
    (sink,) = rig.observer.observe().sinks
    assert (sink.rows, sink.sojourn) == (0, None)


def test_an_observer_begins_when_it_is_made_and_disturbs_no_other() -> None:
    rig = Rig()
    rig.record(0, 3)
    rig.observer.observe()
    other = rig.another()
    rig.record(1, 5)
    assert rig.observer.observe().tasks[0].rows_out == other.observe().tasks[0].rows_out == 5


def test_what_came_is_what_was_taken_and_what_waits_more() -> None:
    rig = Rig()
    rig.record(0, 40)
    rig.waiting = 17
    (source,) = rig.observer.observe().sources
    assert (source.task, source.dataflows) == (rig.source, ("some",))
    assert (source.rows_taken, source.rows_arrived, source.rows_waiting, source.unknown) == (40, 50, 17, "")
    rig.record(1, 10)
    rig.waiting = None
    (source,) = rig.observer.observe().sources
    assert (source.rows_taken, source.rows_arrived, source.rows_waiting) == (10, None, None)
    assert source.unknown == "a source of type read_files does not report what waits, or not yet"
    rig.waiting = 3
    assert rig.observer.observe().sources[0].rows_arrived is None, "nobody knows what waited before"
    assert rig.observer.observe().sources[0].rows_arrived == 0


def test_work_is_run_time_on_the_reference_core() -> None:
    rig = Rig()
    rig.inside.finished = {f"tag-{n}": [JobInfo(90.0, 90.5, 0.1, 0.75, 0.0, 0)] for n in range(4, 8)}
    for epoch in range(8):
        rig.record(epoch, 2)
    (fragment,) = rig.observer.observe().fragments
    # Four of the eight epochs are looked up: 0.75 core-seconds each, on cores half as fast as the reference core.
    assert fragment.work_s == pytest.approx(8 * 0.75 * 0.5)
    assert fragment.work_s_per_row == pytest.approx(0.75 * 0.5 / 2)
    assert fragment.fixed_s == pytest.approx(0.5 + 0.5)


def test_what_was_agreed_and_what_rows_cost_is_there() -> None:
    (agreed,) = (seen := Rig().observer.observe()).dataflows
    assert (agreed.name, agreed.owner, agreed.level, agreed.paused) == ("some", "nobody", SOME.service_level, False)
    assert {(cost.alternate, cost.origin) for cost in seen.costs} == {
        ("read_files", Origin.DEFAULT),
        ("write_memory", Origin.DEFAULT),
    }
    (sink,) = seen.sinks
    assert sink.inputs == (seen.tasks[0].task,)
