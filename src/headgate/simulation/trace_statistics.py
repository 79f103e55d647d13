"""What traces of machines say: how performance is spread, how it changes, and how machines differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["LEVELS", "Box", "MetricStatistics"]

LEVELS = tuple(place / 100 for place in range(101))
"""The shares at which distributions are told."""


@dataclass(frozen=True, slots=True)
class Box:
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

    boxes: tuple[Box, ...]
    """Machines in order of their names, forty at most (Fig. 1c)."""

    def as_dict(self) -> Mapping[str, Any]:
        return asdict(self)
