"""The benchmark of Linear Road without Spark: files and their moments, arrivals and emissions, what counts as held."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from headgate.documents import parse
from headgate.errors import InputError
from headgate.runtime.compile.plan import Kind
from headgate_benchmarks import checkout
from headgate_benchmarks.linear_road import benchmark as linear_road
from headgate_benchmarks.linear_road import trial as linear_road_trial
from headgate_benchmarks.linear_road.trial import Outcome, dataflow, example

GOOD = Outcome(
    rows=1,
    reports_per_s=1_700.0,
    right=True,
    verdict="",
    answers=10,
    in_time=1.0,
    in_time_by_kind={"tolls": 1.0, "balances": 1.0},
    p99_s={"tolls": 1.5, "balances": 2.0},
    worst_s={"tolls": 2.5},
    first_late_s=None,
    beyond_in_time=1.0,
    responses=[],
    cpu_s=10.0,
    seconds=10.0,
    queries=[["reports", "route"], ["tolls", "congestion"], ["account"]],
)


def test_the_dataflow_reads_files_and_is_valid(tmp_path: Path) -> None:
    document = dataflow(tmp_path)
    assert str(tmp_path) in json.dumps(document)
    assert "out/linear_road" not in json.dumps(document)
    assert not parse(json.dumps(document), "json").notices


def test_rows_are_fed_in_order_and_when_they_are_due(tmp_path: Path) -> None:
    rows = example("traffic").make(1, 6, 1, example("traffic").Road(cars=300), None, 25)
    due, file_of = linear_road_trial._files(tmp_path, rows)
    tables = [pq.read_table(path) for _, path in due]
    assert np.array_equal(np.concatenate([t.column("time").to_numpy() for t in tables]), rows.columns["time"])
    for (due_s, _), table in zip(due, tables, strict=True):
        assert set(table.column("time").to_pylist()) == {25 + int(due_s)}
    assert [table.num_rows for table in tables] == np.bincount(file_of).tolist()
    assert len(due) == 12


def test_arrivals_and_emissions_are_real_moments(tmp_path: Path) -> None:
    for name in ("in", "waiting", "answers/tolls"):
        (tmp_path / name).mkdir(parents=True)
    files = [(0.05 * n, tmp_path / "waiting" / f"{n}.parquet") for n in range(3)]
    for _, path in files:
        path.touch()
    feeder = linear_road_trial._Feeder(tmp_path / "in", files)
    receiver = linear_road_trial._Receiver(tmp_path / "answers", ("tolls", "alerts"))
    thread = threading.Thread(target=feeder.feed)
    thread.start()
    thread.join(10)
    assert len(list((tmp_path / "in").iterdir())) == 3
    assert all(at >= feeder.began + due for at, (due, _) in zip(feeder.arrived, files, strict=True))
    (tmp_path / "answers/tolls/a.parquet").touch()
    before = time.time()
    receiver.look()
    first = dict(receiver.seen)
    receiver.look()
    assert receiver.seen == first
    assert first["tolls", "a.parquet"] >= before


def test_feeding_ends_when_a_watcher_has_seen_enough(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files = [(0.3 * n, tmp_path / f"{n}.parquet") for n in range(100)]
    for _, path in files:
        path.touch()
    feeder = linear_road_trial._Feeder(tmp_path / "in", files)

    class Impatient:
        def __init__(self) -> None:
            self.switched: dict[str, str] = {}

        def look(self, engine: object, since_s: float) -> bool:
            return engine is None and since_s < 0.5

    linear_road_trial._feed(feeder, None, Impatient())
    assert 1 <= len(feeder.arrived) == len(list((tmp_path / "in").iterdir())) < 20


def test_only_a_hold_without_a_late_or_wrong_answer_counts() -> None:
    pressure = linear_road._Pressure(lambda _: None, 20.0)
    ramp = replace(GOOD, in_time=0.9, first_late_s=60.0, beyond_in_time=0.5)
    late = replace(GOOD, in_time=0.9999)
    holds = {4: late, 3: replace(GOOD, right=False), 2: GOOD}
    measured = linear_road._measured(ramp, holds, late, 5, pressure)
    figures = measured.figures
    assert (figures["expressways"], figures["in_time"], figures["p99_s"]) == (2, 1.0, 1.5)
    assert (figures["p99_s_balances"], figures["in_time_balances"]) == (2.0, 1.0)
    assert (figures["ramp_late_at"], figures["ramp_beyond_in_time"]) == (5, 0.5)
    assert (figures["beyond_expressways"], figures["beyond_held"]) == (3, 0)
    assert "99.99% of answers in time" in measured.notes["beyond"]
    together = "5 tasks in 3 queries, of which these run together: reports, route; tolls, congestion"
    assert measured.notes["merged"] == together
    del holds[2]
    assert linear_road._measured(ramp, holds, late, 5, pressure).figures["expressways"] == 0


@pytest.mark.parametrize("held", [True, False])
def test_a_picture(held: bool, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pressure = linear_road._Pressure(lambda _: None, 20.0)
    pressure.at_s = 61.0
    ramp = replace(GOOD, in_time=0.9, first_late_s=60.0, responses=[(n, 1 + n / 20) for n in range(90)])
    hold = replace(GOOD, right=held, responses=[(n, 1.4 + n % 7 / 10) for n in range(105)])
    (path,) = linear_road._plot(linear_road._measured(ramp, {4: hold}, ramp, 5, pressure), tmp_path)
    assert path.stat().st_size > 5_000


@pytest.mark.parametrize("begin", [1, 2, 3, 7, 13, 22])
@pytest.mark.parametrize("border", [0, 1, 2, 3, 6, 13, 14, 21, 30])
def test_the_search_finds_the_border(begin: int, border: int) -> None:
    tried: list[int] = []

    def hold(level: int) -> Outcome:
        tried.append(level)
        return replace(GOOD, in_time=1.0 if level <= border else 0.9)

    holds = linear_road._search(begin, hold, lambda: True)
    assert max((level for level, outcome in holds.items() if outcome.held), default=0) == border
    assert not holds[border + 1].held
    assert min(tried) >= 1
    assert len(tried) == len(set(tried))
    # Without time to go on, it ends with the first that is held.
    hurried = linear_road._search(begin, hold, lambda: False)
    assert sum(outcome.held for outcome in hurried.values()) == (1 if border else 0)


def test_answers_are_right_by_the_alternates_that_were_switched_to() -> None:
    validate = example("validate")
    expected, otherwise = validate.Expected(), validate.Expected()
    expected.travel_times, otherwise.travel_times = {1: 100.0, 2: 200.0, 3: 300.0}, {1: 110.0, 2: 220.0, 3: 330.0}
    answers = validate.Answers(travel_times={1: 100.0, 2: 220.0, 3: 320.0})
    linear_road_trial._accept(expected, answers, otherwise)
    assert dict(validate.check(expected, answers).wrong) == {"travel_times": 1}


class FakeFragment:
    """The last epoch of a fragment."""

    def __init__(self, kind: Kind, seconds: float, rows: int, ended_s_ago: float = 0.0) -> None:
        self.fragment, self.backlog = SimpleNamespace(kind=kind), SimpleNamespace(rows=lambda: rows)
        self.last = SimpleNamespace(began=time.time() - ended_s_ago - seconds, seconds=seconds)


class FakeEngine:
    def __init__(self, *fragments: FakeFragment) -> None:
        self.fragments = dict(enumerate(fragments))
        self.switches: list[tuple[str, str, str]] = []

    def switch(self, dataflow: str, task: str, alternate: str) -> None:
        self.switches.append((dataflow, task, alternate))


def test_alternates_are_switched_once_when_answers_take_long() -> None:
    pressure = linear_road._Pressure(lambda _: None, 20.0)
    calm = FakeEngine(FakeFragment(Kind.SOURCE, 1.0, 0), FakeFragment(Kind.KEYED, 1.5, 10, ended_s_ago=1))
    resting = FakeEngine(FakeFragment(Kind.SOURCE, 1.0, 0), FakeFragment(Kind.KEYED, 0.1, 0, ended_s_ago=60))
    busy = FakeEngine(FakeFragment(Kind.SOURCE, 1.5, 0), FakeFragment(Kind.KEYED, 0.5, 10, ended_s_ago=3))
    assert pressure.look(busy, 5.0)  # too early to tell
    assert pressure.look(calm, 40.0)
    assert pressure.look(resting, 41.0)
    assert [engine.switches for engine in (busy, calm, resting)] == [[], [], []]
    assert pressure.look(busy, 50.0)
    assert busy.switches == [("linear_road", task, way) for task, way in linear_road.CHEAP.items()]
    assert pressure.look(busy, 50.0 + linear_road.BEYOND_S - 1)
    assert len(busy.switches) == 2
    assert not pressure.look(busy, 50.0 + linear_road.BEYOND_S)
    assert "congestion to smoothing" in pressure.why
    assert pressure.switched == linear_road.CHEAP


def test_without_the_examples_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    with pytest.raises(InputError) as refusal:
        dataflow(tmp_path)
    assert refusal.value.condition == "NO_EXAMPLES"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_so_few_reports_that_every_answer_is_right() -> None:
    """Whether all are in time depends on the load of the machine."""
    sizes = linear_road.Sizes(60, 5, 70, 40, 20, most=2, enough_s=1.0)
    measured = linear_road._run(1, print, sizes)
    figures = measured.figures
    assert figures["right"] == figures["ramp_right"] == figures["beyond_right"] == 1
    assert figures["answers"] > 100
    assert 0 < figures["p99_s"] == figures["p99_s_tolls"] <= figures["worst_s"]
    assert (figures["expressways"] > 0) == (figures["in_time"] == 1)
    assert "tolls, congestion" in measured.notes["merged"] or "congestion, tolls" in measured.notes["merged"]
