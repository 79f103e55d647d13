"""SQLite and PostgreSQL tables as sources: each row once, in the order of the column that grows."""

from __future__ import annotations

import random
import sqlite3
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.runtime.table_source.database import sql_table
from headgate.runtime.table_source.driver import TableBatches
from headgate.tasks.database.read import ReadTable
from headgate.tasks.row_errors import SourceAwayError
from headgate.tasks.source_folder import read_note
from tests.runtime.table_source.reading import Reading
from tests.services import the_database

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


def reading(options: ReadTable, folder: Path, limit: int | None = None, schema: pa.Schema = SCHEMA) -> Reading:
    return Reading(lambda: sql_table(options), schema, folder / f"read-{uuid.uuid4()}", limit)


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "city.db")
    connection.execute("create table t (id integer primary key, s text)")
    yield connection
    connection.close()


def of_lite(folder: Path, **options: Any) -> ReadTable:
    given = {"table": "t", "by": "id", "columns": "id bigint, s string", **options}
    return ReadTable(url=f"sqlite:///{folder}/city.db", **given)


@pytest.mark.parametrize("seed", range(3))
def test_every_row_of_sqlite_once(lite: sqlite3.Connection, tmp_path: Path, seed: int) -> None:
    dice, made = random.Random(seed), 0
    read = reading(of_lite(tmp_path), tmp_path, dice.choice([None, 1, 7]))
    for _ in range(12):
        count = dice.randint(0, 9)
        with lite:
            lite.executemany("insert into t (s) values (?)", [(f"n{made + n}",) for n in range(count)])
        made += count
        if dice.random() < 0.7:
            read.one(dice)
    assert [(row["id"], row["s"]) for row in read.all(dice)] == [(n + 1, f"n{n}") for n in range(made)]


def test_rows_of_equal_value_come_together_and_the_rest_waits(lite: sqlite3.Connection, tmp_path: Path) -> None:
    lite.execute("create table u (id integer, s text)")
    with lite:
        lite.executemany("insert into u values (?, '')", [(1,), (1,), (1,), (2,), (3,)])
    options = of_lite(tmp_path, table="u")
    folder = tmp_path / "read"
    folder.mkdir()
    batches = TableBatches(sql_table(options), folder, 2)
    offset = batches.next(batches.first())
    assert (offset["rows"], offset["at"]) == (3, {"by": 1})
    assert read_note(folder, "due.json")["throttled"] == 2
    assert [row["id"] for row in reading(options, tmp_path, 2).all()] == [1, 1, 1, 2, 3]


@pytest.mark.parametrize(("start", "wanted"), [("earliest", [1, 2, 3, 4]), ("now", [4]), (1, [2, 3, 4])])
def test_where_a_source_begins(lite: sqlite3.Connection, tmp_path: Path, start: Any, wanted: list[int]) -> None:
    with lite:
        lite.executemany("insert into t values (?, '')", [(1,), (2,), (3,)])
    read = reading(of_lite(tmp_path, start=start), tmp_path)
    read.all()
    with lite:
        lite.execute("insert into t values (4, '')")
    assert [row["id"] for row in read.all()] == wanted


def test_values_that_do_not_fit_are_broken_rows(lite: sqlite3.Connection, tmp_path: Path) -> None:
    with lite:
        lite.executemany("insert into t values (?, ?)", [(1, "1"), (2, "two"), (3, None), (4, "4")])
    read = reading(
        of_lite(tmp_path, columns="id bigint, s int"), tmp_path, schema=SCHEMA.set(1, pa.field("s", pa.int32()))
    )
    assert [row["s"] for row in read.all()] == [1, None, 4]
    assert read.broken == ["table t: s: invalid literal for int() with base 10: 'two'"]


def test_a_database_that_is_away_is_waited_for(lite: sqlite3.Connection, tmp_path: Path) -> None:
    with lite:
        lite.execute("insert into t values (1, '')")
    read = reading(of_lite(tmp_path), tmp_path)
    read.all()
    with lite:
        lite.execute("alter table t rename to elsewhere")
    folder = tmp_path / "looks"
    folder.mkdir()
    batches = TableBatches(sql_table(of_lite(tmp_path)), folder)
    start = {"rows": 1, "batch": 1, "at": {"by": 1}, "us": 0}
    assert batches.next(start) == start
    assert "the database does not answer (no such table: t)" in read_note(folder, "waits.json")
    with lite:
        lite.execute("alter table elsewhere rename to t")
        lite.execute("insert into t values (2, '')")
    assert batches.next(start)["rows"] == 2
    assert read_note(folder, "waits.json") is None


# PostgreSQL; the mark is for the server, not for Spark


def connected() -> Any:
    import psycopg

    return psycopg.connect(the_database().url.replace("+psycopg", ""))


@pytest.fixture
def table() -> Iterator[str]:
    name = f"t{uuid.uuid4().hex[:8]}"
    with connected() as connection:
        connection.execute(f"create table {name} (id bigserial primary key, s text)")
    yield name
    with connected() as connection:
        connection.execute("set lock_timeout = '5s'")  # a test that fails may have left writers behind
        connection.execute(f"drop table {name}")


def of_postgres(name: str, **options: Any) -> ReadTable:
    given = {"by": "id", "columns": "id bigint, s string", **options}
    return ReadTable(url=the_database().url, table=name, **given)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_every_row_of_postgresql_once_in_whatever_order_writers_end(table: str, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    writers = [connected() for _ in range(4)]
    read = reading(of_postgres(table), tmp_path, dice.choice([None, 3]))
    wanted: list[str] = []
    mine: list[list[str]] = [[] for _ in writers]
    for step in range(60):
        at = dice.randrange(len(writers))
        what = dice.random()
        if what < 0.5:
            writers[at].execute(f"insert into {table} (s) values (%s)", [f"n{step}"])
            mine[at].append(f"n{step}")
        elif what < 0.8:
            ends_well = what < 0.7
            (writers[at].commit if ends_well else writers[at].rollback)()
            wanted += mine[at] if ends_well else []
            mine[at] = []
        else:
            read.one(dice)
    for writer, some in zip(writers, mine, strict=True):
        writer.commit()
        wanted += some
        writer.close()
    rows = read.all(dice)
    assert sorted(row["s"] for row in rows) == sorted(wanted)
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    with connected() as connection:
        there = connection.execute(f"select id, s from {table} order by id").fetchall()
    assert [(row["id"], row["s"]) for row in rows] == there


@pytest.mark.spark
def test_a_writer_that_stays_open_keeps_rows_waiting_and_is_said(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.runtime.table_source import database

    monkeypatch.setattr(database, "SAID_AFTER_S", 0.0)
    (tmp_path / "read").mkdir()
    batches = TableBatches(sql_table(of_postgres(table)), tmp_path / "read")
    first = batches.first()
    with connected() as slow, connected() as quick:
        slow.execute(f"insert into {table} (s) values ('slow')")
        quick.execute(f"insert into {table} (s) values ('quick')")
        quick.commit()
        assert batches.next(first) == first
        assert (
            read_note(tmp_path / "read", "waits.json") == f"writers of '{table}' have not ended their transactions (1)"
        )
        slow.commit()
        assert batches.next(first)["rows"] == 2
        assert read_note(tmp_path / "read", "waits.json") is None


@pytest.mark.spark
def test_a_partitioned_table_is_watched_with_its_partitions(tmp_path: Path) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    with connected() as connection:
        connection.execute(f"create table {name} (id bigserial, s text) partition by list (s)")
        connection.execute(f"create table {name}_a partition of {name} for values in ('a')")
        connection.execute(f"create table {name}_b partition of {name} for values in ('b')")
    read = reading(of_postgres(name), tmp_path)
    with connected() as slow, connected() as quick:
        slow.execute(f"insert into {name}_a (id, s) values (nextval('{name}_id_seq'), 'a')")
        quick.execute(f"insert into {name} (s) values ('b')")
        quick.commit()
        assert read.all() == []
    assert [row["s"] for row in read.all()] == ["a", "b"]


TYPES: list[tuple[str, str, pa.DataType, list[tuple[str, Any]]]] = [
    ("smallint", "smallint", pa.int16(), [("-7", -7)]),
    ("boolean", "boolean", pa.bool_(), [("true", True), ("false", False)]),
    ("double precision", "double", pa.float64(), [("0.1", 0.1), ("'-infinity'", float("-inf")), ("1e300", 1e300)]),
    ("numeric", "decimal(12,3)", pa.decimal128(12, 3), [("1.25", Decimal("1.250"))]),
    ("text", "string", pa.string(), [("''", ""), ("E'a,\"b\\n\\\\n%%:x'", 'a,"b\n\\n%%:x'), ("'\\N'", "\\N")]),
    ("jsonb", "string", pa.string(), [("'{\"a\": [1]}'", '{"a": [1]}')]),
    ("bytea", "binary", pa.binary(), [("'\\x00ff'", b"\x00\xff")]),
    ("date", "date", pa.date32(), [("'2026-11-01'", date(2026, 11, 1))]),
    (
        "timestamptz",
        "timestamp",
        pa.timestamp("us", "UTC"),
        [("'2026-11-01 01:00:00.123456+01'", datetime(2026, 11, 1, 0, 0, 0, 123456, UTC))],
    ),
    (
        "timestamp",
        "timestamp",
        pa.timestamp("us", "UTC"),
        [("'1969-12-31 23:59:59'", datetime(1969, 12, 31, 23, 59, 59, 0, UTC))],
    ),
    ("text", "int", pa.int32(), [("'12'", 12)]),
]


@pytest.mark.spark
def test_columns_of_every_type(tmp_path: Path) -> None:
    for number, (of_sql, of_ours, kind, values) in enumerate(TYPES):
        name = f"v{number}{uuid.uuid4().hex[:8]}"
        with connected() as connection:
            connection.execute(f'create table {name} (id bigserial, "Va:lue" {of_sql})'.encode())
            for literal, _ in [*values, ("null", None)]:
                connection.execute(f'insert into {name} ("Va:lue") values ({literal})'.encode())
        options = of_postgres(name, columns=f"id bigint, `Va:lue` {of_ours}")
        read = reading(options, tmp_path, schema=pa.schema([("id", pa.int64()), ("Va:lue", kind)]))
        assert [row["Va:lue"] for row in read.all()] == [value for _, value in values] + [None], of_sql


@pytest.mark.spark
def test_a_value_of_another_type_is_a_broken_row_in_postgresql_too(table: str, tmp_path: Path) -> None:
    with connected() as connection:
        connection.execute(f"insert into {table} (s) values ('1'), ('two'), ('3')")
    schema = SCHEMA.set(1, pa.field("s", pa.int64()))
    read = reading(of_postgres(table, columns="id bigint, s bigint"), tmp_path, schema=schema)
    assert [row["s"] for row in read.all()] == [1, 3]
    assert read.broken == [f"table {table}: s: invalid literal for int() with base 10: 'two'"]


@pytest.mark.spark
def test_dates_are_read_whatever_the_style_in_which_the_server_writes_them(tmp_path: Path) -> None:
    name = f"d{uuid.uuid4().hex[:8]}"
    with connected() as connection:
        connection.execute(f"create table {name} (at timestamptz, d date)")
        connection.execute(f"insert into {name} values ('2026-11-02 00:00:00+00', '2026-11-02')")
        connection.execute(f"insert into {name} values ('2026-11-03 00:00:00+00', '2026-11-03')")
    url = f"{the_database().url}?options=-c%20datestyle%3DGerman"
    options = ReadTable(url=url, table=name, by="at", columns="at timestamp, d date", rows_per_batch=1)
    read = reading(options, tmp_path, 1, pa.schema([("at", pa.timestamp("us", "UTC")), ("d", pa.date32())]))
    assert [row["d"] for row in read.all()] == [date(2026, 11, 2), date(2026, 11, 3)]
    assert [row["at"].day for row in read.rows] == [2, 3]


def test_nobody_at_the_address_is_somebody_who_is_away() -> None:
    options = ReadTable(url="postgresql+psycopg://a@127.0.0.1:1/x", table="t", by="id", columns="id bigint")
    with pytest.raises(SourceAwayError, match="the database does not answer"):
        sql_table(options).look({"by": None}, 10)
