"""Tasks in a row become one expression, and nothing comes out otherwise than if they ran one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.model.work import RowWise
from headgate.runtime.compile.row_sql import LONGEST, FusedTask, _joined, folded
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import flow, memory, multiset, put


def derive(parent: str, *tests: str, **columns: str) -> FusedTask:
    return FusedTask(parent, tests, RowWise(tuple(columns), columns=tuple(columns.items())))


def keep(parent: str, *tests: str) -> FusedTask:
    return FusedTask(parent, tests, RowWise(("a", "b")))


def test_a_filter_and_what_reads_it_are_one() -> None:
    outcome = _joined(keep("r0", "a > 1"), derive("r1", "b > 2", c="a + b"))
    assert outcome == FusedTask("r0", ("a > 1", "b > 2"), RowWise(("c",), columns=(("c", "a + b"),)))


def test_what_is_made_is_put_where_it_is_read() -> None:
    outcome = _joined(derive("r0", c="(a * 2)", d="b"), derive("r1", "`C` > 1", e="d + d", f="D"))
    assert outcome == FusedTask("r0", ("(a * 2) > 1",), RowWise(("e", "f"), columns=(("e", "b + b"), ("f", "b"))))


def test_nothing_is_computed_twice() -> None:
    assert _joined(derive("r0", c="(slow(a))"), derive("r1", "c > 1", d="c")) is None


def test_no_text_grows_without_end() -> None:
    long = f"({' + '.join(['a'] * (LONGEST // 3))})"
    assert _joined(derive("r0", c=long), derive("r1", d="c")) is None


def test_what_several_read_stands_alone_and_what_nobody_reads_is_gone() -> None:
    works = {"r1": keep("r0", "a > 1"), "r2": keep("r1", "a > 2"), "r3": keep("r1", "a > 3"), "r4": keep("r3", "a > 4")}
    made, outcome = folded(works, ["r2", "r4"])
    assert made == {
        "r1": works["r1"],
        "r2": works["r2"],
        "r4": FusedTask("r1", ("a > 3", "a > 4"), works["r4"].does),
    }
    assert outcome == {"r1": ("r1", 0), "r2": ("r2", 0), "r3": ("r4", 0), "r4": ("r4", 1)}
    assert folded(works, ["r3", "r3"])[0] == {"r3": FusedTask("r0", ("a > 1", "a > 3"), works["r3"].does)}


def test_tests_that_may_answer_otherwise_the_next_time_are_not_asked_twice() -> None:
    assert _joined(keep("r0", "RAND(1) < 0.5"), keep("r1", "a > 1")) is None
    assert _joined(keep("r0"), keep("r1", "rand(1) < 0.5")) is not None


ROWS: list[dict[str, Any]] = [
    {"id": i, "the `x`": None if i % 5 == 0 else i % 7, "Text": f"{i}" if i % 3 else "none", "v": i / 2}
    for i in range(40)
]


@pytest.mark.spark
def test_long_rows_of_tasks_beside_each_other(engine: Engine, tmp_path: Path) -> None:
    """With odd names, nulls, columns read twice and texts that are numbers only where a test before says so."""
    put(tmp_path / "in", "0", ROWS)
    columns = "id long, `the ``x``` long, Text string, v double"
    source = {"id": "src", "type": "read_files", "config": {"path": str(tmp_path / "in"), "columns": columns}}
    engine.submit(
        flow(
            "a",
            source,
            {"type": "derive", "config": {"columns": {"w": "v * 2 + 1", "TEXT": "lower(text)"}}},
            {"type": "filter", "config": {"where": "`the ``x``` > 1"}},
            {"type": "derive", "config": {"columns": {"y": "w + w", "it's": "case when id > 10 then w end"}}},
            {"type": "select", "config": {"columns": ["id", "y", "it's", "text"]}},
            {"type": "filter", "config": {"where": "y > 5"}},
            memory("a"),
        ),
        flow(
            "b",
            source,
            {"type": "filter", "config": {"where": "text rlike '^[0-9]+$'"}},
            {"type": "filter", "config": {"where": "cast(text as int) % 2 = 0"}},
            {"type": "derive", "config": {"columns": {"n": "cast(text as int)"}}},
            {"type": "rename", "config": {"columns": {"n": "number"}}},
            memory("b"),
        ),
        flow("c", source, memory("c")),
        flow("d", source, {"type": "filter", "config": {"where": "id < 3"}}, memory("d")),
    )
    engine.wait_until_idle()
    a = [
        {"id": r["id"], "y": 2 * (r["v"] * 2 + 1), "it's": r["v"] * 2 + 1 if r["id"] > 10 else None, "text": r["Text"]}
        for r in ROWS
        if r["the `x`"] is not None and r["the `x`"] > 1 and 2 * (r["v"] * 2 + 1) > 5
    ]
    b = [{**r, "number": int(r["Text"])} for r in ROWS if r["Text"] != "none" and int(r["Text"]) % 2 == 0]
    for name, wanted in {"a": a, "b": b, "c": ROWS, "d": ROWS[:3]}.items():
        assert multiset(engine.memory.rows(name)) == multiset(wanted), name
