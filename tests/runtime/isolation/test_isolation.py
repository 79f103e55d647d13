"""On Spark, a task that raises takes down only what it feeds, whichever way it raises.

What follows from that, trials and guards among it, is tested without Spark in ``tests/runtime/epochs``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.model.status import DataflowStatus
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, flow, memory, numbered, put

pytestmark = pytest.mark.spark


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


def test_the_others_get_every_row(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = files(tmp_path / "in", files_per_batch=1)
    shared = {"type": "filter", "config": {"where": "id >= 0"}}
    count = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    engine.submit(
        flow("one", source, shared, memory("one")),
        *(flow(way, source, shared, task, memory(way)) for way, (task, _) in RAISING.items()),
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
    for way, (_, reason) in RAISING.items():
        assert engine.memory.rows(way) == []
        assert status(engine, way).state == "degraded"
        assert reason in status(engine, way).reason


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
