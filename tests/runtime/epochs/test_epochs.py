"""Epochs without a JVM: which tasks are left out, guarded, tried again and let in, and what is committed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan, Kind
from headgate.runtime.epochs.commit import EpochResult
from headgate.runtime.epochs.epoch import Epochs
from headgate.runtime.exchange.files import SNAPSHOT
from headgate.runtime.isolation import watchdog
from headgate.runtime.isolation.failed_rows import FailedRows
from headgate.runtime.isolation.quarantine import FIRST_REST_S, Quarantine
from headgate.runtime.isolation.reasons import Reasons
from headgate.runtime.observing.profiler import Profiler
from tests.compiled import plan_of
from tests.runtime.fakes import FakeBackground, FakeJobs, FakeProfiler, FakeRows, Function, Row, read, task_id
from tests.runtime.small import files, flow, memory

SOURCE = {"id": "src", **files(Path("in"))}


def doing(name: str, **more: Any) -> dict[str, Any]:
    """A task of which only the name counts: the fake runs the function of that name."""
    return {"id": name, "type": "filter", "config": {"where": f"'{name}' <> ''"}, **more}


class Rig:
    """The epochs of the source fragment of some dataflows."""

    def __init__(self, tmp_path: Path, functions: Mapping[str, Function], *flows: Dataflow, **more: Any) -> None:
        self.plan = plan_of(*flows, number=1)
        self.fragment = next(each for each in self.plan.fragments.values() if each.kind is Kind.SOURCE)
        self.jobs = FakeJobs(self.fragment.id, functions, **more)
        self.now = 0.0
        self.explained: list[str] = []
        self.background = FakeBackground()
        self.profiler = FakeProfiler()
        self.stopping = False
        quarantine = Quarantine(lambda: self.now)
        explain = lambda _plan, task, _file: self.explained.append(task)  # noqa: E731
        self.epochs = Epochs(
            self.fragment,
            self.jobs,
            FailedRows(self.fragment.id, quarantine, Reasons(), explain),
            quarantine,
            self.background,
            cast(Profiler, self.profiler),
            lambda _topic: 7,
            tmp_path / "staging",
            60.0,
            self.jobs.cancel,
            lambda: self.stopping,
        )
        self.number = -1

    def run(self, *ids: int, plans: Sequence[CompiledPlan] | None = None, rows: FakeRows | None = None) -> EpochResult:
        self.number += 1
        given = FakeRows([{"id": number} for number in ids]) if rows is None else rows
        return self.epochs.run(given.frame, self.number, [self.plan] if plans is None else plans, 1_000_000)

    def sinks(self, result: EpochResult, kind: str = "sink") -> dict[str, list[Any]]:
        """What each sink gets, by the id of its task."""
        return {
            task_id(self.plan.tasks[Signature(output.target.name)]): [
                row.get("id", row.get("record")) for row in read(output.files)
            ]
            for output in result.outputs
            if output.target.kind == kind
        }

    def resting(self) -> set[str]:
        return {task_id(self.plan.tasks[cast(Any, item)]) for item in self.epochs.quarantine.resting()}


def raising(row: Row) -> Row:
    raise ValueError(f"cannot parse {row['id']}")


def raising_for_odd(row: Row) -> Row:
    return raising(row) if row["id"] % 2 else row


GOOD = flow("good", SOURCE, doing("shared"), memory("good", id="good_sink"))
BAD = flow("bad", SOURCE, doing("shared"), doing("broken"), doing("after"), memory("bad", id="bad_sink"))


@pytest.mark.parametrize("names_culprits", [True, False], ids=["named", "searched for"])
def test_a_task_that_raises_costs_only_what_it_feeds(tmp_path: Path, names_culprits: bool) -> None:
    rig = Rig(tmp_path, {"broken": raising}, GOOD, BAD, names_culprits=names_culprits)
    rows = FakeRows([{"id": 1}, {"id": 2}])
    result = rig.run(rows=rows)
    assert rig.sinks(result) == {"good_sink": [1, 2]}
    assert rig.resting() == {"broken"}
    assert list(rig.epochs.quarantine.reasons.values()) == ["ValueError: cannot parse 1"]
    assert rig.epochs.runs_again == 1
    assert (rows.persisted, rows.is_cached) == (1, False), "rows are computed once, and freed"
    before = rig.jobs.jobs
    assert rig.sinks(rig.run(3)) == {"good_sink": [3]}
    assert rig.jobs.jobs == before + 1, "the next epoch runs once"


def test_it_is_tried_in_the_background_and_comes_back(tmp_path: Path) -> None:
    functions: dict[str, Function] = {"broken": raising}
    rig = Rig(tmp_path, functions, GOOD, BAD)
    rig.run(1)
    rig.now = FIRST_REST_S
    assert rig.sinks(rig.run(2)) == {"good_sink": [2]}
    rig.background.run()
    assert rig.resting() == {"broken"}, "it still raises"
    rig.now += FIRST_REST_S
    rig.run(3)
    assert not rig.background.work, "the second rest is twice as long"
    del functions["broken"]
    rig.now += FIRST_REST_S
    assert rig.sinks(rig.run(4)) == {"good_sink": [4]}, "rows of the trial are not put out"
    rig.background.run()
    assert rig.resting() == set()
    assert rig.sinks(rig.run(5)) == {"good_sink": [5], "bad_sink": [5]}
    assert rig.epochs.runs_again == 1


def test_a_trial_needs_rows_and_room(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"broken": raising}, GOOD, BAD)
    rig.run(1)
    rig.now = FIRST_REST_S
    rig.background.room = 0
    rows = FakeRows([{"id": 2}])
    rig.run(rows=rows)
    assert not rows.is_cached, "nobody has taken them"
    rig.background.room = 1
    rig.run()
    rig.background.run()
    assert rig.resting() == {"broken"}, "no rows prove nothing"
    assert rig.epochs.quarantine.due()


def test_a_task_that_is_gone_is_not_tried(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"broken": raising}, GOOD, BAD)
    rig.run(1)
    rig.now = FIRST_REST_S
    rig.run(2, plans=[plan_of(GOOD, number=2)])
    rig.background.run()
    assert not rig.epochs.quarantine.reasons


@pytest.mark.parametrize("names_culprits", [True, False], ids=["named", "searched for"])
def test_a_task_that_keeps_dead_letters_is_guarded(tmp_path: Path, names_culprits: bool) -> None:
    kept = flow("kept", SOURCE, doing("broken", on_error="dead_letter"), memory("kept", id="kept_sink"))
    rig = Rig(tmp_path, {"broken": raising_for_odd}, GOOD, kept, names_culprits=names_culprits)
    result = rig.run(1, 2, 3)
    assert rig.sinks(result) == {"good_sink": [1, 2, 3], "kept_sink": [2]}
    assert rig.sinks(result, "letters") == {"broken": ['{"id": 1}', '{"id": 3}']}
    (letters,) = [output for output in result.outputs if output.target.kind == "letters"]
    assert letters.reasons == ("ValueError: cannot parse 1",)
    assert rig.explained == [letters.target.name]
    assert rig.resting() == set()
    rig.run(5)
    assert rig.epochs.runs_again == 1, "the guard stays up"


def test_a_guard_goes_down_after_a_hundred_clean_epochs(tmp_path: Path) -> None:
    kept = flow("kept", SOURCE, doing("broken", on_error="skip"), memory("kept"))
    rig = Rig(tmp_path, {"broken": raising_for_odd}, kept)
    rig.run(1)
    for _ in range(99):
        rig.run(2)
    assert rig.epochs.guards.tasks
    rig.run(2)
    assert not rig.epochs.guards.tasks
    rig.run(1)
    assert rig.epochs.runs_again == 2


def test_all_that_raise_are_left_out_at_once(tmp_path: Path) -> None:
    flows = [flow(f"f{n}", SOURCE, doing(f"t{n}"), memory(f"m{n}", id=f"s{n}")) for n in range(8)]
    rig = Rig(tmp_path, {"t2": raising, "t5": raising}, *flows)
    assert set(rig.sinks(rig.run(1))) == {"s0", "s1", "s3", "s4", "s6", "s7"}
    assert rig.resting() == {"t2", "t5"}
    assert rig.epochs.runs_again == 1


@pytest.mark.parametrize("names_culprits", [True, False], ids=["named", "searched for"])
def test_a_task_of_two_plans_is_guarded_once(tmp_path: Path, names_culprits: bool) -> None:
    kept = flow("kept", SOURCE, doing("broken", on_error="dead_letter"), memory("kept", id="kept_sink"))
    rig = Rig(tmp_path, {"broken": raising_for_odd}, kept, names_culprits=names_culprits)
    plans = [rig.plan, plan_of(kept, number=2)]
    rows = FakeRows([{"id": 1, SNAPSHOT: 1}, {"id": 2, SNAPSHOT: 1}, {"id": 3, SNAPSHOT: 2}, {"id": 4, SNAPSHOT: 2}])
    result = rig.run(rows=rows, plans=plans)
    assert rig.resting() == set()
    by_snapshot = [(output.target.snapshot, output.target.kind) for output in result.outputs]
    assert sorted(by_snapshot) == [(1, "letters"), (1, "sink"), (2, "letters"), (2, "sink")]
    assert [output.target.snapshot for output in result.outputs] == [1, 1, 2, 2], "in the order of snapshots"


def test_rows_that_fail_by_themselves_fail_the_epoch(tmp_path: Path) -> None:
    class Unreadable(FakeRows):
        @property
        def rows(self) -> list[Row]:
            raise PySparkException("FileNotFoundError: the source is gone")

        @rows.setter
        def rows(self, _: list[Row]) -> None: ...

    rig = Rig(tmp_path, {}, GOOD)
    with pytest.raises(PySparkException, match="the source is gone"):
        rig.run(rows=Unreadable([]))
    assert rig.resting() == set()


def test_an_engine_that_stops_blames_nobody(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"broken": raising}, GOOD, BAD)
    rig.stopping = True
    with pytest.raises(PySparkException):
        rig.run(1)
    assert rig.resting() == set()


def test_late_workers_are_no_tasks_fault_and_the_epoch_is_run_again_at_once(tmp_path: Path) -> None:
    def late(row: Row) -> Row:
        if rig.jobs.jobs <= 2:
            raise OSError("Python worker failed to connect back")
        return row

    rig = Rig(tmp_path, {"shared": late}, GOOD)
    assert rig.sinks(rig.run(1)) == {"good_sink": [1]}
    assert (rig.resting(), rig.epochs.runs_again) == (set(), 2)


@pytest.mark.parametrize("full_from", [1, 2], ids=["in the epoch", "while it searches for the task"])
def test_a_full_disk_is_no_tasks_fault(tmp_path: Path, full_from: int) -> None:
    def full(row: Row) -> Row:
        raise OSError("[Errno 28] No space left on device") if rig.jobs.jobs >= full_from else ValueError("no")

    rig = Rig(tmp_path, {"shared": full}, GOOD, names_culprits=False)
    with pytest.raises(PySparkException, match="No space left"):
        rig.run(1)
    assert rig.resting() == set()


def test_a_task_over_its_time_budget_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "COLD_S", 0.05)
    functions: dict[str, Function] = {}
    slow = flow("slow", SOURCE, doing("shared"), doing("slow", time_budget="100ms"), memory("slow", id="slow_sink"))
    rig = Rig(tmp_path, functions, GOOD, slow)
    functions["slow"] = rig.jobs.hang
    assert rig.sinks(rig.run(1)) == {"good_sink": [1]}
    assert rig.resting() == {"slow"}
    assert list(rig.epochs.quarantine.reasons.values()) == [
        "TimeoutError: over its time budget of 0.1 s for a micro-batch"
    ]


def test_without_a_budget_no_job_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "COLD_S", 0.0)
    rig = Rig(tmp_path, {"shared": lambda row: None if rig.jobs.cancelled.wait(0.2) else row}, GOOD)
    assert rig.sinks(rig.run(1)) == {"good_sink": [1]}


def test_batches_of_a_topic_are_numbered_after_its_head(tmp_path: Path) -> None:
    counting = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    rig = Rig(tmp_path, {}, flow("keyed", SOURCE, counting, memory("keyed")))
    (topic,) = rig.run(1, 2).outputs
    assert (topic.target.kind, topic.number, topic.ingested_us) == ("topic", 8, 1_000_000)


def test_a_sampled_epoch_hands_its_rows_to_the_profiler(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {}, GOOD)
    rig.profiler.wanted = frozenset({1})
    rig.run(1, 2)
    rig.run(3, 4, 5)
    rig.background.run()
    assert rig.profiler.sampled == [3]


def test_no_row_no_output(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {}, GOOD)
    assert rig.run().outputs == ()
