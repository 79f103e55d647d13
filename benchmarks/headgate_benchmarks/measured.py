"""What a benchmark hands back and draws, and how CPU time is read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from headgate.errors import missing_package

__all__ = ["CpuClock", "Measured", "cpu_seconds", "prepare_plots"]


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures by name, and every sample behind them."""

    figures: dict[str, float]
    samples: dict[str, Any]
    table: str = ""
    """A table for people; the figures one by one if left out."""

    versions: dict[str, str] = field(default_factory=dict)
    """Of other software that was measured."""

    notes: dict[str, str] = field(default_factory=dict)
    """What numbers cannot tell: why a figure is lacking, what was done."""


def prepare_plots(folder: Path) -> None:
    """Make the folder of a benchmark's pictures; raises :class:`InputError` where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise missing_package("NO_PLOTS", "drawing plots", "matplotlib", "plots") from None
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    own_s: float
    waited_s: float
    """Of descendants that have ended and were waited for."""


class CpuClock:
    """CPU seconds that a process, this one if left out, and all its descendants have used so far (Linux).

    It never runs backwards: descendants that have ended count through the process that waited for them, and those that
    nobody waited for, as Spark's Python workers at times, count as they were last seen. It looks twice a second.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = os.getpid() if root is None else root
        self._lock = threading.Lock()
        self._seen = _descendants(self._root)
        self._lost_s = 0.0
        threading.Thread(target=self._watch, name="cpu-clock", daemon=True).start()

    def _watch(self) -> None:
        while self._seen:
            time.sleep(0.5)
            self.seconds()

    def seconds(self) -> float:
        """Read the clock."""
        with self._lock:
            seen = _descendants(self._root)
            self._lost_s += _lost(self._seen, seen)
            self._seen = seen
            return self._lost_s + sum(each.own_s + each.waited_s for each in seen.values())


@cache
def _own() -> CpuClock:
    return CpuClock()


def cpu_seconds() -> float:
    """CPU seconds of this process and all its descendants, by one clock for all who ask."""
    return _own().seconds()


def _lost(before: Mapping[int, _Process], after: Mapping[int, _Process]) -> float:
    """CPU seconds of processes that are gone without anyone having waited for them.

    >>> before = {1: _Process(0, 1.0, 0.0), 2: _Process(1, 3.0, 0.0), 3: _Process(2, 5.0, 0.0)}
    >>> _lost(before, {1: _Process(0, 1.5, 8.5), 4: _Process(1, 0.1, 0.0)})
    0.0
    >>> _lost(before, {1: _Process(0, 1.5, 3.0)})
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


def _descendants(root: int) -> dict[int, _Process]:
    """A process and all that have come from it and still are."""
    children: dict[int, list[int]] = {}
    found: dict[int, _Process] = {}
    ticks = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            own, waited = (sum(int(field) for field in fields[at : at + 2]) / ticks for at in (11, 13))
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            found[int(entry.name)] = _Process(int(fields[1]), own, waited)
    kept, waiting = {}, [root]
    while waiting:
        number = waiting.pop()
        if number in found:
            kept[number] = found[number]
        waiting += children.get(number, [])
    return kept
