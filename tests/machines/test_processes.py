"""Processes that outlive the one that started them: told apart by more than their number, ended whole."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.machines.processes import Process, end, is_stopped, marked, start

FAMILY = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); time.sleep(60)"])
time.sleep(60)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "machine")
    end(str(tmp_path / "machine"), patience_s=0)


def begin(source: str, mark: str, log: Path) -> Process:
    return start([sys.executable, "-c", source], mark, log, os.environ)


def wait_until(count: int, mark: str) -> None:
    until = time.monotonic() + 20
    while len(marked(mark)) != count:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_process_and_all_that_it_starts_carry_its_mark_and_are_ended_together(mark: str, tmp_path: Path) -> None:
    process = begin(FAMILY, mark, tmp_path / "log")
    wait_until(2, mark)
    assert process.is_alive()
    assert process.has_children()
    assert os.getsid(process.pid) == process.pid
    assert end(mark) == 2
    assert marked(mark) == []
    assert not process.is_alive()


def test_one_that_heeds_no_signal_is_ended_by_force(mark: str, tmp_path: Path) -> None:
    process = begin(STUBBORN, mark, tmp_path / "log")
    while "ready" not in (tmp_path / "log").read_text():
        time.sleep(0.02)
    end(mark, patience_s=0.3)
    assert not process.is_alive()


def test_one_that_is_stopped_is_ended_without_force(mark: str, tmp_path: Path) -> None:
    process = begin(FAMILY, mark, tmp_path / "log")
    wait_until(2, mark)
    os.kill(process.pid, signal.SIGSTOP)
    while not is_stopped(process.pid):
        time.sleep(0.01)
    began = time.monotonic()
    end(mark, patience_s=20)
    assert time.monotonic() - began < 10


def test_a_number_that_belongs_to_somebody_else_is_left_alone() -> None:
    """The number is in use, but by a process that has started at another time, or since another boot."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        fields = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        true = Process(other.pid, int(fields[19]), boot)
        assert true.is_alive()
        for recycled in (dataclasses.replace(true, started=true.started - 1), dataclasses.replace(true, boot="other")):
            assert not recycled.is_alive()
            assert not recycled.send(signal.SIGKILL)
        assert other.poll() is None
        assert true.send(signal.SIGKILL)
        assert other.wait(10) == -signal.SIGKILL
    finally:
        other.kill()
        other.wait()


def test_one_that_has_ended_is_not_alive_though_nobody_has_waited_for_it(mark: str, tmp_path: Path) -> None:
    process = begin("pass", mark, tmp_path / "log")
    until = time.monotonic() + 20
    while process.is_alive():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert end(mark) == 0
