"""Delta tables after deliveries that come again, read without Delta's library: the log by hand, the files by DuckDB."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.work import SinkContext, SinkWork
from headgate.tasks.lakehouse.delta import WRITE_DELTA, WriteDelta

Row = tuple[str, int, float | None, bool | None]


@dataclass(frozen=True)
class Delivery:
    epoch: int
    rows: Sequence[Row]
    origin: str = "run-1"
    files: tuple[tuple[str, int], ...] = ()

    def table(self) -> pa.Table:
        columns = list(zip(*self.rows, strict=True)) or [(), (), (), ()]
        types = [pa.string(), pa.int64(), pa.float64(), pa.bool_()]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, ["k", "n", "v", "gone"])


def write(options: WriteDelta, delivery: Delivery) -> None:
    assert isinstance(WRITE_DELTA.work, SinkWork)
    WRITE_DELTA.work.write(options, delivery, SinkContext(None, None, "f.t", "0af3"))


def content(path: Path, columns: str = "k, n, v") -> list[tuple[Any, ...]]:
    """The rows of a table, as its protocol says: the files that the log has added and not removed."""
    files: set[str] = set()
    for commit in sorted((path / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            files |= {str(path / action["add"]["path"])} if "add" in action else set()
            files -= {str(path / action["remove"]["path"])} if "remove" in action else set()
    if not files:
        return []
    with duckdb.connect() as connection:
        return connection.execute(f"select {columns} from read_parquet($1)", [sorted(files)]).fetchall()


ROW = st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.none() | st.floats(-9, 9), st.none() | st.booleans())
STEPS = st.lists(st.tuples(st.lists(ROW, min_size=1, max_size=6), st.integers(1, 2)), min_size=1, max_size=4)


@settings(max_examples=15)
@given(STEPS)
def test_the_last_row_of_each_key(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[Row], int]]) -> None:
    path = tmp_path_factory.mktemp("delta") / "t"
    options = WriteDelta(path=str(path), key=("k", "n"), delete="gone", compact_every=3)
    wanted: dict[tuple[str, int], float | None] = {}
    for epoch, (rows, times) in enumerate(steps):
        for k, n, v, gone in rows:
            wanted.pop((k, n), None)
            if not gone:
                wanted[k, n] = v
        for _ in range(times):
            write(options, Delivery(epoch, rows))
    assert sorted(content(path), key=repr) == sorted(((k, n, v) for (k, n), v in wanted.items()), key=repr)


def test_rows_are_added_once_and_small_files_put_together(tmp_path: Path) -> None:
    options = WriteDelta(path=str(tmp_path / "t"), compact_every=10)
    for epoch in range(10):
        for _ in range(2):
            write(options, Delivery(epoch, [("a", epoch, None, None)]))
    write(options, Delivery(9, [("b", 0, None, None)], "run-2"))
    write(options, Delivery(3, [("a", 3, None, None)]))
    assert sorted(content(tmp_path / "t", "k, n")) == sorted([("b", 0), *(("a", n) for n in range(10))])
    last = (tmp_path / "t" / "_delta_log" / f"{10:020d}.json").read_text()
    assert last.count('"remove"') == 10, "ten files became one"


KILLED = """
import os, signal, sys
import tests.tasks.test_delta_sink as here
from headgate.tasks.lakehouse import delta
path, moment = sys.argv[1:]
library = delta.delta_library()
def killed(*args, **more):
    if moment == "after":
        written(*args, **more)
    os.kill(os.getpid(), signal.SIGKILL)
written, library.write_deltalake = library.write_deltalake, killed
here.write(delta.WriteDelta(path=path), here.Delivery(4, [("a", 1, None, None)]))
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_engine_that_was_killed_around_the_commit(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "t"
    write(WriteDelta(path=str(path)), Delivery(3, [("a", 0, None, None)]))
    command = [sys.executable, "-c", KILLED, str(path), moment]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()
    assert len(content(path)) == (2 if moment == "after" else 1)
    write(WriteDelta(path=str(path)), Delivery(4, [("a", 1, None, None)]))
    assert sorted(content(path, "n")) == [(0,), (1,)]


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert isinstance(WRITE_DELTA.work, SinkWork)
    with pytest.raises(InputError, match="has files and is no Delta table"):
        WRITE_DELTA.work.check(WriteDelta(path=str(tmp_path)), None, [["k"]])
