"""Delta and Iceberg tables as sources: each row once, whatever is killed, put together or expired."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import deltalake
import duckdb
import pyarrow as pa
import pytest

from headgate.runtime.table_source.delta import DeltaCommits
from headgate.runtime.table_source.driver import GrowingTable
from headgate.runtime.table_source.iceberg import IcebergCommits
from headgate.runtime.table_source.versions import VersionedTable
from headgate.tasks.lakehouse.read import ReadDelta, ReadIceberg
from headgate.tasks.row_errors import SourceAwayError, UnreadableSourceError
from tests.runtime.table_source.reading import Reading

COLUMNS = "id bigint, day string, v double"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("v", pa.float64())])
Rows = list[dict[str, Any]]


def numbered(first: int, count: int) -> Rows:
    return [{"id": n, "day": f"day {n % 3}/7", "v": n / 2} for n in range(first, first + count)]


class Delta:
    """A table that Delta's own library writes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "t"

    def add(self, rows: Rows) -> None:
        table = pa.Table.from_pylist(rows, SCHEMA)
        deltalake.write_deltalake(str(self.path), table, mode="append", partition_by=["day"])

    def put_together(self) -> None:
        deltalake.DeltaTable(str(self.path)).optimize.compact()

    def remove(self, where: str) -> None:
        deltalake.DeltaTable(str(self.path)).delete(where)

    def versions(self) -> list[int]:
        return sorted(each["version"] for each in deltalake.DeltaTable(str(self.path)).history())

    def opened(self, **options: Any) -> GrowingTable:
        made = ReadDelta(path=str(self.path), columns=COLUMNS, **options)
        return VersionedTable(made, DeltaCommits(made))


class Iceberg:
    """A table that Iceberg's own library writes."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog import load_catalog

        self.place: dict[str, Any] = {
            "catalog": f"sqlite:///{folder}/catalog.db",
            "warehouse": str(folder / "warehouse"),
        }
        self.catalog = load_catalog("w", type="sql", uri=self.place["catalog"], warehouse=self.place["warehouse"])
        self.catalog.create_namespace_if_not_exists("city")
        self.catalog.create_table_if_not_exists("city.t", SCHEMA)

    def add(self, rows: Rows) -> None:
        self.catalog.load_table("city.t").append(pa.Table.from_pylist(rows, SCHEMA))

    def put_together(self) -> None:
        """Nothing: its library cannot."""

    def remove(self, where: str) -> None:
        self.catalog.load_table("city.t").delete(where)

    def versions(self) -> list[int]:
        return [int(each.snapshot_id) for each in self.catalog.load_table("city.t").snapshots()]

    def opened(self, **options: Any) -> GrowingTable:
        made = ReadIceberg(**self.place, catalog_name="w", table="city.t", columns=COLUMNS, **options)
        return VersionedTable(made, IcebergCommits(made))


Table = Delta | Iceberg
BOTH = pytest.mark.parametrize("make", [Delta, Iceberg], ids=["delta", "iceberg"])
Make = Callable[[Path], Table]


def by_id(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: row["id"])


def reading(table: Table, folder: Path, limit: int | None = None, **options: Any) -> Reading:
    return Reading(lambda: table.opened(**options), SCHEMA, folder / f"read-{random.random()}", limit)


@BOTH
@pytest.mark.parametrize("seed", range(2))
def test_every_row_once_while_the_table_grows(make: Make, tmp_path: Path, seed: int) -> None:
    dice, table, made = random.Random(seed), make(tmp_path), 0
    table.add(numbered(0, 5))
    made += 5
    read = reading(table, tmp_path, dice.choice([None, 1, 7]))
    for _ in range(12):
        what = dice.random()
        if what < 0.5:
            count = dice.randint(1, 9)
            table.add(numbered(made, count))
            made += count
        elif what < 0.6:
            table.put_together()
        elif what < 0.7:
            read.restart()
        else:
            read.one(dice)
    assert by_id(read.all(dice)) == numbered(0, made)


@BOTH
def test_versions_come_in_order_and_a_limit_leaves_files_waiting(make: Make, tmp_path: Path) -> None:
    table = make(tmp_path)
    for first in range(0, 40, 10):
        table.add(numbered(first, 10))
    read = reading(table, tmp_path, 12, start=table.versions()[0])
    read.all()
    assert by_id(read.rows) == numbered(10, 30)
    assert [row["id"] // 10 for row in read.rows] == [1] * 10 + [2] * 10 + [3] * 10
    assert max(read.batches) <= 12
    look = table.opened().look(table.opened(start="earliest").first(), 12)
    assert look.rows + look.waiting == 40


@BOTH
def test_where_a_source_begins(make: Make, tmp_path: Path) -> None:
    table = make(tmp_path)
    table.add(numbered(0, 3))
    time.sleep(0.01)  # times of versions have milliseconds
    moment = time.time()
    time.sleep(0.01)
    table.add(numbered(3, 3))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
    reads = {start: reading(table, tmp_path, start=start) for start in ("earliest", "now", stamp, table.versions()[0])}
    for read in reads.values():
        read.all()
    table.add(numbered(6, 3))
    got = [by_id(read.all()) for read in reads.values()]
    assert got == [numbered(0, 9), numbered(6, 3), numbered(3, 6), numbered(3, 6)]


@BOTH
def test_rows_that_are_changed_fail_the_source_or_are_left_out(make: Make, tmp_path: Path) -> None:
    table = make(tmp_path)
    table.add(numbered(0, 6))
    read, lenient = reading(table, tmp_path), reading(table, tmp_path, changes="skip")
    assert len(read.all()) == len(lenient.all()) == 6
    table.remove("id = 4")
    table.add(numbered(6, 2))
    with pytest.raises(UnreadableSourceError, match=r"changes or removes rows of the table .*; give the task changes"):
        read.one()
    assert by_id(lenient.all()) == numbered(0, 8)
    assert [row["id"] for row in by_id(reading(table, tmp_path).all())] == [0, 1, 2, 3, 5, 6, 7]


def test_an_iceberg_table_that_has_nothing_yet(tmp_path: Path) -> None:
    table = Iceberg(tmp_path)
    read = reading(table, tmp_path)
    assert read.all() == []
    table.add(numbered(0, 3))
    assert by_id(read.all()) == numbered(0, 3)


def test_an_iceberg_snapshot_that_has_expired_is_said(tmp_path: Path) -> None:
    table = Iceberg(tmp_path)
    table.add(numbered(0, 3))
    read = reading(table, tmp_path)
    read.all()
    for first in (3, 6):
        table.add(numbered(first, 3))
    known = table.versions()
    table.catalog.load_table("city.t").maintenance.expire_snapshots().by_ids(known[:2]).commit()
    with pytest.raises(UnreadableSourceError, match="has expired"):
        read.one()


def test_a_delta_log_that_was_cleaned_is_said(tmp_path: Path) -> None:
    table = Delta(tmp_path)
    table.add(numbered(0, 3))
    read = reading(table, tmp_path)
    read.all()
    for first in (3, 6):
        table.add(numbered(first, 3))
    deltalake.DeltaTable(str(table.path)).create_checkpoint()
    for version in (0, 1, 2):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    read.restart()
    with pytest.raises(UnreadableSourceError, match="has no version 1 any more, and is at 2; keep it longer"):
        read.one()


def test_a_table_that_is_away_is_waited_for(tmp_path: Path) -> None:
    table = Delta(tmp_path)
    table.add(numbered(0, 3))
    opened = table.opened()
    assert isinstance(opened, VersionedTable)
    away = table.path.rename(tmp_path / "away")
    with pytest.raises(SourceAwayError, match="cannot be read"):
        opened.first()
    away.rename(table.path)
    assert opened.look(opened.first(), 10).rows == 3


def test_a_delta_table_that_others_write_by_the_protocol(tmp_path: Path) -> None:
    """Parquet by DuckDB, the log by hand: no library that the source uses."""
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    fields: list[dict[str, Any]] = [
        {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "long"), ("v", "double"))
    ]
    fields.append({"name": "day", "type": "string", "nullable": True, "metadata": {}})
    about: dict[str, Any] = {"id": "0-0", "format": {"provider": "parquet", "options": {}}, "partitionColumns": ["day"]}
    about |= {"schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {}, "createdTime": 0}
    head = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": about}]
    wanted: Rows = []
    for version in range(3):
        actions = list(head) if version == 0 else []
        for day in ("a b", None):
            name = f"day={day}/v{version}.parquet"
            (tmp_path / "t" / name).parent.mkdir(exist_ok=True)
            query = f"select {version}::bigint as id, x / 4.0 as v, x as other from range(3) r(x)"
            with duckdb.connect() as connection:
                connection.execute(f"copy ({query}) to '{tmp_path / 't' / name}' (format parquet)")
            size = (tmp_path / "t" / name).stat().st_size
            values: dict[str, Any] = {
                "partitionValues": {"day": day or ""},
                "size": size,
                "modificationTime": 0,
                "dataChange": True,
            }
            actions.append({"add": {"path": quote(name), **values}})
            wanted += [{"id": version, "day": day, "v": x / 4} for x in range(3)]
        (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    options = ReadDelta(path=str(tmp_path / "t"), columns=COLUMNS, start=-1)
    read = Reading(lambda: VersionedTable(options, DeltaCommits(options)), SCHEMA, tmp_path / "read")
    assert sorted(read.all(), key=repr) == sorted(wanted, key=repr)
