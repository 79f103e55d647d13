"""Every sink gets the rows of every epoch, once, and many are written together."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.engine.engine import Engine
from tests.runtime import functions
from tests.runtime.small import Rows, files, flow, json_rows, memory, multiset, numbered, put, wait_for
from tests.services import the_database

pytestmark = pytest.mark.spark


def sink(kind: str, id: str, **options: Any) -> dict[str, Any]:
    return {"id": id, "type": kind, "config": options, "inputs": ["kept"]}


def csv_rows(folder: Path) -> Rows:
    outcome: Rows = []
    for file in folder.glob("*.csv"):
        with file.open(encoding="utf-8", newline="") as lines:
            outcome += [{"id": int(i), "k": k, "v": float(v)} for i, k, v in csv.reader(lines)]
    return outcome


def parquet_rows(folder: Path) -> Rows:
    return [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]


def table_rows(path: Path, table: str = "kept") -> Rows:
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(f"select * from {table}")]


def test_all_sinks_of_one_fragment_get_the_same_rows(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    functions.CALLS.clear()
    put(tmp_path / "in", "0", numbered(0, 12))
    kept = {"id": "kept", "type": "filter", "config": {"where": "v > 0"}}
    engine.submit(
        flow(
            "many",
            files(tmp_path / "in"),
            kept,
            *(sink("write_files", f, path=str(tmp_path / f), format=f) for f in ("json", "csv", "parquet")),
            sink("write_console", "console", rows=3),
            sink("write_memory", "memory", name="m"),
            sink("write_call", "call", function="tests.runtime.functions.note"),
            sink("write_table", "table", url=f"sqlite:///{tmp_path}/t.db", table="kept"),
            {**sink("write_memory", "few", name="few"), "inputs": [{"from": "kept", "where": "id < 7"}]},
        )
    )
    engine.wait_until_idle()
    put(tmp_path / "in", "1", numbered(12, 12))
    engine.wait_until_idle()
    assert len(engine.fragments) == 1
    wanted = multiset(row for row in numbered(0, 24) if row["v"] > 0)
    assert multiset(json_rows(tmp_path / "json")) == wanted
    assert multiset(csv_rows(tmp_path / "csv")) == wanted
    assert multiset(parquet_rows(tmp_path / "parquet")) == wanted
    assert multiset(engine.memory.rows("m")) == wanted
    assert multiset(row for rows in functions.CALLS.values() for row in rows) == wanted
    assert sorted(functions.CALLS) == [0, 1]
    assert multiset(table_rows(tmp_path / "t.db")) == wanted
    assert multiset(engine.memory.rows("few")) == multiset(r for r in numbered(0, 7) if r["v"] > 0)
    printed = capsys.readouterr().out
    assert "many.console, epoch 0: 7 rows" in printed
    assert "id=5, k=k2, v=0.5" in printed
    assert printed.count("id=") == 6, "three rows of each micro-batch"
    status = engine.status()[0][0]
    assert (status.state, status.rows_out) == ("running", 19 * 7 + 2)


def test_nested_and_empty_values_survive_every_sink(engine: Engine, tmp_path: Path) -> None:
    columns = "id long, tags array<string>, at timestamp, day date, price decimal(8,2), place struct<x double>"
    row = {"id": 1, "tags": ["a", None], "at": "2026-01-02T03:04:05Z", "day": "2026-01-02"}
    row |= {"price": 1.25, "place": {"x": 2}}
    put(tmp_path / "in", "0", [row, {"id": 2}])
    kept = {"id": "kept", "type": "union"}
    engine.submit(
        flow(
            "odd",
            files(tmp_path / "in", columns=columns),
            kept,
            sink("write_files", "json", path=str(tmp_path / "json")),
            sink("write_files", "parquet", path=str(tmp_path / "parquet"), format="parquet"),
            sink("write_memory", "memory", name="m"),
            sink("write_table", "table", url=f"sqlite:///{tmp_path}/t.db", table="odd table"),
        )
    )
    engine.wait_until_idle()
    assert engine.status()[0][0].reason == ""
    inside = sorted(engine.memory.rows("m"), key=lambda outcome: outcome["id"])
    assert inside[0]["tags"] == ["a", None]
    assert inside[0]["at"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert inside[1] == dict.fromkeys(inside[0], None) | {"id": 2}
    assert sorted(parquet_rows(tmp_path / "parquet"), key=lambda outcome: outcome["id"]) == inside
    assert json_rows(tmp_path / "json")[0]["place"] == {"x": 2.0}
    assert [r["tags"] for r in table_rows(tmp_path / "t.db", '"odd table"')] == ['["a", null]', None]


def test_a_dataflow_that_comes_back_is_not_taken_for_its_former_self(engine: Engine, tmp_path: Path) -> None:
    """Its epochs count from 0 again: sinks must neither skip nor overwrite."""
    put(tmp_path / "in", "0", numbered(0, 5))
    kept = {"id": "kept", "type": "union"}
    to_table = sink("write_table", "table", url=f"sqlite:///{tmp_path}/t.db", table="kept")
    again = flow(
        "again", files(tmp_path / "in"), kept, to_table, sink("write_files", "json", path=str(tmp_path / "out"))
    )
    engine.submit(again)
    engine.wait_until_idle()
    engine.withdraw("again")
    engine.submit(again)
    engine.wait_until_idle()
    assert multiset(table_rows(tmp_path / "t.db")) == multiset([*numbered(0, 5)] * 2)
    assert multiset(json_rows(tmp_path / "out")) == multiset([*numbered(0, 5)] * 2)


def test_a_call_that_fails_is_made_again_in_order(engine: Engine, tmp_path: Path) -> None:
    functions.CALLS.clear()
    functions.REFUSE.set()
    put(tmp_path / "in", "0", numbered(0, 4))
    call = {"type": "write_call", "config": {"function": "tests.runtime.functions.note"}}
    try:
        engine.submit(flow("c", files(tmp_path / "in"), call), flow("m", files(tmp_path / "in"), memory("m")))
        engine.wait_until_idle()
        put(tmp_path / "in", "1", numbered(4, 4))
        engine.wait_until_idle()
        states = {status.name: (status.state, status.reason) for status in engine.status()[0]}
        assert states["m"] == ("running", "")
        assert states["c"] == (
            "degraded",
            "cannot write to sink 'c.t1' (nobody answers); its rows are queued and retried",
        )
        assert len(engine.memory.rows("m")) == 8
    finally:
        functions.REFUSE.clear()
    engine.housekeep()
    assert list(functions.CALLS) == [0, 1]
    assert multiset(row for rows in functions.CALLS.values() for row in rows) == multiset(numbered(0, 8))
    assert {status.state for status in engine.status()[0]} == {"running"}


def test_sinks_that_cannot_work_are_told_at_once(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    no_function = {"type": "write_call", "config": {"function": "tests.runtime.functions.nothing"}}
    no_driver = {"type": "write_table", "config": {"url": "nosuch://localhost/db", "table": "t"}}
    no_kafka = {"type": "write_kafka", "config": {"servers": "localhost:1", "topic": "t"}}
    for task, message in [
        (no_function, "cannot load function 'tests.runtime.functions.nothing'"),
        (no_driver, "nosuch"),
        (no_kafka, "Kafka at localhost:1 does not answer"),
    ]:
        with pytest.raises(InputError, match=f"task 's.t1'.*{message}"):
            engine.submit(flow("s", files(tmp_path / "in"), task))
    assert engine.snapshot.number == 0


def test_a_table_in_postgresql(spark: SparkSession, tmp_path: Path) -> None:
    import sqlalchemy as sa

    postgres = the_database().url

    put(tmp_path / "in", "0", [{**row, "at": "2026-01-02T03:04:05Z", "tags": ["x"]} for row in numbered(0, 9)])
    columns = "id long, k string, v double, at timestamp, tags array<string>"
    table = {"type": "write_table", "config": {"url": postgres, "table": "kept"}}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.submit(flow("pg", files(tmp_path / "in", columns=columns), table))
        engine.wait_until_idle()
        assert engine.status()[0][0].reason == ""
        put(tmp_path / "in", "1", numbered(9, 3))
        wait_for(lambda: engine.status()[0][0].rows_out == 12, "all rows")
    database = sa.create_engine(postgres)
    with database.connect() as connection:
        outcome = [row._asdict() for row in connection.execute(sa.text("select * from kept order by id"))]
    database.dispose()
    assert multiset({n: r[n] for n in ("id", "k", "v")} for r in outcome) == multiset(numbered(0, 12))
    assert outcome[0]["at"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert outcome[0]["tags"] == ["x"]
