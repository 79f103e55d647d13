"""A kind of machine that can be had."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from headgate.errors import BadValue

__all__ = ["VmClass"]


@dataclass(frozen=True, slots=True)
class VmClass:
    """So many cores and so much memory, at a price per hour."""

    name: str
    cores: int
    memory_bytes: int
    price_per_h: Decimal
    core_speed: float = 1.0
    """One of its cores relative to the reference core."""

    startup_s: float = 0.0
    """From asking for such a machine until it takes work, as far as is known."""

    def __post_init__(self) -> None:
        if not self.name:
            raise BadValue("a VM class has no name", "a name")
        if self.cores < 1:
            raise BadValue(f"VM class '{self.name}' has {self.cores} cores", "at least 1")
        if self.memory_bytes < 1:
            raise BadValue(f"VM class '{self.name}' has {self.memory_bytes} bytes of memory", "at least 1")
        if not (self.price_per_h.is_finite() and self.price_per_h >= 0):
            raise BadValue(f"VM class '{self.name}' costs {self.price_per_h} an hour", "a finite price, at least 0")
        if not 0 < self.core_speed < float("inf"):
            raise BadValue(f"VM class '{self.name}' has core speed {self.core_speed:g}", "a number above 0")
        if not 0 <= self.startup_s < float("inf"):
            raise BadValue(f"VM class '{self.name}' starts up in {self.startup_s:g} s", "a number, at least 0")
