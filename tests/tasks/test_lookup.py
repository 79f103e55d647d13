"""Tasks that look up in databases: against plain Python."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.model.work import BatchTarget
from headgate.tasks.lookup import QueryTable, query_table


def lists(columns: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in columns]


def test_query_table_finds_what_sqlite_finds(tmp_path: Path) -> None:
    path = tmp_path / "trips.db"
    connection = sqlite3.connect(path)
    connection.execute("create table trips (id integer, fare real)")
    connection.executemany("insert into trips values (?, ?)", [(n, n / 4) for n in range(100)])
    connection.commit()
    query = "select id, fare from trips where id >= :first and id < :last order by id"
    options = QueryTable(url=f"sqlite:///{path}", query=query, columns="id bigint, fare double", keep=("first",))
    ranges = [(3, 6), (200, 300), (97, 300)]
    batch = pa.record_batch({"first": [a for a, _ in ranges], "last": [b for _, b in ranges]})
    made = query_table(options)(batch)
    wanted = [
        (place, first, *row)
        for place, (first, last) in enumerate(ranges)
        for row in connection.execute(query.replace(":first", "?").replace(":last", "?"), (first, last))
    ]
    connection.close()
    assert made.origin is not None
    assert list(zip(made.origin.tolist(), *lists(made.columns), strict=True)) == wanted
    assert len(wanted) == 6
    wrong = query_table(options.model_copy(update={"query": "select id, fare from trips where id = :nothing"}))(batch)
    assert [reason for _, reason in wrong.failed] == ["the query asks for :nothing, which is no column of the row"] * 3
    broken = query_table(options.model_copy(update={"query": "select id from nowhere"}))(batch)
    assert "no such table" in broken.failed[0][1]


def test_answers_are_kept_as_long_as_they_may_be_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rates.db"
    connection = sqlite3.connect(path)
    connection.execute("create table rates (k text, rate real)")
    connection.execute("insert into rates values ('a', 1.0)")
    connection.commit()
    query = "select rate from rates where k = :k"
    options = QueryTable(url=f"sqlite:///{path}", query=query, columns="rate double", cache_s=30.0)
    now = [1000.0]
    monkeypatch.setattr("headgate.tasks.lookup.time.monotonic", lambda: now[0])

    def rates(options: QueryTable, *keys: str) -> list[float]:
        return lists(query_table(options)(pa.record_batch({"k": keys})).columns)[0]

    assert rates(options, "a", "b") == [1.0]
    connection.execute("update rates set rate = 2.0")
    connection.execute("insert into rates values ('b', 5.0)")
    connection.commit()
    now[0] += 29
    assert rates(options, "a", "b") == [1.0], "an answer, and that there is none, 29 s old"
    assert rates(options.model_copy(update={"cache_s": 0.0}), "a", "b") == [2.0, 5.0]
    now[0] += 2
    assert rates(options, "a", "b") == [2.0, 5.0]
    connection.close()


def test_query_table_makes_the_declared_types_of_what_a_database_has() -> None:
    query = "select 3 as a, '1.5' as b, '2015-02-01 00:00:00' as c, '2015-02-01T02:00:00+02:00' d, 1422748800000 e"
    options = QueryTable(
        url="sqlite://", query=query, columns="a double, b double, c timestamp, d timestamp, e timestamp"
    )
    moment = pa.timestamp("us", tz="UTC")
    schema = pa.schema({"a": pa.float64(), "b": pa.float64(), "c": moment, "d": moment, "e": moment})
    made = query_table(options, BatchTarget(schema, False))(pa.record_batch({"n": [1]}))
    when = datetime(2015, 2, 1, tzinfo=UTC)
    assert lists(made.columns) == [[3.0], [1.5], [when], [when], [when]]
