"""Running a program of ``headgate bench apps`` and reading what it and all its processes have used."""

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
from headgate_benchmarks.measured import CpuClock

__all__ = ["HERE", "Ran", "ran"]

HERE = Path(__file__).parent / "peers"
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run took, from its start until all rows were out."""

    cpu_s: float
    wall_s: float
    versions: Mapping[str, str]


def ran(python: Path, program: Sequence[str | Path], log: Path) -> Ran:
    """Run a program until it says that it is done; it ends when it has been asked what it used."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYSPARK_PYTHON": str(python)}
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
            told = _last_words(child)
            wall_s, cpu_s = time.monotonic() - began, clock.seconds()
        finally:
            ends.cancel()
            child.communicate()  # it ends when there is nobody left to tell it anything
    if told is None:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if "Error" in line or "Exception" in line] or lines or ["it said nothing"]
        said = f"{Path(program[0]).name} ended before it was done: {telling[-1][:300]}"
        raise HeadgateError("PEER_FAILED", said)
    return Ran(cpu_s, wall_s, told["versions"])


def _last_words(child: subprocess.Popen[str]) -> dict[str, Any] | None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith('{"done"'):
            found: dict[str, Any] = json.loads(line)
            return found
    return None
