"""``headgate run`` as a user starts it, on a terminal of its own: nothing but its table and its sentences is on it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.runtime.small import COLUMNS, json_rows, numbered, put, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.own_spark]

PATIENCE_S = 150.0
HEADGATE = [sys.executable, "-m", "headgate", "run"]


class Terminal:
    """A command on a terminal, the leader of its session, and what is shown."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.ours, theirs = pty.openpty()
        self._seen: list[bytes] = []
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=os.environ | {"COLUMNS": "120", "LINES": "40", "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        with suppress(OSError):  # the other end is closed
            while data := os.read(self.ours, 65536):
                self._seen.append(data)

    def interrupt(self) -> int:
        """Type Ctrl-C, which goes to all processes of the terminal, and wait for the end."""
        os.write(self.ours, b"\x03")
        status = self.process.wait(60)
        self._watcher.join(10)
        return status

    def shown(self) -> str:
        return b"".join(self._seen).decode()

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._watcher.join(10)
        os.close(self.ours)


def _take_terminal() -> None:
    """Make standard input the terminal that this process and its children get Ctrl-C from."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    tasks = [
        {"id": "read", "type": "read_files", "config": {"path": str(tmp_path / "in"), "columns": COLUMNS}},
        {"id": "n", "type": "count", "config": {"key": ["k"]}, "inputs": ["read"]},
        {"id": "write", "type": "write_files", "config": {"path": str(tmp_path / "out")}, "inputs": ["n"]},
    ]
    (tmp_path / "all.json").write_text(json.dumps({"name": "all", "tasks": tasks}), encoding="utf-8")
    put(tmp_path / "in", "0", numbered(0, 4))
    made = Terminal([*HEADGATE, "all.json", "--master", "local[2]", "--trigger", "100ms"], tmp_path)
    yield made
    made.close()


@pytest.mark.timeout(600)
def test_spark_is_killed_and_it_goes_on_until_it_is_interrupted(terminal: Terminal, tmp_path: Path) -> None:
    def has_rows(count: int) -> None:
        wait_for(lambda: len(json_rows(tmp_path / "out")) >= count, f"{count} rows", PATIENCE_S)

    has_rows(4)
    second = subprocess.run([*HEADGATE, "all.json"], cwd=tmp_path, capture_output=True, text=True)
    assert second.returncode == 2
    assert f"is in use by process {terminal.process.pid} on" in second.stderr

    below = psutil.Process(terminal.process.pid).children(recursive=True)
    next(process for process in below if process.name() == "java").kill()
    put(tmp_path / "in", "1", numbered(4, 4))
    has_rows(8)
    assert terminal.interrupt() == 0

    shown = terminal.shown()
    for words in (
        "starting Spark",
        "dataflow",
        "rows out",
        "batch (s)",
        "keyed",
        "Spark's process was killed by signal 9",
    ):
        assert words in shown, words
    for noise in ("WARN", "log4j", "incubator", "Streaming TransformWithState", "Traceback", "ERROR"):
        assert noise not in shown, noise
    assert "log4j" in (tmp_path / ".headgate" / "spark.log").read_text()
    counts = {row["id"]: row["count"] for row in json_rows(tmp_path / "out")}
    assert counts == {n: n // 3 + 1 for n in range(8)}, "nothing lost, nothing twice, state kept"
