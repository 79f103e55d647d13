"""Measurements of one window of time."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from headgate.errors import BadValue

__all__ = ["ObservationWindow", "OperatorWindow"]


@dataclass(frozen=True, slots=True)
class OperatorWindow:
    """What one operator did; counts are of all its instances together, times a sample of them."""

    name: str
    served: int
    """Tuples served."""

    external: int = 0
    """Tuples that came to it from outside."""

    service_s: tuple[float, ...] = ()
    """Service times of the tuples that were sampled."""

    interarrival_s: tuple[float, ...] = ()
    """Times between arrivals from outside, of a sample; between bulks, if they come in bulks."""

    bulk_sizes: tuple[int, ...] = ()
    """How many came at once, of a sample of arrivals from outside."""

    sent: tuple[tuple[str, int], ...] = ()
    """To whom it sent how many tuples."""

    def __post_init__(self) -> None:
        counts = [self.served, self.external, *(count for _, count in self.sent)]
        if min(counts) < 0:
            raise BadValue(f"'{self.name}' has a negative count", "counts of at least 0")
        for value in (*self.service_s, *self.interarrival_s, *self.bulk_sizes):
            if not (isfinite(value) and value >= 0):
                raise BadValue(f"'{self.name}' has a measured value of {value}", "a finite number, at least 0")


@dataclass(frozen=True, slots=True)
class ObservationWindow:
    """One window: how long it was, what every operator did, and the sojourns that were measured from end to end."""

    seconds: float
    operators: tuple[OperatorWindow, ...]
    sojourns_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (isfinite(self.seconds) and self.seconds > 0):
            raise BadValue(f"a window of {self.seconds} s", "a finite length above 0")
