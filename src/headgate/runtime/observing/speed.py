"""The speed probe: how fast a core is beside the reference core, from a fixed piece of work.

What counts is the time that the work takes less the time in which it waited for a processor. A core that is shared with
other work is as fast as before; one that a host takes away for a while, or that is stopped, is slower.
"""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path

from headgate.runtime.spark_internals.worker import settle
from headgate.store.files import write_json

__all__ = ["calibrated", "probe"]

ROUNDS = 300_000
"""Some 25 milliseconds of a core."""

SCHEDULED = Path("/proc/thread-self/schedstat")


def probe() -> float:
    """Seconds that the fixed work takes on this core, without the time it waited for the core."""
    before, waited, spent = time.perf_counter(), _waited_s(), time.thread_time()
    _work()
    took, then, used = time.perf_counter() - before, _waited_s(), time.thread_time() - spent
    settle()
    if waited is None or then is None:
        return used  # where the system does not report waiting, a core that is taken away is not noticed
    # Clocks of two cores may differ a little: it cannot have waited while it was at work.
    return max(took - (then - waited), used)


def _work() -> int:
    x = 1
    for _ in range(ROUNDS):
        x = (x * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return x


def _waited_s() -> float | None:
    """For how long this thread has waited for a processor, as Linux counts it."""
    try:
        return int(SCHEDULED.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def calibrated(path: Path) -> float:
    """Seconds on the reference core: as ``path`` has it, or else this process's own core, which is written there.

    Another Python does the work at another pace, so what it has measured is not taken over.
    """
    wanted = {"python": platform.python_version(), "rounds": ROUNDS}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        stored = {}
    if all(stored.get(name) == value for name, value in wanted.items()):
        return float(stored["seconds"])
    seconds = min(probe() for _ in range(9))  # others who share the core's caches meanwhile make it slower
    write_json(path, {**wanted, "seconds": seconds})
    return seconds
