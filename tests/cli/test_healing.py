"""A real engine under its supervisor: Spark and the engine are killed, and it goes on by itself."""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headgate.api.client import EngineClient
from headgate.documents import read
from headgate.documents.document import to_document
from headgate.service.restarts import HEALTHY_S
from tests.cli.test_serving import write_flow
from tests.processes import PATIENCE_S, end, start
from tests.runtime.small import json_rows, numbered, put, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.own_spark]

KILLS, ROWS = 20, 300


class Supervised:
    """``headgate run`` in a folder, as a user starts it."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self.folder, self.state, self.log = folder, folder / "state", folder / "log"
        command = [sys.executable, "-m", "headgate", "run", "--trigger", "100ms", "--master", "local[2]"]
        command += ["--state", str(self.state), *map(str, arguments)]
        self.process = start(command, folder)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def client(self) -> EngineClient:
        wait_for(lambda: (self.state / "lock").exists() or self.process.poll() is not None, "a supervisor")
        return EngineClient(self.state, patience_s=PATIENCE_S)

    def engine(self) -> int:
        """The process that serves."""
        with self.client() as client:
            process: int = client.status()["process"]
            return process

    def jvm(self) -> psutil.Process:
        return next(child for child in psutil.Process(self.engine()).children() if child.name() == "java")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[list[Supervised]]:
    """Those that a test has started; they end with it."""
    started: list[Supervised] = []
    yield started
    for one in started:
        end(one.process)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_spark_and_the_engine_are_killed_and_it_goes_on(tmp_path: Path, supervised: list[Supervised]) -> None:
    put(tmp_path / "in", "0", numbered(0, 6))
    run = Supervised(tmp_path, write_flow(tmp_path, "one"))
    supervised.append(run)
    wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 6, "the first rows", PATIENCE_S)
    with run.client() as client:
        client.submit([to_document(read(write_flow(tmp_path, "two", "id >= 3")).dataflow)])
    first = run.engine()
    run.jvm().kill()
    put(tmp_path / "in", "1", numbered(6, 6))
    wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 12, "rows after Spark was killed", PATIENCE_S)
    assert run.engine() != first

    # A withdrawal is under way when the engine dies; the client gets its answer from the next one.
    os.kill(run.engine(), signal.SIGSTOP)
    stopped = run_in_background(run)
    os.kill(first_engine_of(run), signal.SIGKILL)
    assert stopped.communicate(timeout=PATIENCE_S)[0].count("two") >= 1
    assert stopped.returncode == 0
    put(tmp_path / "in", "2", numbered(12, 6))
    wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 18, "all rows", PATIENCE_S)
    with run.client() as client:
        assert [flow["name"] for flow in client.dataflows()["dataflows"]] == ["one"], "withdrawn, and once"
    assert run.stop() == 0
    counts = {row["id"]: row["count"] for row in json_rows(tmp_path / "out_one")}
    assert counts == {n: n // 3 + 1 for n in range(18)}, "nothing lost, nothing twice, state kept"
    assert "Spark's process was killed by signal 9. Starting again in 0.5 s." in run.text()
    assert "Traceback" not in run.text()


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_spark_is_killed_twenty_times_under_load(tmp_path: Path, supervised: list[Supervised]) -> None:
    """Back and delivering in at most 20 s (p95), without a person, and nothing lost or doubled. Prints the figures."""
    stop, rows = threading.Event(), 0
    put(tmp_path / "in", "0", numbered(0, ROWS))

    def feed() -> None:
        nonlocal rows
        for number in itertools.count(1):
            put(tmp_path / "in", str(number), numbered(number * ROWS, ROWS))
            rows = (number + 1) * ROWS
            if stop.wait(0.5):
                return

    flows = [write_flow(tmp_path, name, f"id >= {n} - {n}") for n, name in enumerate(("one", "two", "three"))]
    run = Supervised(tmp_path, *flows)
    supervised.append(run)
    feeder = threading.Thread(target=feed)
    feeder.start()
    took_s = []
    try:
        wait_for(lambda: delivered(tmp_path, "one") > 0, "the first rows", PATIENCE_S)
        for _ in range(KILLS):
            time.sleep(HEALTHY_S + 1.0)
            jvm = run.jvm()
            target = rows + ROWS  # fed after the kill
            jvm.kill()
            killed = time.monotonic()
            wait_for(lambda: min(delivered(tmp_path, n) for n in ("one", "two", "three")) >= target, "rows", PATIENCE_S)  # noqa: B023
            took_s.append(time.monotonic() - killed)
    finally:
        stop.set()
        feeder.join()
    for name in ("one", "two", "three"):
        wait_for(lambda: delivered(tmp_path, name) >= rows, "all rows", PATIENCE_S)  # noqa: B023
    assert run.stop() == 0
    p50, p95 = statistics.median(took_s), sorted(took_s)[-2]
    print(f"{KILLS} kills: p50 {p50:.1f} s, p95 {p95:.1f} s, worst {max(took_s):.1f} s")
    for name in ("one", "two", "three"):
        written = json_rows(tmp_path / f"out_{name}")
        assert sorted(row["id"] for row in written) == list(range(rows)), "every row once"
        for key in {row["k"] for row in written}:
            counts = sorted(row["count"] for row in written if row["k"] == key)
            assert counts == list(range(1, len(counts) + 1)), "each key counted without a gap"
    assert run.text().count("Spark's process was killed by signal 9. Starting again in 0.5 s.") == KILLS
    assert "Traceback" not in run.text()
    assert p95 <= 20.0


_LINES: dict[Path, int] = {}


def delivered(folder: Path, name: str) -> int:
    """How many rows a sink has; a file is read once, since it appears whole."""
    files = list((folder / f"out_{name}").glob("*.json"))
    for file in files:
        if file not in _LINES:
            _LINES[file] = file.read_bytes().count(b"\n")
    return sum(_LINES[file] for file in files)


def run_in_background(run: Supervised) -> subprocess.Popen[str]:
    """``headgate withdraw two``, once its request waits for the engine."""
    command = [sys.executable, "-m", "headgate", "withdraw", "two", "--state", str(run.state)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: bool(psutil.Process(process.pid).net_connections("unix")), "a connection")
    return process


def first_engine_of(run: Supervised) -> int:
    """The engine's process, which may not be able to answer."""
    return next(child.pid for child in psutil.Process(run.process.pid).children() if child.name().startswith("python"))
