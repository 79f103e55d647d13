"""Tables of SQLite and of a real PostgreSQL: what is in them after deliveries that come again, in any mixture."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate.machines.processes import end, reap
from headgate.model.work import SinkContext, SinkWork
from headgate.tasks.database.connection import database
from headgate.tasks.database.write import WRITE_TABLE, WriteTable
from tests.services import the_database

Rows = Sequence[tuple[str, int, float | None, bool | None]]


@dataclass(frozen=True)
class Delivery:
    epoch: int
    rows: Rows
    origin: str = "run-1"
    files: tuple[tuple[str, int], ...] = ()

    def table(self) -> pa.Table:
        columns = list(zip(*self.rows, strict=True)) or [(), (), (), ()]
        types = [pa.string(), pa.int64(), pa.float64(), pa.bool_()]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, ["k", "n", "v", "gone"])


def write(options: WriteTable, delivery: Delivery) -> None:
    assert isinstance(WRITE_TABLE.work, SinkWork)
    WRITE_TABLE.work.write(options, delivery, SinkContext(None, None, "f.t", "0af3"))


def content(url: str, text: str) -> list[tuple[Any, ...]]:
    with database(url).connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(text))]


ROW = st.tuples(
    st.sampled_from(["a", "b", 'quo"te', "com,ma\nline", ""]),
    st.integers(0, 3),
    st.none() | st.floats(-1e9, 1e9),
    st.none() | st.booleans(),
)
STEPS = st.lists(st.tuples(st.lists(ROW, max_size=8), st.integers(1, 2)), min_size=1, max_size=5)


def check_keyed(url: str, steps: list[tuple[Rows, int]]) -> None:
    """The table has of each key the last row, unless that removed it; some deliveries come twice."""
    table = f"t{uuid.uuid4().hex[:10]}"
    options = WriteTable(url=url, table=table, key=("k", "n"), delete="gone")
    wanted: dict[tuple[str, int], float | None] = {}
    origin = f"{table}-1"
    for epoch, (rows, times) in enumerate(steps):
        for k, n, v, gone in rows:
            wanted.pop((k, n), None)
            if not gone:
                wanted[k, n] = v
        for _ in range(times):
            write(options, Delivery(epoch, rows, origin))
    assert sorted(content(url, f"select k, n, v from {table}"), key=repr) == sorted(
        ((k, n, v) for (k, n), v in wanted.items()), key=repr
    )
    with database(url).begin() as connection:
        connection.execute(sa.text(f"drop table {table}"))


@settings(max_examples=40)
@given(STEPS)
def test_the_last_row_of_each_key_in_sqlite(steps: list[tuple[Rows, int]]) -> None:
    check_keyed(SQLITE(), steps)


@pytest.mark.spark  # not for Spark: for the server
@settings(max_examples=25)
@given(STEPS)
def test_the_last_row_of_each_key_in_postgresql(steps: list[tuple[Rows, int]]) -> None:
    check_keyed(the_database().url, steps)


_PLACE: list[Path] = []


def SQLITE() -> str:
    return f"sqlite:///{_PLACE[0]}/t.db"


@pytest.fixture(autouse=True, scope="module")
def _place(tmp_path_factory: pytest.TempPathFactory) -> None:
    _PLACE.append(tmp_path_factory.mktemp("tables"))


def postgresql() -> str:
    return the_database().url


@pytest.mark.parametrize("url", [SQLITE, pytest.param(postgresql, marks=pytest.mark.spark)])
def test_rows_are_added_once_and_the_ledger_stays_small(url: Callable[[], str]) -> None:
    table = f"t{uuid.uuid4().hex[:10]}"
    options = WriteTable(url=url(), table=table)
    rows = [("a", 1, 0.5, None), ("a", 1, 0.5, None)]
    for epoch in range(3):
        for _ in range(2):
            write(options, Delivery(epoch, rows, f"{table}-1"))
    write(options, Delivery(2, rows[:1], f"{table}-2"))
    write(options, Delivery(0, rows, f"{table}-1"))
    assert len(content(url(), f"select * from {table}")) == 7
    ledger = content(url(), f"select origin, epoch from headgate_commits where origin like '{table}%' order by origin")
    assert ledger == [(f"{table}-1", 2), (f"{table}-2", 2)]


@pytest.mark.spark
def test_a_database_that_is_away_is_written_to_when_it_is_back() -> None:
    """Killed between two deliveries: the one meanwhile raises, and then all are there, once; psql agrees."""
    server = the_database()
    table = f"t{uuid.uuid4().hex[:10]}"
    options = WriteTable(url=server.url, table=table)
    write(options, Delivery(0, [("a", 1, None, None)], f"{table}-1"))
    end(server.mark, 0.0)
    reap()
    with pytest.raises(sa.exc.OperationalError):
        write(options, Delivery(1, [("a", 2, None, None)], f"{table}-1"))
    server.start()
    for epoch, n in ((1, 2), (1, 2), (2, 3)):
        write(options, Delivery(epoch, [("a", n, None, None)], f"{table}-1"))
    command = ["psql", "-h", "127.0.0.1", "-p", str(server.port), "-U", "headgate", "-Atc", f"select n from {table}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["1", "2", "3"]


def test_delete_needs_a_key() -> None:
    with pytest.raises(ValidationError, match="delete needs key"):
        WriteTable(url="sqlite://", table="t", delete="gone")
    with pytest.raises(ValidationError, match="delete names 'k', which is a column of the key"):
        WriteTable(url="sqlite://", table="t", key=("k",), delete="k")
