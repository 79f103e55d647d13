"""What is known of the last epoch of a fragment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["LastEpoch", "mean_us"]


@dataclass(slots=True)
class LastEpoch:
    """Facts about the last epoch of a fragment."""

    epoch: int = -1
    snapshot: int = 0
    rows_in: int = 0
    rows_per_s: float = 0.0
    """Rows in over the time since the epoch before began."""

    rows_out: int = 0
    began: float = field(default_factory=time.time)
    seconds: float = 0.0


def mean_us(batches: Sequence[tuple[int, int]], now: float) -> int:
    """When the events of some batches were taken in, in the mean; ``now``, if there are none."""
    rows = sum(count for count, _ in batches)
    return sum(count * ingested for count, ingested in batches) // rows if rows else int(now * 1e6)
