"""Semantic sharing: what is found, what is left alone, and that every sink gets the rows that it would get alone."""

from __future__ import annotations

import json
import math
import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.sharing.shared_set import SharedSet, Submission
from headgate.tasks.registry import default_registry
from tests.sharing.semantic.evaluator import COLUMNS, outcome, table
from tests.sharing.test_running import check_invariants

REGISTRY = default_registry()
SOURCE = {"id": "read", "type": "read_files", "config": {"path": "in", "columns": COLUMNS}}

ATOMS = [
    *("v > 3", "3 < v", "not (v <= 3.0)", "v >= 3", "v > 5", "v between 1 and 5", "v = 4", "v in (1, 4)", "v <> 4"),
    *("k = 2", "k in (1, 2, 3)", "k in (3, 2)", "k < 3", "not k >= 3", "k is not null", "v is null", "n > 2.5"),
    *("id = 'a'", "id like 'a%'", "id >= 'b'", "upper(id) = 'A'", "length(trim(id)) = 1", "ok", "not ok", "ok = true"),
    *("v > 3 or k = 1", "k = 1 or v > 3", "v > 3 or k = 1 or ok", "w <=> v", "v < w", "w > v", "v * 2 + 1 > 4"),
    *("1 + 2 * v > 4", "coalesce(v, w) > 3", "k + 1 > 3", "n / k > 1", "rand() < 2", "not (v > 3 and k = 1)"),
]


def flow(name: str, *steps: dict[str, Any], **fields: Any) -> Dataflow:
    """A dataflow of a source, steps in a row, and a sink."""
    tasks: list[dict[str, Any]] = [SOURCE]
    for number, step in enumerate(steps):
        tasks.append({"id": f"s{number}", "inputs": [tasks[-1]["id"]]} | step)
    sink = {"id": "sink", "type": "write_memory", "config": {"name": name}, "inputs": [tasks[-1]["id"]]}
    return parse(json.dumps({"name": name, "tasks": [*tasks, sink], **fields}), "json").dataflow


def where(*texts: str) -> dict[str, Any]:
    return {"type": "filter", "config": {"where": " and ".join(f"({text})" for text in texts)}}


def select(*columns: str) -> dict[str, Any]:
    return {"type": "select", "config": {"columns": list(columns)}}


def derive(**columns: str) -> dict[str, Any]:
    return {"type": "derive", "config": {"columns": columns}}


def window(**columns: str) -> dict[str, Any]:
    return {"type": "window", "config": {"time": "t", "size": "5min", "key": ["id"], "columns": columns}}


def submitted(*flows: Dataflow) -> Submission:
    shared = SharedSet(REGISTRY)
    for one in flows:
        shared, submission = shared.submit(one)
    return submission


FOUND = {
    "commuting filters": ([where("v > 3"), where("ok")], [where("ok"), where("v > 3")], 0),
    "conjunctions in another order": ([where("v > 3", "ok")], [where("ok", "3 < v")], 0),
    "one filter for two": ([where("v > 3", "ok")], [where("ok"), where("v > 3")], 0),
    "a containing filter": ([where("v > 3")], [where("v > 5")], 1),
    "a containing range": (
        [{"type": "range_filter", "config": {"ranges": {"v": [0, 9]}}}],
        [where("v between 1 and 2")],
        1,
    ),
    "a list within a list": ([where("k in (1, 2, 3)")], [where("k in (2, 3)")], 1),
    "a value within bounds": ([where("v > 3")], [where("v = 4")], 1),
    "a wider projection": ([select("id", "v", "w")], [select("v", "id")], 1),
    "a filter and a wider projection": ([where("v > 3"), select("id", "v", "k")], [where("v > 4"), select("id")], 2),
    "a column that is derived already": ([derive(f="v * 9 / 5 + 32")], [derive(f="v * 9 / 5 + 32"), select("f")], 1),
    "renamed columns": (
        [where("v > 3"), select("id", "v")],
        [where("v > 3"), select("v"), {"type": "rename", "config": {"columns": {"v": "x"}}}],
        2,
    ),
    "the same cast before and after": (
        [{"type": "cast", "config": {"columns": {"k": "double"}}}, where("v > 3")],
        [where("v > 3"), {"type": "cast", "config": {"columns": {"k": "double"}}}],
        0,
    ),
    "a window with more aggregates": ([window(n="count(*)", top="max(v)")], [window(n="count(*)")], 1),
    "a window behind commuting filters": (
        [where("v > 3"), where("ok"), window(n="count(*)")],
        [where("ok"), where("v > 3"), window(n="count(*)")],
        0,
    ),
}


@pytest.mark.parametrize(("wide", "narrow", "left"), FOUND.values(), ids=FOUND)
def test_what_is_found(wide: list[dict[str, Any]], narrow: list[dict[str, Any]], left: int) -> None:
    found = submitted(flow("wide", *wide), flow("narrow", *narrow))
    assert len(found.wider[-1].residual) == left
    assert len(found.change.own) == left + 1  # and the sink
    assert "read" in found.exact


LEFT_ALONE = {
    "a narrower filter": ([where("v > 5")], [where("v > 3")]),
    "another column": ([where("v > 3")], [where("w > 3")]),
    "numbers that differ": ([where("v > 3")], [where("v >= 3")]),
    "a random number": ([where("rand() < 0.5")], [where("rand() < 0.5", "ok")]),
    "the clock": ([where("t < now()")], [where("t < now()", "ok")]),
    "a division that may fail": ([where("n / k > 1")], [where("n / k > 1", "ok")]),
    "a cast that may fail": ([where("cast(id as int) > 1")], [where("cast(id as int) > 1", "ok")]),
    "a text compared with a number": ([where("id > 1")], [where("id > 1", "ok")]),
    "an integer that may overflow": ([derive(m="n + 1")], [derive(m="n + 1", o="v")]),
    "a sum that may overflow": ([window(s="sum(n)", c="count(*)")], [window(c="count(*)")]),
    "a window over other rows": ([window(c="count(*)", m="max(v)")], [where("ok"), window(c="count(*)")]),
    "a window of another size": (
        [window(c="count(*)", m="max(v)")],
        [window(c="count(*)") | {"config": {"time": "t", "size": "6min", "key": ["id"], "columns": {"c": "count(*)"}}}],
    ),
    "columns that are gone": ([where("ok"), select("id")], [where("ok", "v > 3"), select("id")]),
    "the opposite": ([where("v > 3")], [where("not (v > 3)")]),
    "null is neither": ([where("v > 3")], [where("v > 3 or v is null")]),
}


@pytest.mark.parametrize(("one", "other"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_left_alone(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    found = submitted(flow("one", *one), flow("other", *other))
    assert [wider for wider in found.wider if len(wider.residual) < len(other) + 1 and _uses(found, one)] == []


def _uses(found: Submission, steps: list[dict[str, Any]]) -> bool:
    """Whether the last step of the dataflow that ran first is used."""
    return any(shared.running.task.id == f"s{len(steps) - 1}" for shared in found.change.shared)


def test_one_switch_turns_it_off() -> None:
    shared = SharedSet(REGISTRY, semantic=False)
    shared, _ = shared.submit(flow("wide", where("v > 3")))
    shared, found = shared.submit(flow("narrow", where("v > 5")))
    assert found.wider == ()
    assert len(found.change.own) == 2


def test_a_circle_is_kept_to() -> None:
    for share, wider in (("never", 0), ("owner", 0), ("anyone", 1)):
        first = flow("wide", where("v > 3"), owner="ana", share=share)
        found = submitted(first, flow("narrow", where("v > 5"), owner="ben", share=share))
        assert len(found.wider) == wider
    found = submitted(
        flow("wide", where("v > 3"), owner="ana", share="owner"),
        flow("narrow", where("v > 5"), owner="ana", share="owner"),
    )
    assert len(found.wider) == 1


def test_the_wider_stream_goes_on_when_its_owner_leaves() -> None:
    shared = SharedSet(REGISTRY)
    shared, _ = shared.submit(flow("wide", where("v > 3")))
    shared, found = shared.submit(flow("narrow", where("v > 5")))
    shared, change = shared.withdraw("wide")
    assert [task.task.type for task in change.own] == ["write_memory"]
    check_invariants(shared.running, {"narrow": found.dataflow})
    shared, _ = shared.withdraw("narrow")
    assert (len(shared.running.tasks), len(shared.index.known), len(shared.index.places)) == (0, 0, 0)


def random_flow(name: str, draw: random.Random) -> Dataflow:
    """Filters, projections and derived columns in a row; now and then a window at the end, or a fork."""
    steps: list[dict[str, Any]] = []
    columns = ["id", "k", "n", "v", "w", "ok", "t"]
    plain = True
    for _ in range(draw.randint(1, 4)):
        kind = draw.choice(("filter", "filter", "filter", "select", "derive", "rename", "cast", "range"))
        if kind == "filter" and plain:
            steps.append(where(*draw.sample(ATOMS[:-6] if draw.random() < 0.9 else ATOMS, draw.choice((1, 1, 2, 3)))))
        elif kind == "range" and plain:
            steps.append(
                {"type": "range_filter", "config": {"ranges": {"v": [draw.choice((0, 1)), draw.choice((4, 5))]}}}
            )
        elif kind == "select":
            columns = draw.sample(columns, draw.randint(max(1, len(columns) - 2), len(columns)))
            plain = {"id", "k", "n", "v", "w", "ok"} <= set(columns)
            steps.append(select(*columns))
        elif kind == "derive" and plain:
            new = draw.choice(("x", "y", "v"))
            steps.append(derive(**{new: draw.choice(("v * 2", "w + v", "coalesce(v, w)", "v"))}))
            columns = [*columns, new] if new not in columns else columns
        elif kind == "cast" and "k" in columns:
            steps.append({"type": "cast", "config": {"columns": {"k": draw.choice(("double", "bigint"))}}})
        elif kind == "rename" and "n" in columns and "m" not in columns and not plain:
            steps.append({"type": "rename", "config": {"columns": {"n": "m"}}})
            columns = ["m" if column == "n" else column for column in columns]
    if draw.random() < 0.3 and {"id", "t", "v"} <= set(columns):
        aggregates = {"c": "count(*)", "top": "max(v)", "low": "min(v)", "mean": "avg(v)"}
        steps.append(window(**{key: aggregates[key] for key in draw.sample(list(aggregates), draw.randint(1, 4))}))
    return flow(name, *steps or [where("v > 3")])


def random_rows(draw: random.Random) -> list[dict[str, Any]]:
    start = datetime(2026, 1, 1)

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.15 else value

    return [
        {
            "id": maybe(draw.choice(("a", "A", "ab", "b", " a ", ""))),
            "k": maybe(draw.randint(-1, 4)),
            "n": maybe(draw.choice((0, 1, 2, 3, 10**15))),
            "v": maybe(draw.choice((0.0, 1.0, 3.0, 3.5, 4.0, 5.0, 7.0, math.nan, math.inf, -math.inf))),
            "w": maybe(draw.choice((0.0, 3.0, 4.0, math.nan))),
            "ok": maybe(draw.random() < 0.5),
            "t": start + timedelta(minutes=draw.randint(0, 20)),
        }
        for _ in range(60)
    ]


def check_same_rows(seed: int, flows: int) -> None:
    draw = random.Random(seed)
    database = table(random_rows(draw))
    shared = SharedSet(REGISTRY)
    running: dict[str, Dataflow] = {}
    for number in range(flows):
        made = random_flow(f"flow{number}", draw)
        try:
            wanted = outcome(made, database)
        except Exception as error:  # what DuckDB refuses (a column that was dropped) is no dataflow
            event(type(error).__name__)
            continue
        shared, found = shared.submit(made)
        event(f"wider streams: {len(found.wider)}")
        assert outcome(found.dataflow, database) == wanted
        running[made.name] = found.dataflow
        if len(running) > 6:
            gone = draw.choice(list(running))
            shared, _ = shared.withdraw(gone)
            del running[gone]
    check_invariants(shared.running, running)
    assert set(shared.index.known) == set(shared.running.tasks)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_every_sink_gets_the_rows_it_would_get_alone(seed: int) -> None:
    check_same_rows(seed, 12)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_the_same_for_many_sequences(seed: int) -> None:
    check_same_rows(seed, 25)
