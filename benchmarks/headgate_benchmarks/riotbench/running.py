"""Runs a program of ``headgate bench apps`` and reads the CPU of all its processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.errors import HeadgateError
from headgate_benchmarks.cpu_clock import CpuClock

__all__ = ["HERE", "Ran", "ran"]

HERE = Path(__file__).parent / "peers"
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Ran:
    """The costs of one run, from its start until all rows were out."""

    cpu_s: float
    wall_s: float
    versions: Mapping[str, str]


def ran(python: Path, program: Sequence[str | Path], log: Path, java_options: str = "") -> Ran:
    """Run a program until it says that it is done; ``java_options`` are those of its JVMs."""
    inherited = os.environ.get("PYTHONPATH", "") if python == Path(sys.executable) else ""
    paths = os.pathsep.join(filter(None, [str(HERE), inherited]))
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": str(python)}
    environment |= {"JAVA_TOOL_OPTIONS": java_options} if java_options else {}
    java = Path(sys.prefix) / "java-home"
    if java.exists():
        environment.setdefault("JAVA_HOME", java.read_text(encoding="utf-8").strip())
    command = [str(python), *map(str, program)]
    began = time.monotonic()
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True
        ) as child,
    ):
        clock = CpuClock(child.pid)
        ends = threading.Timer(PATIENCE_S, child.kill)
        ends.start()
        try:
            message = _last_message(child)
            wall_s, cpu_s = time.monotonic() - began, clock.seconds()
        finally:
            ends.cancel()
            child.communicate()  # closes its standard input
    if message is None:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        errors_in = [line for line in lines if "Error" in line or "Exception" in line] or lines or ["no message"]
        raise HeadgateError("PEER_FAILED", f"{Path(program[0]).name} ended before it was done: {errors_in[-1][:300]}")
    return Ran(cpu_s, wall_s, message["versions"])


def _last_message(child: subprocess.Popen[str]) -> dict[str, Any] | None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith('{"done"'):
            message: dict[str, Any] = json.loads(line)
            return message
    return None
