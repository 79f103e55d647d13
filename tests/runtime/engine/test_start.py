"""Outputs do not depend on who else runs: dataflows that come late catch up, and then share what runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, flow, memory, numbered, put

pytestmark = pytest.mark.spark

POSITIVE = {"type": "filter", "config": {"where": "v > 0"}}
COUNT = {"type": "count", "config": {"key": ["k"], "into": "n"}}


def ids(engine: Engine, sink: str) -> list[int]:
    return [row["id"] for row in engine.memory.rows(sink)]


def counts(engine: Engine, sink: str) -> dict[int, int]:
    return {row["id"]: row["n"] for row in engine.memory.rows(sink)}


def counted(numbers: range) -> dict[int, int]:
    return {number: at // 3 + 1 for at, number in enumerate(numbers)}


def test_a_late_dataflow_gets_all_rows_in_order(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", numbered(0, 30))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", files(folder), POSITIVE, memory("base")))
        engine.wait_until_idle()
        put(folder, "1", numbered(30, 30))
        engine.wait_until_idle()
        before = set(engine.fragments)
        (submission,) = engine.submit(flow("late", files(folder), POSITIVE, memory("late"))).submissions
        assert (submission.start.start, submission.start.how) == ("earliest", "catch up")
        assert engine.snapshot.catch_ups.keys() == {"late"}
        put(folder, "2", numbered(60, 30))
        engine.wait_until_idle()
        assert ids(engine, "late") == ids(engine, "base") == [n for n in range(90) if n * 0.5 - 2 > 0]
        engine.housekeep()
        assert set(engine.fragments) == before
        assert (engine.snapshot.catch_ups, engine.snapshot.readings) == ({}, {})
        assert len(engine.plan.tasks) == 4


def test_a_late_dataflow_shares_a_count_from_the_earliest(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", numbered(0, 30))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", files(folder), COUNT, memory("base")))
        engine.wait_until_idle()
        (submission,) = engine.submit(flow("late", files(folder), COUNT, memory("late"))).submissions
        assert submission.start.how == "catch up"
        put(folder, "1", numbered(30, 30))
        engine.wait_until_idle()
        assert counts(engine, "late") == counts(engine, "base") == counted(range(60))
        engine.housekeep()
        assert len(engine.plan.tasks) == 4
