"""Statistics of machines' traces: how performance is spread, how it changes, and how machines differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

__all__ = ["LEVELS", "MetricStatistics", "Quartiles", "TraceUnit"]

LEVELS = tuple(place / 100 for place in range(101))
"""The shares at which distributions are given."""


class TraceUnit(StrEnum):
    """What the numbers of a trace mean."""

    SHARE = "share"
    """Of the rated performance, in (0, 1]."""

    PERCENT = "percent"
    """Of the rated performance, up to 100."""

    USED_PERCENT = "used-percent"
    """Taken by others: what is left is the performance."""

    TIME = "time"
    """Of a fixed piece of work; the least ever seen is the rated performance."""

    RATE = "rate"
    """Of work; the most ever seen is the rated performance."""


@dataclass(frozen=True, slots=True)
class Quartiles:
    """One machine's slots: quartiles, the farthest values within 1.5 lengths of the box, and how many are beyond."""

    vm: str
    low: float
    q1: float
    median: float
    q3: float
    high: float
    outliers: int


@dataclass(frozen=True, slots=True)
class MetricStatistics:
    """One metric of all machines; 1 is the best that was seen (or the rated performance)."""

    metric: str
    machines: int
    measurements: int
    performance: tuple[float, ...]
    """Quantiles of the measurements, at :data:`LEVELS` (PLAN-AHEAD, Fig. 1a)."""

    below_08: float
    """Share of the measurements below 0.8."""

    changes: tuple[float, ...]
    """Quantiles of the unsigned relative change between the means of consecutive slots (Fig. 1b and 2)."""

    change_above_02: float
    """Share of those changes above 20 %."""

    gaps: int
    """Neighbouring slots of a machine with nothing measured between them; no change is counted there."""

    boxes: tuple[Quartiles, ...]
    """Machines in order of their names, forty at most (Fig. 1c)."""

    def as_dict(self) -> Mapping[str, Any]:
        return asdict(self)
