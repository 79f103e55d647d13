"""What was measured of each epoch, for observers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headgate.model.names import Signature
from headgate.runtime.observing.counting import RowCounts

__all__ = ["Arrivals", "EpochRecord", "Records"]

KEPT = 20_000
"""How many records are kept for an observer; the oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows that reached a sink together, and when their events had been taken in, as quantiles."""

    rows: int
    ingested_us: np.ndarray[Any, np.dtype[np.int64]]
    at: float = 0.0
    """When they arrived, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """What was measured of an epoch."""

    fragment: str
    epoch: int
    tag: str
    """The tag of its Spark jobs."""

    began: float
    committed: float
    ended: float
    """All three in seconds since 1970."""

    rows_in: int
    counts: RowCounts
    arrivals: Mapping[Signature, Sequence[Arrivals]] = field(default_factory=dict)
    snapshot: int = 0
    """The plan that it ran, or the last of them."""

    misplaced: int | None = None
    """Partitions that ran elsewhere than they were placed; none where nothing is placed."""


class Records:
    """Hands every record to all observers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._takers: list[deque[EpochRecord]] = []

    def taken(self) -> deque[EpochRecord]:
        """A queue of records for one observer, from now on."""
        with self._lock:
            self._takers.append(deque(maxlen=KEPT))
            return self._takers[-1]

    def add(self, record: EpochRecord) -> None:
        with self._lock:
            for taker in self._takers:
                taker.append(record)
