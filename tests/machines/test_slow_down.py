"""A slow machine is slower, by as much as was asked for: measured, side by side with one that is not."""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import pytest

from headgate.machines.processes import end, start

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
        keeper = [sys.executable, "-m", "headgate.machines.slow_down", marks[0], str(speed)]
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
