"""Nexmark's queries 0 to 8 on Spark, all nine merged, against plain batch SQL over the same events."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.engine.engine import Engine
from headgate_benchmarks.nexmark.batch import answer, comparable
from headgate_benchmarks.nexmark.by_hand import run_by_hand
from headgate_benchmarks.nexmark.events import Events, write_files
from headgate_benchmarks.nexmark.flows import QUERIES, flow

pytestmark = pytest.mark.spark

FEWEST = {"q0": 1_000, "q1": 1_000, "q2": 5, "q3": 5, "q4": 5, "q5": 20, "q6": 50, "q7": 6, "q8": 10}
"""At least so many rows are to be compared, or the events would be too few to tell anything."""


def rows_of(query: str, answers: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, comparable(query, answers).collect()))


def check(spark: SparkSession, events: Path, query: str, out: Path) -> None:
    wanted = rows_of(query, answer(spark, events, query))
    found = rows_of(query, spark.read.parquet(str(out)))
    assert sum(wanted.values()) >= FEWEST[query], query
    lacking, extra = wanted - found, found - wanted
    assert (sum(lacking.values()), sum(extra.values())) == (0, 0), (query, list(lacking)[:3], list(extra)[:3])


def run_all(spark: SparkSession, engine: Engine, folder: Path, events: Events, count: int, files: int) -> None:
    """Run all nine on events that are there from the beginning, and compare every answer."""
    write_files(events, folder / "events", count, files)
    engine.submit(*(flow(query, str(folder / "events"), str(folder / "out"), files_per_batch=1) for query in QUERIES))
    engine.wait_until_idle()
    assert {found.name: found.reason for found in engine.status()[0] if found.state != "running"} == {}
    for query in QUERIES:
        check(spark, folder / "events", query, folder / "out" / query)


@pytest.mark.slow
def test_all_nine_together(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    run_all(spark, engine, tmp_path, Events(seed=3, per_s=100, padded=False), 6_000, 2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_nine_on_many_events(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    run_all(spark, engine, tmp_path, Events(seed=4, per_s=1_000), 300_000, 12)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    """What Headgate is measured against is right as well."""
    write_files(Events(seed=5, per_s=100, padded=False), tmp_path / "events", 6_000, 3)
    for query in QUERIES:
        run_by_hand(spark, query, tmp_path / "events", tmp_path)
        check(spark, tmp_path / "events", query, tmp_path / "out" / query)
