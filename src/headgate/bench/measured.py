"""What a benchmark hands back and draws, and how CPU time is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.errors import InputError

__all__ = ["Measured", "cpu_seconds", "prepare_plots"]


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
        raise InputError("NO_PLOTS", "plots need matplotlib; install headgate[plots]") from None
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)


def cpu_seconds(root: int | None = None) -> float:
    """CPU seconds that a process, this one if left out, and all its descendants have used so far (Linux).

    Descendants that have ended count through the process that waited for them.
    """
    parents: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    ticks = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
            spent[int(entry.name)] = sum(int(field) for field in fields[11:15]) / ticks
    total, waiting = 0.0, [os.getpid() if root is None else root]
    while waiting:
        process = waiting.pop()
        total += spent.get(process, 0.0)
        waiting += parents.get(process, [])
    return total
