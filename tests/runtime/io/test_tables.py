"""Tables as sources of running dataflows: SQLite, PostgreSQL, Delta and Iceberg, through restarts of the engine."""

from __future__ import annotations

import sqlite3
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.machines.processes import end, reap
from headgate.machines.services.database import server_programs
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import Rows, files, flow, json_rows, memory, multiset, numbered, put, wait_for
from tests.runtime.table_source.test_versions import Delta, Iceberg
from tests.runtime.table_source.test_versions import numbered as dated
from tests.services import the_database

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Source:
    """A table to read: the task that does, and somebody else's way to add rows."""

    task: dict[str, Any]
    add: Callable[[Rows], None]
    rows: Callable[[int, int], Rows]


def sqlite_source(folder: Path) -> Source:
    with sqlite3.connect(folder / "city.db") as connection:
        connection.execute("create table t (id integer primary key, k text, v real)")

    def add(rows: Rows) -> None:
        with sqlite3.connect(folder / "city.db") as connection:
            connection.executemany("insert into t values (:id, :k, :v)", rows)

    return Source(of_table(f"sqlite:///{folder}/city.db", "t"), add, numbered)


def of_table(url: str, table: str, **options: Any) -> dict[str, Any]:
    given = {"url": url, "table": table, "by": "id", "columns": "id long, k string, v double", **options}
    return {"type": "read_table", "config": given}


def psql(text: str) -> str:
    """What psql, which is not ours, does and says."""
    command = [str(server_programs() / "psql"), the_database().url.replace("+psycopg", ""), "-qAtX", "-c", text]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def postgres_source(folder: Path) -> Source:
    del folder
    name = f"s{uuid.uuid4().hex[:8]}"
    psql(f"create table {name} (id bigint primary key, k text, v double precision)")

    def add(rows: Rows) -> None:
        psql(f"insert into {name} values " + ", ".join(f"({r['id']}, '{r['k']}', {r['v']})" for r in rows))

    return Source(of_table(the_database().url, name), add, numbered)


def delta_source(folder: Path) -> Source:
    table = Delta(folder)
    table.add([])
    config = {"path": str(table.path), "columns": "id long, day string, v double"}
    return Source({"type": "read_delta", "config": config}, table.add, dated)


def iceberg_source(folder: Path) -> Source:
    table = Iceberg(folder)
    config = {**table.place, "catalog_name": "w", "table": "city.t", "columns": "id long, day string, v double"}
    return Source({"type": "read_iceberg", "config": config}, table.add, dated)


@pytest.mark.parametrize("make", [sqlite_source, postgres_source, delta_source, iceberg_source])
def test_each_row_once_through_a_restart(spark: SparkSession, tmp_path: Path, make: Callable[[Path], Source]) -> None:
    source, out = make(tmp_path), tmp_path / "out"
    source.add(source.rows(0, 10))
    kept = {"id": "kept", "type": "filter", "config": {"where": "v > 0"}}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        write = {"type": "write_files", "config": {"path": str(out)}}
        engine.submit(flow("copy", source.task, kept, write))
        engine.wait_until_idle()
        source.add(source.rows(10, 10))
        engine.wait_until_idle()
        assert len(json_rows(out)) == sum(row["v"] > 0 for row in source.rows(0, 20))
    source.add(source.rows(20, 10))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.wait_until_idle()
        assert engine.status()[0][0].reason == ""
    assert multiset(json_rows(out)) == multiset(row for row in source.rows(0, 30) if row["v"] > 0)


def test_rows_that_a_limit_keeps_waiting_are_known(engine: Engine, tmp_path: Path) -> None:
    source = sqlite_source(tmp_path)
    source.add(numbered(0, 50))
    slow = of_table(source.task["config"]["url"], "t", rows_per_batch=7)
    engine.submit(flow("few", slow, memory("few")))
    engine.wait_until_idle()
    assert multiset(engine.memory.rows("few")) == multiset(numbered(0, 50))
    assert max(table.num_rows for table in engine.memory.epochs("few").values()) <= 7


def test_what_cannot_work_is_refused_in_a_sentence(engine: Engine, tmp_path: Path) -> None:
    url = sqlite_source(tmp_path).task["config"]["url"]
    delta = {"type": "read_delta", "config": {"path": str(tmp_path / "none"), "columns": "a int"}}
    place = {"catalog": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path), "table": "a.b", "columns": "a int"}
    cases = [
        (of_table(url, "u"), "no table 'u' in the database"),
        (of_table(url, "t", columns="id long, w int"), "table 't' has no column 'w'; it has id, k, v"),
        (of_table("postgresql+psycopg://a@127.0.0.1:1/x", "t"), "the database cannot be asked"),
        (delta, "no Delta table at"),
        ({"type": "read_iceberg", "config": place}, "the catalogue has no table 'a.b'"),
    ]
    for task, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            engine.submit(flow("bad", task, memory("m")))
    assert engine.dataflows == ()


@pytest.mark.parametrize("away_s", [0.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_a_database_that_is_away_is_waited_for_and_others_go_on(engine: Engine, tmp_path: Path, away_s: float) -> None:
    """A source and a sink of it say that they wait; a dataflow that does not need it gets its rows."""
    database, target = the_database(), f"o{uuid.uuid4().hex[:8]}"
    source = postgres_source(tmp_path)
    source.add(numbered(0, 10))
    for name in ("in", "other"):
        put(tmp_path / name, "0", numbered(0, 10))
    to_table = {"type": "write_table", "config": {"url": database.url, "table": target}}
    engine.submit(
        flow("read", source.task, memory("read")),
        flow("sent", files(tmp_path / "in"), to_table),
        flow("files", files(tmp_path / "other"), memory("files")),
    )
    engine.wait_until_idle()
    end(database.mark, 0.0)
    reap()
    began = time.monotonic()
    try:
        put(tmp_path / "in", "1", numbered(10, 10))
        put(tmp_path / "other", "1", numbered(10, 1))
        wait_for(lambda: "goes on by itself" in _reason(engine, "read"), "the source says so")
        wait_for(lambda: "its rows are queued and retried" in _reason(engine, "sent"), "the sink says so")
        number = 11
        while True:
            wait_for(lambda: len(engine.memory.rows("files")) == number, "others go on", 30.0)  # noqa: B023
            if time.monotonic() - began > away_s:
                break
            put(tmp_path / "other", f"n{number}", numbered(number, 1))
            number += 1
    finally:
        database.start()
    source.add(numbered(10, 10))
    wait_for(lambda: len(engine.memory.rows("read")) == 20, "the source goes on")
    wait_for(lambda: _reason(engine, "read") == "" == _reason(engine, "sent"), "all is well again")
    assert multiset(engine.memory.rows("read")) == multiset(numbered(0, 20))
    assert sorted(map(int, psql(f"select id from {target}").split())) == list(range(20))


def _reason(engine: Engine, name: str) -> str:
    engine.housekeep()
    return next(one.reason for one in engine.status()[0] if one.name == name)
