"""Iceberg tables after deliveries that come again; the files that a table names are read by DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings

from headgate.errors import InputError
from headgate.model.work import SinkContext, SinkWork
from headgate.tasks.lakehouse import iceberg
from headgate.tasks.lakehouse.iceberg import WRITE_ICEBERG, WriteIceberg
from tests.tasks.test_delta_sink import STEPS, Delivery, Row


def options_in(place: Path, **more: Any) -> WriteIceberg:
    place.mkdir(exist_ok=True)
    return WriteIceberg(
        catalog=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}/warehouse", table="city.rows", **more
    )


def write(options: WriteIceberg, delivery: Delivery) -> None:
    assert isinstance(WRITE_ICEBERG.work, SinkWork)
    WRITE_ICEBERG.work.write(options, delivery, SinkContext(None, None, "f.t", "0af3"))


def content(options: WriteIceberg, columns: str = "k, n, v") -> list[tuple[Any, ...]]:
    catalog = iceberg.catalogue(options.catalog, options.warehouse, options.catalog_name)
    files = catalog.load_table(options.table).inspect.data_files()["file_path"].to_pylist()
    if not files:
        return []
    with duckdb.connect() as connection:
        paths = [path.removeprefix("file://") for path in files]
        return connection.execute(f"select {columns} from read_parquet($1)", [paths]).fetchall()


@settings(max_examples=8)
@given(STEPS)
def test_the_last_row_of_each_key(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[Row], int]]) -> None:
    options = options_in(tmp_path_factory.mktemp("iceberg"), key=("k", "n"), delete="gone")
    wanted: dict[tuple[str, int], float | None] = {}
    for epoch, (rows, times) in enumerate(steps):
        for k, n, v, gone in rows:
            wanted.pop((k, n), None)
            if not gone:
                wanted[k, n] = v
        for _ in range(times):
            write(options, Delivery(epoch, rows))
    assert sorted(content(options), key=repr) == sorted(((k, n, v) for (k, n), v in wanted.items()), key=repr)


def test_rows_are_added_once_whatever_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that is refused at the last moment leaves nothing; the delivery comes again."""
    options = options_in(tmp_path)
    write(options, Delivery(0, [("a", 0, None, None)]))
    from pyiceberg.catalog.sql import SqlCatalog

    commit = SqlCatalog.commit_table
    monkeypatch.setattr(SqlCatalog, "commit_table", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(options, Delivery(1, [("a", 1, None, None)]))
    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    for _ in range(2):
        write(options, Delivery(1, [("a", 1, None, None)]))
    write(options, Delivery(1, [("a", 2, None, None)], "run-2"))
    write(options, Delivery(0, [("a", 0, None, None)]))
    assert sorted(content(options, "n")) == [(0,), (1,), (2,)]


def test_a_catalogue_that_cannot_be_used_is_refused() -> None:
    assert isinstance(WRITE_ICEBERG.work, SinkWork)
    with pytest.raises(InputError, match="cannot be used"):
        WRITE_ICEBERG.work.check(WriteIceberg(catalog="nosuch://x", table="a.b"), None, [["k"]])
