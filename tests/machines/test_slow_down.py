"""A slow machine is slower, by as much as was asked for: measured, side by side with one that is not."""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import pytest

from headgate.machines.processes import end, start
from headgate.machines.slow_down import cpu_of

pytestmark = pytest.mark.slow
"""They measure time, and are true only on a machine that has some to spare."""

ROOT = Path(__file__).parents[2]
BURN = """
import sys, time
from headgate.runtime.observing.speed import probe
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    print(probe(), flush=True)
"""


def measured_s(log: Path) -> float:
    """What the probe takes on average; its first runs, before anybody keeps the pace, are left out."""
    lines = [float(line) for line in log.read_text().splitlines()]
    return statistics.mean(lines[len(lines) // 4 :])


@pytest.mark.parametrize("speed", [0.5, 0.25])
def test_the_probe_sees_the_speed_that_was_asked_for(tmp_path: Path, speed: float) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    slow, plain = tmp_path / "slow", tmp_path / "plain"
    marks = [str(path) for path in (slow, plain)]
    try:
        running = [
            start([sys.executable, "-c", BURN, "2.5"], mark, path.with_suffix(".log"), environment)
            for mark, path in zip(marks, (slow, plain), strict=True)
        ]
        keeper = [sys.executable, "-m", "headgate.machines.slow_down", marks[0], str(speed), "1"]
        keeping = start(keeper, f"{marks[0]} keeper", tmp_path / "keeper.log", environment)
        while any(process.is_alive() for process in running):
            time.sleep(0.05)
        until = time.monotonic() + 10
        while keeping.is_alive():
            assert time.monotonic() < until, "the keeper outlives what it keeps"
            time.sleep(0.05)
        ratio = measured_s(plain.with_suffix(".log")) / measured_s(slow.with_suffix(".log"))
    finally:
        for mark in (*marks, f"{marks[0]} keeper"):
            end(mark, patience_s=1)
    print(f"speed {speed}, measured {ratio:.3f}")
    assert ratio == pytest.approx(speed, rel=0.3)


def test_a_busy_neighbour_does_not_make_a_core_slow(tmp_path: Path) -> None:
    """The time that a core is waited for is no part of its speed: with six hogs the probe takes about as long."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    hog = "import time\nuntil = time.monotonic() + 2\nwhile time.monotonic() < until: pass"
    logs = []
    for hogs in (0, 6):
        mark, log = f"{tmp_path}/{hogs}", tmp_path / f"{hogs}.log"
        logs.append(log)
        try:
            for _ in range(hogs):
                start([sys.executable, "-c", hog], mark, tmp_path / "hog.log", environment)
            process = start([sys.executable, "-c", BURN, "1.5"], mark, log, environment)
            while process.is_alive():
                time.sleep(0.05)
        finally:
            end(mark, patience_s=0.1)
    alone, beside = (statistics.median(float(line) for line in log.read_text().splitlines()) for log in logs)
    print(f"alone {alone * 1000:.1f} ms, beside six hogs {beside * 1000:.1f} ms")
    # Cores share caches and may share more than that: that much slower they truly are.
    assert beside < 2.2 * alone


@pytest.mark.parametrize(("speed", "cores", "threads"), [(0.5, 1, 3), (0.25, 1, 2), (0.2, 2, 4)])
def test_a_machine_gives_no_more_than_its_cores_at_their_speed(
    tmp_path: Path, speed: float, cores: int, threads: int
) -> None:
    """Processes of an executor (Java, Python) run side by side; together they get what the machine has, and that is
    judged beside a process that nobody slows down: where many compete, a core is not a whole one."""
    mark, burn = f"{tmp_path}/machine", "while True: pass"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    try:
        running = [start([sys.executable, "-c", burn], mark, tmp_path / "log", environment) for _ in range(threads)]
        keeper = [sys.executable, "-m", "headgate.machines.slow_down", mark, str(speed), str(cores)]
        start(keeper, f"{mark} keeper", tmp_path / "keeper.log", environment)
        core = start([sys.executable, "-c", burn], f"{mark} core", tmp_path / "core.log", environment)
        time.sleep(1.5)  # until the keeper keeps
        pids = [process.pid for process in running]
        before, began = cpu_of([core.pid, *pids]), time.monotonic()
        time.sleep(6)
        after, passed = cpu_of([core.pid, *pids]), time.monotonic() - began
    finally:
        for each in (f"{mark} keeper", mark, f"{mark} core"):
            end(each, patience_s=1)
    given = sum(after[pid] - before[pid] for pid in pids) / passed
    whole = (after[core.pid] - before[core.pid]) / passed
    print(f"{cores} cores of speed {speed}: {threads} threads got {given:.3f}, a whole core {whole:.3f}")
    assert given <= 1.15 * speed * cores
    assert given >= 0.7 * speed * cores * whole
