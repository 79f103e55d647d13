"""An engine that is reached from outside: submitted to, asked, billed, and killed in the middle of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.api.client import EngineClient
from headgate.documents import read
from headgate.documents.document import to_document
from headgate.errors import InputError
from headgate.service.bill import bill
from headgate.store.durable_steps import VARIABLE
from tests.processes import PATIENCE_S, end, start
from tests.runtime.small import COLUMNS, json_rows, multiset, numbered, put, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.own_spark]


def write_flow(folder: Path, name: str, where: str = "id >= 0") -> Path:
    tasks = [
        {"id": "read", "type": "read_files", "config": {"path": str(folder / "in"), "columns": COLUMNS}},
        {"id": "some", "type": "filter", "config": {"where": where}, "inputs": ["read"]},
        {"id": "count", "type": "count", "config": {"key": ["k"]}, "inputs": ["some"]},
        {"id": "write", "type": "write_files", "config": {"path": str(folder / f"out_{name}")}, "inputs": ["count"]},
    ]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "owner": f"{name}_owner", "tasks": tasks}), encoding="utf-8")
    return path


class Server:
    """An engine in a process of its own, and a folder for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "state"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, aim: str | None = None, *arguments: str) -> None:
        """Start it, and wait until it answers."""
        self.end()
        environment = {}
        if aim is not None:
            (self.folder / "aim").write_text(aim, encoding="utf-8")
            environment[VARIABLE] = str(self.folder / "aim")
        command = [sys.executable, "-m", "tests.runtime.killed_server", "run", "--serve", "--trigger", "100ms"]
        command += ["--master", "local[2]", "--state", str(self.state), "--price-per-hour", "3600", *arguments]
        self.process = start(command, self.folder, **environment)
        wait_for(self._answers, "an engine that answers", PATIENCE_S)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-3000:]
        with suppress(InputError):
            return self.names() is not None
        return False

    def end(self) -> None:
        if self.process is not None:
            end(self.process)

    def submit(self, *files: Path, request_id: str | None = None) -> dict[str, Any]:
        documents = [to_document(read(file).dataflow) for file in files]
        with EngineClient(self.state) as client:
            return client.submit(documents, request_id=request_id)

    def names(self) -> list[str]:
        with EngineClient(self.state) as client:
            return [flow["name"] for flow in client.dataflows()["dataflows"]]


@contextmanager
def server_in(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    try:
        yield server
    finally:
        server.end()


def headgate(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate", *map(str, arguments), "--state", str(folder / "state")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def ids(folder: Path, name: str) -> set[int]:
    return {row["id"] for row in json_rows(folder / f"out_{name}")}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_in_the_middle_of_submissions(tmp_path: Path) -> None:
    """Before the snapshot is durable the submission has not been; after it, it has. Others lose and repeat nothing."""
    put(tmp_path / "in", "0", numbered(0, 6))
    first, second, third = (write_flow(tmp_path, name, f"id >= {n}") for n, name in enumerate(("one", "two", "three")))
    with server_in(tmp_path) as server:
        server.start("before snapshot 2")
        server.submit(first)
        wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 6, "the first rows", PATIENCE_S)
        with pytest.raises(InputError) as gone:
            server.submit(second)
        assert gone.value.condition in ("ENGINE_GONE", "ENGINE_DEAD")
        dead = headgate(tmp_path, "list")
        assert (dead.returncode, "is dead" in dead.stderr) == (2, True)

        server.start("after snapshot 1")
        assert server.names() == ["one"], "what was not decided has left no trace"
        put(tmp_path / "in", "1", numbered(6, 6))
        with pytest.raises(InputError):
            server.submit(second, third, request_id="again")

        server.start()
        assert server.names() == ["one", "two", "three"], "what was decided is there"
        again = server.submit(second, third, request_id="again")
        assert [one["dataflow"] for one in again["submitted"]] == ["two", "three"], "answered as it would have been"
        assert again["continued"] == []
        put(tmp_path / "in", "2", numbered(12, 6))
        wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 18, "all rows of the first", PATIENCE_S)
        # An epoch that had begun before the change may have been run again after it: they may have its rows too.
        since = set(range(12, 18))
        wait_for(lambda: ids(tmp_path, "two") & ids(tmp_path, "three") >= since, "rows that came since", PATIENCE_S)
        counts = {row["id"]: row["count"] for row in json_rows(tmp_path / "out_one")}
        assert counts == {n: n // 3 + 1 for n in range(18)}, "its state too has gone on"

        bad = tmp_path / "bad.json"
        bad.write_text(first.read_text().replace("id >= 0", "idd >= 0"))
        for arguments, told in [
            (("submit", bad), "did you mean 'id'?"),
            (("submit", write_flow(tmp_path, "two", "id >= 9")), "--replace"),
            (("withdraw", "thre"), "did you mean 'three'?"),
            (("status", "four"), "no dataflow 'four'"),
        ]:
            done = headgate(tmp_path, *arguments)
            assert done.returncode == 2, arguments
            assert told in done.stderr, done.stderr
        assert server.names() == ["one", "two", "three"]

        done = headgate(tmp_path, "withdraw", "three")
        assert done.returncode == 0, done.stderr
        assert "three: 3 tasks removed, 2 kept for others" in done.stdout, done.stdout
        shown = headgate(tmp_path, "status", "two")
        assert "one" in shown.stdout, shown.stdout + shown.stderr
        assert "three" not in shown.stdout
        time.sleep(1.1)  # the record of usage is in whole seconds
        told_bill = bill(tmp_path / "state")
        assert {line.dataflow for line in told_bill.lines} == {"one", "two", "three"}
        assert sum((line.cost for line in told_bill.lines), told_bill.idle) == told_bill.total > Decimal(1)
    assert multiset(json_rows(tmp_path / "out_one"))


AIMS = (
    "before hosts 2",
    "half hosts 2",
    "after hosts 2",
    "before snapshot 2",
    "half snapshot 2",
    "after snapshot 2",
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("strategy", ["hot", "incremental", "replace", "none"])
@pytest.mark.parametrize("aim", AIMS)
def test_killed_wherever_a_submission_may_be(tmp_path: Path, aim: str, strategy: str) -> None:
    put(tmp_path / "in", "0", numbered(0, 6))
    first, second = write_flow(tmp_path, "one"), write_flow(tmp_path, "two", "id >= 3")
    with server_in(tmp_path) as server:
        server.start(aim, "--strategy", strategy)
        server.submit(first)
        wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 6, "the first rows", PATIENCE_S)
        submitted = True  # under some strategies there is no such moment
        with suppress(InputError):
            server.submit(second)
            aim = ""
        if aim:
            submitted = aim == "after snapshot 2"
        server.start()
        assert server.names() == ["one", "two"] if submitted else ["one"]
        if not submitted:
            server.submit(second)
        put(tmp_path / "in", "1", numbered(6, 6))
        wait_for(lambda: len(json_rows(tmp_path / "out_one")) >= 12, "all rows of the first", PATIENCE_S)
        wait_for(lambda: len(json_rows(tmp_path / "out_two")) >= 6, "rows of the second", PATIENCE_S)
        counts = sorted((row["id"], row["count"]) for row in json_rows(tmp_path / "out_one"))
        assert counts == [(n, n // 3 + 1) for n in range(12)]
        seen = [row["id"] for row in json_rows(tmp_path / "out_two")]
        assert len(seen) == len(set(seen))
        assert set(seen) >= set(range(6, 12))
