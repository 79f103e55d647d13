"""The clock of CPU seconds counts those of processes that nobody waits for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headgate_benchmarks.cpu_clock import CpuClock

FORGETFUL = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, {action})
if os.fork() == 0:
    began = time.process_time()
    while time.process_time() - began < 1.0:
        pass
    os._exit(0)
while True:
    try:
        os.wait()
        break
    except ChildProcessError:
        break
print("gone", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("action", ["signal.SIG_IGN", "signal.SIG_DFL"])
def test_what_nobody_waited_for_counts(action: str) -> None:
    program = [sys.executable, "-c", FORGETFUL.format(action=action)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        clock = CpuClock(child.pid)
        assert child.stdout is not None
        assert child.stdout.readline() == "gone\n"
        spent = clock.seconds()
        assert spent >= (0.3 if "IGN" in action else 0.99)  # at the last look, at most half a second before
        assert clock.seconds() >= spent
        child.communicate()
