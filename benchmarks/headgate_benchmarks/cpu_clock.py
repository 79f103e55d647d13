"""CPU time of a process and of everything that it started."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import psutil

__all__ = ["CpuClock", "cpu_seconds"]


@dataclass(frozen=True, slots=True)
class _Usage:
    parent: int
    own_s: float
    waited_s: float
    """Of children that have ended and were waited for."""


class CpuClock:
    """CPU seconds that a process (by default this one) and all its descendants have used so far.

    The clock never runs backwards. Descendants that have ended count through the process that waited for them. Those
    that nobody waited for, such as some of Spark's Python workers, count as they were last seen; the clock looks twice
    a second.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = os.getpid() if root is None else root
        self._lock = threading.Lock()
        self._seen = _usage(self._root)
        self._lost_s = 0.0
        threading.Thread(target=self._watch, name="cpu-clock", daemon=True).start()

    def _watch(self) -> None:
        while self._seen:
            time.sleep(0.5)
            self.seconds()

    def seconds(self) -> float:
        """Read the clock."""
        with self._lock:
            seen = _usage(self._root)
            self._lost_s += _lost(self._seen, seen)
            self._seen = seen
            return self._lost_s + sum(each.own_s + each.waited_s for each in seen.values())


@cache
def _own() -> CpuClock:
    return CpuClock()


def cpu_seconds() -> float:
    """CPU seconds of this process and all its descendants."""
    return _own().seconds()


def _lost(before: Mapping[int, _Usage], after: Mapping[int, _Usage]) -> float:
    """CPU seconds of processes that have ended and that nobody waited for.

    >>> before = {1: _Usage(0, 1.0, 0.0), 2: _Usage(1, 3.0, 0.0), 3: _Usage(2, 5.0, 0.0)}
    >>> _lost(before, {1: _Usage(0, 1.5, 8.5), 4: _Usage(1, 0.1, 0.0)})
    0.0
    >>> _lost(before, {1: _Usage(0, 1.5, 3.0)})
    5.0
    """
    gone: dict[int, float] = {}
    for number, process in before.items():
        if number not in after:
            parent = process.parent
            while parent not in after and parent in before:
                parent = before[parent].parent
            gone[parent] = gone.get(parent, 0.0) + process.own_s + process.waited_s
    grown = {number: after[number].waited_s - before[number].waited_s for number in gone.keys() & before.keys()}
    return sum(max(spent - grown.get(parent, 0.0), 0.0) for parent, spent in gone.items())


def _usage(root: int) -> dict[int, _Usage]:
    """A process and its living descendants, by number."""
    usage: dict[int, _Usage] = {}
    with suppress(psutil.Error):
        top = psutil.Process(root)
        for process in (top, *top.children(recursive=True)):
            with suppress(psutil.Error), process.oneshot():
                cpu = process.cpu_times()
                waited_s = cpu.children_user + cpu.children_system
                usage[process.pid] = _Usage(process.ppid(), cpu.user + cpu.system, waited_s)
    return usage
