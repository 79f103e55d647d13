"""Imitates a machine with slower cores: after every few milliseconds of work its processes are stopped for some.

``python -m headgate.machines.slow_down MARK SPEED CORES`` keeps the processes that carry a mark at a speed until none
is left. Stopped processes take no part in the competition for processors, so what they lose is the same on an idle and
on a busy machine. While they wait they are not stopped, as on a slower core. What the machine's threads use together
is no more than its cores have at that speed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from headgate.machines.processes import is_stopped, marked

__all__ = ["cpu_of", "keep", "stop_s"]

LOOK_S = 0.008
LATE_S = 0.1
SEARCH_S = 0.5
"""How often new processes are looked for; what a known group starts is stopped with it at once."""


def stop_s(used_s: float, passed_s: float, speed: float, cores: int) -> float:
    """For how long processes must be stopped that have used so much of a processor in some time.

    Of every second in which a slow core works, a fast one would be idle for :math:`1 - s`: time at work is followed by
    :math:`(1 - s) / s` times as much of being stopped. Several cores at work at once are stopped together.
    Threads that used more cores than the machine has are stopped for as long as if they had taken turns.

    >>> stop_s(0.004, 0.01, 0.5, 1), stop_s(0.02, 0.01, 0.25, 2), stop_s(0.0, 0.01, 0.5, 1), stop_s(0.02, 0.01, 0.5, 1)
    (0.004, 0.03, 0.0, 0.03)
    """
    return max(min(used_s, passed_s) * (1 - speed) / speed, used_s / (cores * speed) - passed_s)


def keep(mark: str, speed: float, cores: int) -> None:
    """Keep processes at a speed until none is left."""
    owed_s = 0.0
    try:
        while pids := marked(mark):
            groups, search = _groups(pids), time.monotonic() + SEARCH_S
            used_s, looked = cpu_of(pids), time.monotonic()
            while time.monotonic() < search:
                time.sleep(LOOK_S)
                now, used_now_s = time.monotonic(), cpu_of(pids)
                spent_s = {pid: used_now_s[pid] - used_s[pid] for pid in used_now_s.keys() & used_s.keys()}
                owed_s += stop_s(sum(spent_s.values()), now - looked, speed, cores)
                if owed_s >= LOOK_S / 4:
                    busiest = max(spent_s, key=lambda pid: spent_s[pid])
                    owed_s -= _stopped(groups, busiest, owed_s)  # too long by a little: they are spared that next time
                used_s, looked = used_now_s, time.monotonic()
    finally:
        _signal(_groups(marked(mark)), signal.SIGCONT)


def _stopped(groups: set[int], busiest: int, seconds: float) -> float:
    """Stop groups of processes for a while; returns for how long it was."""
    _signal(groups, signal.SIGSTOP)
    try:
        # A process stops when it has its turn on a processor, which may take a while where many compete.
        began = time.monotonic()
        while not is_stopped(busiest) and time.monotonic() < began + LATE_S:
            time.sleep(0.0005)
        began = time.monotonic()
        time.sleep(seconds)
        return time.monotonic() - began
    finally:
        _signal(groups, signal.SIGCONT)


def cpu_of(pids: Sequence[int]) -> dict[int, float]:
    """The processor time of processes, to the nanosecond."""
    used = {}
    for pid in pids:
        with suppress(OSError):
            used[pid] = time.clock_gettime((~pid << 3) | _WHOLE_PROCESS)
    return used


_WHOLE_PROCESS = 2
"""With the complement of a process's number, the name of its clock (clock_getcpuclockid)."""


def _groups(pids: Sequence[int]) -> set[int]:
    groups = set()
    for pid in pids:
        with suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    return groups


def _signal(groups: set[int], number: signal.Signals) -> None:
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)


if __name__ == "__main__":
    # Asked to end, it must not leave them stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    keep(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
