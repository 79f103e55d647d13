"""``headgate run``: goes on where it was, stops cleanly, tells what goes wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from headgate.cli.background import stop_signals
from headgate.cli.main import app
from headgate.cli.output import seconds
from headgate.errors import InputError
from headgate.runtime.engine import engine as engine_module
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import COLUMNS, json_rows, multiset, numbered, put, wait_for

pytestmark = pytest.mark.spark

Run = Callable[..., Any]
HEADGATE = [sys.executable, "-m", "headgate", "run"]


def write_flow(folder: Path, name: str, where: str = "id >= 0", source: str = "in") -> Path:
    tasks = [
        {"id": "read", "type": "read_files", "config": {"path": str(folder / source), "columns": COLUMNS}},
        {"id": "some", "type": "filter", "config": {"where": where}, "inputs": ["read"]},
        {"id": "write", "type": "write_files", "config": {"path": str(folder / f"out_{name}")}, "inputs": ["some"]},
    ]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "tasks": tasks}), encoding="utf-8")
    return path


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command, in this process and on the Spark that the tests share."""
    monkeypatch.setattr(engine_module, "Engine", partial(Engine, spark=spark))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr(sys, "path", [*sys.path])
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, ["run", "--trigger", "100ms", *map(str, arguments)])


def last_line(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return found


def test_until_idle_then_again_and_again(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 10))
    flow = write_flow(tmp_path, "all")
    first = run(flow, "--until-idle")
    assert first.exit_code == 0, first.output
    assert re.search(r"^all +\S+ +running +10 +3 +0$", first.stdout, re.MULTILINE)
    assert "starting Spark ..." in first.stderr
    assert (tmp_path / ".headgate" / "version").exists()

    put(tmp_path / "in", "1", numbered(10, 5))
    other = write_flow(tmp_path, "few", "id < 3")
    told = last_line(run(flow, other, "--until-idle", "--json").stdout)
    assert [(f["name"], f["state"], f["rows_out"], f["shared"]) for f in told["dataflows"]] == [
        ("all", "running", 15, 1),
        ("few", "running", 3, 1),
    ], "one goes on where it was; the other gets what was read before it came, and then shares the source"
    put(tmp_path / "in", "2", numbered(0, 2))
    told = last_line(run("--until-idle", "--json").stdout)
    assert [(f["name"], f["rows_out"]) for f in told["dataflows"]] == [("all", 17), ("few", 5)], "without files"
    assert multiset(json_rows(tmp_path / "out_all")) == multiset([*numbered(0, 15), *numbered(0, 2)])

    changed = write_flow(tmp_path, "few", "id < 2")
    refused = run(changed, "--until-idle")
    assert isinstance(refused.exception, InputError)
    assert refused.exception.condition == "DATAFLOW_CHANGED"
    assert run(changed, "--replace", "--until-idle").exit_code == 0
    put(tmp_path / "in", "3", numbered(0, 3))
    told = last_line(run(changed, "--until-idle", "--json").stdout)
    assert {f["name"]: f["rows_out"] for f in told["dataflows"]} == {"all": 20, "few": 2}


def test_for_a_time_and_until_somebody_stops_it(run: Run, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 4))
    flow = write_flow(tmp_path, "all")
    began = time.monotonic()
    assert run(flow, "--for", "1500ms").exit_code == 0
    assert time.monotonic() - began >= 1.5

    def stop_soon() -> None:
        wait_for(lambda: len(json_rows(tmp_path / "out_all")) == 8, "the rows of the second file")
        os.kill(os.getpid(), signal.SIGTERM)

    put(tmp_path / "in", "1", numbered(4, 4))
    threading.Thread(target=stop_soon).start()
    assert run().exit_code == 0
    assert multiset(json_rows(tmp_path / "out_all")) == multiset(numbered(0, 8))


def test_a_sink_that_refuses_shows_in_table_and_status(run: Run, tmp_path: Path) -> None:
    for source in ("in", "in2"):
        put(tmp_path / source, "0", numbered(0, 3))
    (tmp_path / "out_bad").touch()
    good, bad = write_flow(tmp_path, "good"), write_flow(tmp_path, "bad", source="in2")
    done = run(good, bad, "--until-idle")
    assert done.exit_code == 1
    assert "bad is degraded: cannot write to sink 'bad.write' (file exists)" in done.stderr
    assert re.search(r"^good +\S+ +running +3 ", done.stdout, re.MULTILINE)
    (tmp_path / "out_bad").unlink()
    assert run("--for", "2s").exit_code == 0
    assert multiset(json_rows(tmp_path / "out_bad")) == multiset(numbered(0, 3))


def test_a_fragment_that_fails_leaves_the_others_running(run: Run, tmp_path: Path) -> None:
    for source in ("in", "in2"):
        put(tmp_path / source, "0", numbered(0, 3))
    good, bad = write_flow(tmp_path, "good"), write_flow(tmp_path, "bad", "1 / (id - 1) > 0", source="in2")
    done = run(good, bad, "--until-idle", "--json")
    assert done.exit_code == 1
    told = last_line(done.stdout)
    assert told["failed"]
    assert [(f["name"], f["state"]) for f in told["dataflows"]] == [("good", "running"), ("bad", "degraded")]
    assert "DIVIDE_BY_ZERO" in told["dataflows"][1]["reason"]
    assert multiset(json_rows(tmp_path / "out_good")) == multiset(numbered(0, 3))


def test_what_cannot_be_run_is_told(run: Run, tmp_path: Path) -> None:
    flow = write_flow(tmp_path, "all")
    twin = tmp_path / "twin.json"
    twin.write_text(flow.read_text())
    for arguments, condition in [
        ((), "NOTHING_TO_RUN"),
        ((flow,), "SOURCE_NOT_THERE"),
        ((flow, twin), "NAME_TAKEN"),
        ((flow, "--trigger", "soon"), "BAD_SPAN"),
        ((flow, "--for", "0s"), "BAD_SPAN"),
        ((flow, "--price-per-hour", "dear"), "BAD_PRICE"),
        ((flow, "--price-per-hour", "-1"), "BAD_PRICE"),
        ((tmp_path / "none.yaml",), "INVALID_DATAFLOW"),
    ]:
        done = run(*arguments)
        assert isinstance(done.exception, InputError), arguments
        assert done.exception.condition == condition
    assert seconds("--for", "1.5 s") == 1.5


def test_the_first_signal_stops_and_the_second_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    before = signal.getsignal(signal.SIGINT)
    with stop_signals() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        assert not left
        signal.raise_signal(signal.SIGINT)
        assert left == [130]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_spark_that_does_not_start_is_told(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, "all")
    done = subprocess.run(
        [*HEADGATE, flow], cwd=tmp_path, env=os.environ | {"JAVA_HOME": "/none"}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Spark did not start" in done.stderr
    assert "/none/bin/java" in done.stderr
    assert len(done.stderr.splitlines()) == 2, "starting Spark, and why it did not"
