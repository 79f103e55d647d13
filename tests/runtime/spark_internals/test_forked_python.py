"""What Spark takes for Python: readers are forks of a process with its imports done, and everything else is Python."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from headgate.runtime.spark_internals.forked_python import forked_python
from tests.runtime.small import wait_for

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"


@contextmanager
def reader(program: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A reader that has connected to where Spark would listen: the process that was started, and the reader's id."""
    address = folder / "spark"
    address.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHON_WORKER_FACTORY_SOCK_PATH": str(address), "CITY": "Bern"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        listener.settimeout(60)
        started = subprocess.Popen(
            [program, "-m", RUNNER], env=environment, cwd=folder, stderr=subprocess.PIPE, text=True
        )
        connection, _ = listener.accept()
        with connection:
            yield started, int.from_bytes(connection.recv(4))
    started.wait(60)
    assert started.stderr is not None
    started.stderr.close()


def test_a_reader_is_a_fork_that_has_the_environment_and_the_folder_of_who_asked(tmp_path: Path) -> None:
    with reader(forked_python(), tmp_path) as (started, pid):
        child = psutil.Process(pid)
        parent = child.parent()
        assert parent is not None
        assert parent.cmdline()[1:3] == ["-m", "headgate.runtime.spark_internals.fork_server"]
        assert child.cwd() == str(tmp_path)
        assert child.cpu_times().user < 0.2, "it has imported nothing"
        assert started.poll() is None
    # Spark has closed the connection.
    wait_for(lambda: not psutil.pid_exists(pid), "the end of the reader")
    assert started.wait(60) == 0


def test_a_reader_ends_when_what_was_started_is_ended(tmp_path: Path) -> None:
    with reader(forked_python(), tmp_path) as (started, pid):
        started.send_signal(signal.SIGTERM)
        wait_for(lambda: not psutil.pid_exists(pid), "the end of the reader")


def test_everything_else_is_python() -> None:
    ran = subprocess.run(
        [forked_python(), "-m", "json.tool", "--compact"], input='{"a": [1, 2]}', capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, '{"a":[1,2]}\n')
    ran = subprocess.run(
        [forked_python(), "-c", "import sys; print(sys.prefix); sys.exit(3)"], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout.strip()) == (3, sys.prefix)


@pytest.mark.parametrize("end", ["killed", "left"])
def test_the_server_ends_with_its_engine_and_readers_start_without_it(tmp_path: Path, end: str) -> None:
    module = forked_python.__module__
    text = f"import {module}\nprint({module}.forked_python(), flush=True)\ninput()\n"
    engine = subprocess.Popen(
        [sys.executable, "-c", text],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdout is not None
    program = Path(engine.stdout.readline().strip())
    (server,) = psutil.Process(engine.pid).children()
    kept = tmp_path / "kept"
    kept.write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
    kept.chmod(0o755)
    if end == "killed":
        engine.kill()
    engine.communicate("\n")
    wait_for(lambda: not server.is_running() and not program.parent.exists(), "the end of the server")
    with reader(str(kept), tmp_path) as (started, pid):
        assert started.pid == pid, "it is Python itself"
