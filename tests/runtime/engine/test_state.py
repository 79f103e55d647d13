"""One engine at a time per state directory, and a directory that survives the death of the engine that makes it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.errors import InputError
from headgate.runtime.engine.state import VERSION, StateDirectory

HOLD = """
import sys
from pathlib import Path
from headgate.runtime.engine.state import VERSION, StateDirectory
held = StateDirectory(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a state directory."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    with held(tmp_path / "state") as process, pytest.raises(InputError, match=f"in use by process {process.pid} on "):
        StateDirectory(tmp_path / "state")


def test_the_command_refuses_with_status_2(tmp_path: Path) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text("name: f\ntasks:\n- {id: r, type: rate}\n- {id: o, type: write_console, inputs: [r]}\n")
    with held(tmp_path / "state") as process:
        command = [sys.executable, "-m", "headgate", "run", str(flow), "--state", str(tmp_path / "state")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert f"process {process.pid}" in " ".join(done.stderr.split())


def test_a_killed_engine_holds_nothing(tmp_path: Path) -> None:
    with held(tmp_path / "state") as process:
        process.kill()
        process.wait()
        StateDirectory(tmp_path / "state").close()


def test_killed_while_it_made_the_directory(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / ".version.123").touch()
    StateDirectory(tmp_path).close()
    StateDirectory(tmp_path).close()
    assert (tmp_path / "version").read_text() == VERSION
