"""A task that raises takes down only what is behind it, and comes back when it raises no more."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.status import DataflowStatus
from headgate.runtime.engine.engine import Engine
from headgate.runtime.isolation.quarantine import FIRST_REST_S, LONGEST_REST_S, Quarantine, behind, find_culprits
from tests.runtime.small import files, flow, memory, numbered, put, wait_for


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    feeds: dict[str, list[str]] = {}
    for number in range(draw(st.integers(1, 40))):
        known = list(feeds)
        feeds[f"t{number}"] = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
    return feeds


def ancestors(task: str, feeds: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(feeds[task])
    while todo:
        found.add(todo[-1])
        todo += feeds[todo.pop()]
    return found


@given(graphs(), st.data())
def test_culprits_are_those_that_raise_and_are_reached(feeds: dict[str, list[str]], data: st.DataObject) -> None:
    raising = set(data.draw(st.lists(st.sampled_from(list(feeds)), unique=True, max_size=5)))
    trials = 0

    def trial(tasks: Sequence[str]) -> str | None:
        nonlocal trials
        trials += 1
        for task in tasks:
            assert ancestors(task, feeds) <= set(tasks), "a trial has all that feeds its tasks"
        return next((f"{task} raised" for task in tasks if task in raising), None)

    found = find_culprits(feeds, trial)
    assert set(found) == {task for task in raising if not ancestors(task, feeds) & raising}
    assert all(reason == f"{task} raised" for task, reason in found.items())
    assert trials <= 2 + len(found) * (3 + ceil(log2(len(feeds))))


@given(graphs(), st.data())
def test_what_is_behind(feeds: dict[str, list[str]], data: st.DataObject) -> None:
    some = set(data.draw(st.lists(st.sampled_from(list(feeds)), unique=True, max_size=3)))
    assert behind(some, feeds) == {task for task in feeds if task in some or ancestors(task, feeds) & some}


def test_rows_that_fail_by_themselves_are_nobodys_fault() -> None:
    assert find_culprits({"a": [], "b": ["a"]}, lambda _: "no source") == {}


def test_rests_grow_and_end() -> None:
    now = 0.0
    quarantine = Quarantine(lambda: now)
    rests = []
    for _ in range(12):
        quarantine.put("t", "boom")
        began = now
        while not quarantine.due():
            assert quarantine.resting() == {"t"}
            now += 0.5
        rests.append(now - began)
        assert quarantine.reasons == {"t": "boom"}
        # It does not come back before it has been tried, and is not tried twice at once.
        assert quarantine.resting() == {"t"}
        quarantine.try_now({"t"})
        assert quarantine.due() == set()
    assert rests[0] == FIRST_REST_S
    assert rests[-1] == LONGEST_REST_S
    assert rests == sorted(rests)
    quarantine.passed({"t", "other"})
    assert quarantine.resting() == quarantine.due() == set()
    assert quarantine.reasons == {}


def test_who_raises_again_soon_rests_longer() -> None:
    now = 0.0
    quarantine = Quarantine(lambda: now)

    def comes_back() -> float:
        nonlocal now
        began = now
        while not quarantine.due():
            now += 0.5
        quarantine.try_now({"t"})
        quarantine.passed({"t"})
        return now - began

    quarantine.put("t", "boom")
    assert comes_back() == FIRST_REST_S
    quarantine.put("t", "boom")
    assert comes_back() == 2 * FIRST_REST_S
    now += 2 * FIRST_REST_S
    quarantine.passed({"t"})  # an epoch with it went well, long after
    quarantine.put("t", "boom")
    assert comes_back() == FIRST_REST_S


def test_what_does_no_harm_comes_back_without_a_trial() -> None:
    now = 0.0
    quarantine = Quarantine(lambda: now)
    quarantine.put("t", "boom", by_trial=False)
    quarantine.miss({"t"}, 1_500)
    assert quarantine.reasons == {"t": "boom (1,500 rows have passed it since)"}
    assert quarantine.resting() == {"t"}
    now = FIRST_REST_S
    assert quarantine.resting() == quarantine.due() == set()
    quarantine.passed({"t"})
    assert quarantine.reasons == {}


def status(engine: Engine, name: str) -> DataflowStatus:
    return next(found for found in engine.status()[0] if found.name == name)


RAISING = {
    "python": (
        {"type": "python", "config": {"function": "tests.runtime.functions.broken"}},
        "ValueError: cannot stand",
    ),
    "sql": ({"type": "derive", "config": {"columns": {"x": "1 / (id - id)"}}}, "DIVIDE_BY_ZERO"),
    "predicate": ({"type": "filter", "config": {"where": "cast(k as int) > 0"}}, "CAST_INVALID_INPUT"),
}


@pytest.mark.spark
@pytest.mark.parametrize("way", RAISING)
def test_the_others_get_every_row(engine: Engine, tmp_path: Path, way: str) -> None:
    task, told = RAISING[way]
    (tmp_path / "in").mkdir()
    source = files(tmp_path / "in", files_per_batch=1)
    shared = {"type": "filter", "config": {"where": "id >= 0"}}
    count = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    engine.submit(
        flow("one", source, shared, memory("one")),
        flow("bad", source, shared, task, memory("bad")),
        flow("two", source, shared, {"type": "derive", "config": {"columns": {"w": "v * 2"}}}, memory("two")),
        flow("keyed", source, shared, count, memory("keyed")),
    )
    for number in range(3):
        put(tmp_path / "in", str(number), numbered(number * 10, 10))
        engine.wait_until_idle()
    for name in ("one", "two", "keyed"):
        assert sorted(row["id"] for row in engine.memory.rows(name)) == list(range(30)), name
        assert status(engine, name).state == "running"
    assert engine.failures() == {}
    assert engine.memory.rows("bad") == []
    assert status(engine, "bad").state == "degraded"
    assert told in status(engine, "bad").reason


@pytest.mark.spark
def test_a_task_that_raises_no_more_comes_back(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = files(tmp_path / "in", files_per_batch=1)
    good = flow("good", source, memory("good"))
    bad = flow("bad", source, {"type": "derive", "config": {"columns": {"x": "1 / (id - 5)"}}}, memory("bad"))
    engine.submit(good, bad)
    put(tmp_path / "in", "0", numbered(0, 10))
    wait_for(lambda: status(engine, "bad").state == "degraded", "the dataflow to be degraded")
    for number in range(1, 400):
        put(tmp_path / "in", str(number), numbered(number * 10, 10))
        engine.wait_until_idle()
        engine.background.wait_until_idle()
        if status(engine, "bad").state == "running":
            break
    assert status(engine, "bad").reason == ""
    # What passed while it rested is missed, the rows that it was tried on among them; what comes then is whole.
    assert engine.memory.rows("bad") == []
    put(tmp_path / "in", "last", numbered(10_000, 10))
    engine.wait_until_idle()
    assert [row["id"] for row in engine.memory.rows("bad")] == list(range(10_000, 10_010))
    assert len(engine.memory.rows("good")) == number * 10 + 20


@pytest.mark.spark
def test_a_stream_into_a_stateful_task_that_raises(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = {**files(tmp_path / "in", files_per_batch=1), "id": "src"}
    count = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    engine.submit(
        flow("bad", source, {**count, "inputs": [{"from": "src", "where": "1 / (id - id) > 0"}]}, memory("bad")),
        flow("good", source, count, memory("good")),
    )
    put(tmp_path / "in", "0", numbered(0, 12))
    engine.wait_until_idle()
    assert sorted(row["id"] for row in engine.memory.rows("good")) == list(range(12))
    assert status(engine, "good").state == "running"
    assert status(engine, "bad").state == "degraded"
    assert "DIVIDE_BY_ZERO" in status(engine, "bad").reason
