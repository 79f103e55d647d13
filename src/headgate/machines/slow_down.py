"""Imitates a machine with slower cores: its processes are stopped for a part of every few milliseconds.

``python -m headgate.machines.slow_down MARK SPEED`` keeps the processes that carry a mark at a speed until none is
left. Stopped processes take no part in the competition for processors, so what they lose is the same on an idle and on
a busy machine.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

from headgate.machines.processes import marked

__all__ = ["Pace", "keep"]

PERIOD_S = 0.01
LOOK_S = 0.5
"""How often new processes are looked for; those that a known group starts belong to it at once."""


class Pace:
    """How long to let processes go and how long to stop them, so that what was late is made up for.

    >>> pace = Pace(0.25)
    >>> pace.went(0.004)
    >>> round(pace.stop_s(), 6)
    0.012
    >>> pace.stopped(0.02)
    >>> round(pace.go_s(), 6)
    0.002667
    """

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.going_s = 0.0
        self.stopped_s = 0.0

    def went(self, seconds: float) -> None:
        self.going_s += seconds

    def stopped(self, seconds: float) -> None:
        self.stopped_s += seconds

    def stop_s(self) -> float:
        """For how long they must be stopped to have had their share."""
        return max(0.0, self.going_s * (1 - self.speed) / self.speed - self.stopped_s)

    def go_s(self) -> float:
        """For how long they may go: what they are owed, or their part of a period."""
        owed = self.stopped_s * self.speed / (1 - self.speed) - self.going_s
        return max(owed, PERIOD_S * self.speed / 2)


def keep(mark: str, speed: float) -> None:
    """Keep processes at a speed until none is left."""
    pace = Pace(speed)
    try:
        while groups := _groups(mark):
            until = time.monotonic() + LOOK_S
            while time.monotonic() < until:
                _signal(groups, signal.SIGCONT)
                pace.went(_slept(pace.go_s()))
                if _signal(groups, signal.SIGSTOP) == 0:
                    break
                pace.stopped(_slept(pace.stop_s()))
            # Nobody is owed what was lost while new ones were looked for.
            _signal(groups, signal.SIGCONT)
    finally:
        _signal(_groups(mark), signal.SIGCONT)


def _groups(mark: str) -> set[int]:
    found = set()
    for pid in marked(mark):
        with suppress(ProcessLookupError):
            found.add(os.getpgid(pid))
    return found


def _signal(groups: set[int], number: signal.Signals) -> int:
    """Send a signal to groups of processes; returns how many there still are."""
    there = 0
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)
            there += 1
    return there


def _slept(seconds: float) -> float:
    before = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - before


if __name__ == "__main__":
    # Asked to end, it must not leave them stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    keep(sys.argv[1], float(sys.argv[2]))
