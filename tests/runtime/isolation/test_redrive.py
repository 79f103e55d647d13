"""Rows that failed are offered again to the task that refused them, each exactly once, whatever happens in between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.runtime.engine.engine import Engine
from headgate.runtime.isolation.dead_letters import DeadLetters, read_letters
from headgate.store.entries import Audited, Delivered
from tests.runtime.small import beside, files, flow, memory, multiset, numbered, put, put_text

pytestmark = pytest.mark.spark

Letters = list[dict[str, Any]]


def dividing(name: str, source: dict[str, Any], expression: str, *more: dict[str, Any]) -> Dataflow:
    """Divides by v, which is zero for some rows."""
    task = {"type": "derive", "config": {"columns": {"w": expression}}, "on_error": "dead_letter"}
    return flow(name, source, task, *(more or (memory(name),)))


def letters(engine: Engine) -> list[int]:
    return sorted(json.loads(letter.record)["id"] for letter in read_letters(engine.state.path))


def test_after_the_dataflow_was_replaced(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = files(tmp_path / "in", files_per_batch=1)
    rows = numbered(0, 30)
    bad = [row for row in rows if row["v"] in (0, 5)]
    engine.submit(dividing("a", source, "100 / v + 100 / (v - 5)"), flow("other", source, memory("other")))
    put(tmp_path / "in", "0", rows)
    engine.wait_until_idle()
    assert letters(engine) == [row["id"] for row in bad]
    count = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    engine.submit(dividing("a", source, "100 / (v - 5)", count, memory("a")), replace=True)
    entry = Audited(0.0, "ana", "admin", "test", "redrive", ("a.t1",), "done")
    result = engine.redrive("a", "t1", lambda _result: [entry])
    assert (result.rows, result.refused, result.dataflows, result.task) == (2, 1, ("a",), "a.t1")
    engine.wait_until_idle()
    seen = Counter(row["id"] for row in engine.memory.rows("a"))
    assert seen == Counter(row["id"] for row in rows if row["v"] != 5), "all but the row that fails still, once"
    assert [row["n"] for row in engine.memory.rows("a") if row["id"] == bad[0]["id"]] == [1], "also behind a keyed task"
    assert multiset(engine.memory.rows("other")) == multiset(rows), "for others it is not there again"
    assert letters(engine) == [row["id"] for row in bad if row["v"] == 5]
    assert entry in [one for _, one in engine.journal.read(Audited)]
    engine.submit(dividing("a", source, "100 + v", count, memory("a")), replace=True)
    assert (result := engine.redrive("a", "t1")).refused == 0
    assert result.rows == 1
    engine.wait_until_idle()
    assert Counter(row["id"] for row in engine.memory.rows("a")) == Counter(row["id"] for row in rows)
    with pytest.raises(InputError, match="no dead letters"):
        engine.redrive("a", "t1")


TYPES = {
    "text": ("string", '"ä\\"\\n"'),
    "small": ("tinyint", "-7"),
    "large": ("bigint", "9007199254740993"),
    "real": ("double", "0.1"),
    "exact": ("decimal(20,5)", "123456789012345.12345"),
    "flag": ("boolean", "true"),
    "day": ("date", '"2026-02-28"'),
    "moment": ("timestamp", '"2026-11-19T10:11:12.123456Z"'),
    "raw": ("binary", '"AAH/"'),
    "many": ("array<bigint>", "[1,null,3]"),
    "pair": ("struct<a:double,b:string>", '{"a":1.5,"b":null}'),
    "none": ("string", "null"),
}
"""Columns of all kinds, and a value of each as JSON."""


@pytest.mark.parametrize("way", ["sql", "python"])
def test_rows_come_back_as_they_were(engine: Engine, tmp_path: Path, way: str) -> None:
    (tmp_path / "in").mkdir()
    columns = "id bigint, " + ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    source = files(tmp_path / "in", columns=columns)
    ok = {"type": "filter", "config": {"where": "id >= 0"}, "on_error": "dead_letter"}
    bad = (
        {"type": "filter", "config": {"where": "1 / (id - id) > 0"}, "on_error": "dead_letter"}
        if way == "sql"
        else {"type": "python", "config": {"function": "tests.runtime.functions.broken"}, "on_error": "dead_letter"}
    )
    engine.submit(flow("a", source, bad, memory("a")), flow("whole", source, memory("whole")))
    text = ", ".join(f'"{name}": {value}' for name, (_, value) in TYPES.items())
    put_text(tmp_path / "in", "0.json", f'{{"id": 1, {text}}}\n')
    engine.wait_until_idle()
    engine.submit(flow("a", source, ok, memory("a")), replace=True)
    assert engine.redrive("a", "t1").rows == 1
    (there,), (was,) = engine.memory.rows("a"), engine.memory.rows("whole")
    assert there == was
    assert there["moment"].microsecond == 123456


@pytest.mark.parametrize("cut", ["delivering", "settling", "noting"])
def test_an_engine_that_ends_in_the_middle(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """It is killed after the commit: before the delivery, before letters are settled, and before that is noted."""
    (tmp_path / "in").mkdir()
    source = files(tmp_path / "in")
    sink = {"type": "write_files", "config": {"path": str(tmp_path / "out")}}
    rows = numbered(0, 30)
    engine = Engine(tmp_path / "state", spark=spark, trigger_s=0.1)
    engine.submit(dividing("a", source, "100 / v", sink))
    put(tmp_path / "in", "0", rows)
    engine.wait_until_idle()
    engine.submit(dividing("a", source, "100 + v", sink), replace=True)
    with monkeypatch.context() as patched:
        _kill(patched, engine, cut)
        with pytest.raises(KeyboardInterrupt):
            engine.redrive("a", "t1")
    _leave(engine)
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as again:
        again.wait_until_idle()
        assert letters(again) == []
        with pytest.raises(InputError, match="no dead letters"):
            again.redrive("a", "t1")
        assert again.dead_letters.left_out(again.snapshot.find("a").signatures["t1"]).dead_letters == 0  # type: ignore[index]
    written = _written(tmp_path / "out")
    assert sorted(row["id"] for row in written) == [row["id"] for row in rows]


def _written(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob("*.json") for line in file.read_text().splitlines()]


def _kill(patched: pytest.MonkeyPatch, engine: Engine, cut: str) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    if cut == "delivering":
        patched.setattr(engine.outbox, "_offer", killed)
    elif cut == "settling":
        patched.setattr(DeadLetters, "settle", killed)
    else:
        append: Callable[..., int] = engine.journal.append

        def note(*entries: object, **more: bool) -> int:
            if any(isinstance(one, Delivered) and one.origin.startswith("redrive-") for one in entries):
                killed()
            return append(*entries, **more)

        patched.setattr(engine.journal, "append", note)


def _leave(engine: Engine) -> None:
    """Stop as a killed process does: nothing is finished that was not."""
    engine._redrives._unfinished.clear()
    engine.stop()


def test_what_cannot_be_redriven_says_why_and_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = files(tmp_path / "in")
    engine.submit(dividing("a", source, "100 / v"))
    put(tmp_path / "in", "0", numbered(0, 30))
    engine.wait_until_idle()
    before = letters(engine)
    with pytest.raises(InputError, match="no task 't9'"):
        engine.redrive("a", "t9")
    with pytest.raises(InputError, match=r"no dead letters of 'a\.t0'"):
        engine.redrive("a", "t0")
    engine.pause("a")
    with pytest.raises(InputError, match="headgate resume a"):
        engine.redrive("a", "t1")
    engine.resume("a")
    wider = files(tmp_path / "in", columns="id long, k string, v double, q double")
    engine.submit(dividing("a", wider, "100 + v"), replace=True)
    with pytest.raises(InputError, match="reads 'q' now, which 1 dead letter"):
        engine.redrive("a", "t1")
    raising = {"type": "derive", "config": {"columns": {"x": "1 / (w - w)"}}}
    engine.submit(dividing("a", source, "100 + v", raising, memory("a")), replace=True)
    with pytest.raises(InputError, match=r"DIVIDE_BY_ZERO.*nothing was redriven"):
        engine.redrive("a", "t1")
    assert letters(engine) == before


def test_who_shares_a_task_later_does_not_get_the_rows(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = files(tmp_path / "in")
    engine.submit(dividing("a", source, "100 / v"), dividing("b", source, "100 / v"))
    put(tmp_path / "in", "0", numbered(0, 30))
    engine.wait_until_idle()
    engine.submit(dividing("c", source, "100 + v"), dividing("a", source, "100 + v"), replace=True)
    assert engine.redrive("a", "t1").dataflows == ("a",)
    assert [row["id"] for row in engine.memory.rows("a")].count(4) == 1
    assert 4 not in [row["id"] for row in engine.memory.rows("c")][30:]
    (letter,) = read_letters(engine.state.path)
    assert letter.dataflows == ("b",), "its rows are still there for the other"
    count = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    late = dividing("b", source, "100 + v", count, memory("b"))
    engine.submit(late, replace=True)
    engine.submit(beside(dividing("d", source, "100 + v", count, memory("d")), "b"))
    with pytest.raises(InputError, match="is shared with d"):
        engine.redrive("b", "t1")
