"""From objects to objects, and Delta tables between, in a local S3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.engine.engine import Engine
from tests.runtime.small import COLUMNS, Rows, files, flow, memory, multiset, numbered, put, wait_for
from tests.services import the_object_store
from tests.tasks.test_object_sink import objects

pytestmark = pytest.mark.spark


def put_object(url: str, name: str, rows: Rows) -> None:
    bucket, _, folder = url.removeprefix("s3://").partition("/")
    text = "".join(json.dumps(row) + "\n" for row in rows)
    the_object_store().client().put_object(Bucket=bucket, Key=f"{folder}/{name}.json", Body=text.encode())


def rows_in(url: str) -> Rows:
    return [json.loads(line) for text in objects(url).values() for line in text.splitlines()]


def read(url: str) -> dict[str, Any]:
    return {"type": "read_files", "config": {"path": f"{url}/*.json", "columns": COLUMNS}}


def test_from_objects_to_objects_and_a_table_through_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    bucket = the_object_store().bucket()
    source, out, table = f"{bucket}/in", f"{bucket}/out", f"{bucket}/table"
    put_object(source, "0", numbered(0, 10))
    tasks = [
        {"id": "read", **read(source)},
        {"id": "out", "type": "write_files", "config": {"path": out}, "inputs": ["read"]},
        {"id": "table", "type": "write_delta", "config": {"path": table}, "inputs": ["read"]},
    ]
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        engine.submit(flow("copy", *tasks))
        engine.wait_until_idle()
        put_object(source, "1", numbered(10, 10))
        wait_for(lambda: len(rows_in(out)) == 20, "the second file")
        engine.submit(flow("again", {"type": "read_delta", "config": {"path": table, "columns": COLUMNS}}, memory("m")))
        wait_for(lambda: len(engine.memory.rows("m")) == 20, "the table is read")
    put_object(source, "2", numbered(20, 10))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1) as engine:
        wait_for(lambda: len(rows_in(out)) >= 30, "the file that came meanwhile")
        wait_for(lambda: len(engine.memory.rows("m")) == 10, "it reads on where it was")
        assert multiset(engine.memory.rows("m")) == multiset(numbered(20, 10))
    assert multiset(rows_in(out)) == multiset(numbered(0, 30))


def test_storage_that_is_away_is_waited_for_and_others_go_on(engine: Engine, tmp_path: Path) -> None:
    store = the_object_store()
    bucket = store.bucket()
    put_object(f"{bucket}/in", "0", numbered(0, 10))
    put(tmp_path / "local", "0", numbered(0, 10))
    to_bucket = {"type": "write_files", "config": {"path": f"{bucket}/sent"}}
    engine.submit(
        flow("copy", read(f"{bucket}/in"), memory("copy")),
        flow("sent", files(tmp_path / "local"), to_bucket),
        flow("files", files(tmp_path / "local"), memory("files")),
    )
    wait_for(lambda: len(engine.memory.rows("copy")) == 10, "the first rows")
    put_object(f"{bucket}/in", "1", numbered(10, 10))
    store.stop()
    try:
        put(tmp_path / "local", "1", numbered(10, 10))
        wait_for(lambda: len(engine.memory.rows("files")) == 20, "others go on")
        wait_for(lambda: "its rows are queued and retried" in _reason(engine, "sent"), "the sink says so")
    finally:
        store.start()
    wait_for(lambda: _reason(engine, "sent") == "", "the sink goes on")
    wait_for(lambda: len(engine.memory.rows("copy")) == 20, "the source goes on")
    assert multiset(rows_in(f"{bucket}/sent")) == multiset(numbered(0, 20))
    assert multiset(engine.memory.rows("copy")) == multiset(numbered(0, 20))


def _reason(engine: Engine, name: str) -> str:
    engine.housekeep()
    return next(one.reason for one in engine.status()[0] if one.name == name)
