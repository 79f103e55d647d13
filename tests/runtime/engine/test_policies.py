"""Rows for which a task raises are skipped or kept, each once, and the others pass; budgets end what takes long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.runtime.engine.engine import Engine
from headgate.runtime.isolation.dead_letters import read_letters
from tests.runtime.isolation.test_isolation import status
from tests.runtime.small import files, flow, memory, numbered, put, wait_for

FUNCTIONS = "tests.runtime.functions"
FIFTHS = {3, 8, 13, 18}
TASKS: dict[str, tuple[dict[str, Any], set[int], str]] = {
    "row": ({"type": "python", "config": {"function": f"{FUNCTIONS}.picky"}}, FIFTHS, "ValueError: cannot stand 18"),
    "pandas": (
        {"type": "python", "config": {"function": f"{FUNCTIONS}.picky_frame", "over": "pandas"}},
        FIFTHS,
        "ValueError: cannot stand some",
    ),
    "arrow": (
        {"type": "python", "config": {"function": f"{FUNCTIONS}.picky_batch", "over": "arrow"}},
        {3, 7, 11, 15, 19},
        "ValueError: cannot stand some",
    ),
    "misfit": ({"type": "python", "config": {"function": f"{FUNCTIONS}.misfit"}}, FIFTHS, "Arrow"),
    "derive": (
        {"type": "derive", "config": {"columns": {"x": "1 / (id % 5 - 3)", "y": "1 / (id % 5 - 3) + 1"}}},
        FIFTHS,
        "DIVIDE_BY_ZERO",
    ),
    "filter": (
        {"type": "filter", "config": {"where": "cast(if(id % 5 = 3, k, '1') as int) = 1"}},
        FIFTHS,
        "CAST_INVALID_INPUT",
    ),
    "moving_average": (
        {"type": "moving_average", "config": {"key": ["k"], "column": "w", "size": 2}},
        FIFTHS,
        "ValueError: could not convert string to float",
    ),
}
W = {"type": "derive", "config": {"columns": {"w": "if(id % 5 = 3, k, cast(v as string))"}}}


def ids(engine: Engine, name: str) -> list[int]:
    return sorted(row["id"] for row in engine.memory.rows(name))


@pytest.mark.spark
@pytest.mark.parametrize("way", TASKS)
def test_bad_rows_are_left_out_and_kept(engine: Engine, tmp_path: Path, way: str) -> None:
    task, bad, told = TASKS[way]
    source = files(tmp_path / "in", files_per_batch=1)
    (tmp_path / "in").mkdir()
    engine.submit(
        flow("good", source, W, memory("good")),
        flow("kept", source, W, {**task, "on_error": "dead_letter"}, memory("kept")),
        flow("skipped", source, W, {**task, "on_error": "skip"}, memory("skipped")),
    )
    for number in range(2):
        put(tmp_path / "in", str(number), numbered(number * 10, 10))
        engine.wait_until_idle()
    left = sorted(set(range(20)) - bad)
    assert ids(engine, "good") == list(range(20))
    assert ids(engine, "kept") == ids(engine, "skipped") == left
    letters = list(read_letters(engine.state.path))
    assert {json.loads(letter.record)["id"] for letter in letters} == bad
    assert len(letters) == len(bad)
    assert all(told[:10] in letter.error for letter in letters), letters
    assert {letter.dataflows for letter in letters} == {("kept",)}
    kept, skipped = status(engine, "kept"), status(engine, "skipped")
    assert (kept.state, kept.rows_dead, kept.rows_skipped) == ("running", len(bad), 0)
    assert (skipped.state, skipped.rows_dead, skipped.rows_skipped) == ("running", 0, len(bad))
    assert told in kept.reason
    assert told in skipped.reason
    assert (status(engine, "good").state, status(engine, "good").reason) == ("running", "")


@pytest.mark.spark
def test_a_guarded_task_before_tasks_of_every_kind(engine: Engine, tmp_path: Path) -> None:
    """Letters leave where others begin a frame, store it, or read it by a predicate."""
    source = {**files(tmp_path / "in", files_per_batch=1), "id": "src"}
    (tmp_path / "in").mkdir()
    guarded = {
        "id": "guarded",
        "type": "derive",
        "config": {"columns": {"x": "1 / (id - 3)"}},
        "on_error": "dead_letter",
        "inputs": [{"from": "src", "where": "1 / (id - 8) <> 99"}],
    }
    picky = {"id": "picky", "type": "python", "config": {"function": f"{FUNCTIONS}.picky"}, "on_error": "dead_letter"}
    words = {"type": "tokenise", "config": {"column": "k", "pattern": "x"}}
    count = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    engine.submit(
        flow(
            "all",
            source,
            guarded,
            {**picky, "inputs": ["guarded"]},
            {**words, "id": "words", "inputs": ["picky"]},
            memory("words"),
            {**memory("plain"), "inputs": ["guarded"]},
            {**memory("picked"), "inputs": ["picky"]},
            {**count, "id": "count", "inputs": ["guarded"]},
            memory("counted"),
        )
    )
    put(tmp_path / "in", "0", numbered(0, 20))
    engine.wait_until_idle()
    passed = sorted(set(range(20)) - {3, 8})
    assert ids(engine, "plain") == ids(engine, "counted") == passed
    assert ids(engine, "picked") == ids(engine, "words") == sorted(set(passed) - {13, 18})
    assert sorted(json.loads(letter.record)["id"] for letter in read_letters(engine.state.path)) == [3, 8, 13, 18]


@pytest.mark.spark
def test_a_task_that_sleeps_is_stopped_at_its_budget(engine: Engine, tmp_path: Path) -> None:
    source = files(tmp_path / "in", files_per_batch=1)
    (tmp_path / "in").mkdir()
    drowsy = {"type": "python", "config": {"function": f"{FUNCTIONS}.drowsy"}, "time_budget": "500ms"}
    engine.submit(flow("good", source, memory("good")), flow("drowsy", source, drowsy, memory("drowsy")))
    put(tmp_path / "in", "0", numbered(0, 10))
    engine.wait_until_idle()
    assert ids(engine, "good") == list(range(10))
    assert status(engine, "good").state == "running"
    assert "over its time budget of 0.5 s" in status(engine, "drowsy").reason
    assert ids(engine, "drowsy") == []
    # It is tried again beside the epochs, and found wanting.
    for number in range(1, 12):
        put(tmp_path / "in", str(number), numbered(number * 10, 10))
        engine.wait_until_idle()
    engine.background.wait_until_idle()
    assert engine.background.failures == type(engine.background.failures)()
    assert len(ids(engine, "good")) == 120
    assert "over its time budget of 0.5 s" in status(engine, "drowsy").reason


@pytest.mark.spark
def test_an_expression_that_takes_for_ever_is_stopped(engine: Engine, tmp_path: Path) -> None:
    source = files(tmp_path / "in", files_per_batch=1)
    (tmp_path / "in").mkdir()
    endless = "size(transform(sequence(1, if(id = 1000, 100000, 1)), x -> size(array_sort(sequence(1, 1000)))))"
    slow = {"type": "derive", "config": {"columns": {"n": endless}}, "time_budget": "300ms"}
    engine.submit(flow("good", source, memory("good")), flow("slow", source, slow, memory("slow")))
    for number in range(6):
        put(tmp_path / "in", str(number), numbered(number * 10, 10))
        engine.wait_until_idle()
    assert ids(engine, "slow") == list(range(60))
    put(tmp_path / "in", "6", numbered(1000, 1))
    wait_for(lambda: 1000 in ids(engine, "good"), "the good one to get its row", 60)
    engine.wait_until_idle()
    assert "over its time budget of 0.3 s" in status(engine, "slow").reason
    assert ids(engine, "slow") == list(range(60))
