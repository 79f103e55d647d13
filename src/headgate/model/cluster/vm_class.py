"""Kinds of machines, what they cost, and the clouds that offer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil, isfinite

from headgate.errors import BadValue, nearest

__all__ = ["HOURLY", "PER_MINUTE", "PER_SECOND", "BillingPeriod", "Cloud", "VmClass"]

_SLACK = 1e-9
"""Of a period: what sums of seconds may be off by without a further period being paid."""


@dataclass(frozen=True, slots=True)
class BillingPeriod:
    """How time is charged: in whole periods of ``period_s`` seconds, ``least_s`` seconds at least."""

    period_s: float
    least_s: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.period_s) and self.period_s > 0 and isfinite(self.least_s) and self.least_s >= 0):
            raise BadValue(f"a billing period of {self.period_s:g} s", "seconds above 0, such as 3600")

    def periods(self, held_s: float) -> int:
        r"""Periods that are paid for a machine held for so long.

        .. math:: \lceil (\min(t_{stop}, t) - t_{start}) / 60\,min \rceil

        >>> [HOURLY.periods(held_s) for held_s in (0, 1, 3600, 3601)]
        [0, 1, 1, 2]
        >>> PER_SECOND.periods(5)
        60

        Reference: DYN, Eq. 2; a machine that was not held costs nothing, whatever the least is.
        """
        if held_s <= 0:
            return 0
        return ceil(max(held_s, self.least_s) / self.period_s - _SLACK)

    def paid_until_s(self, held_s: float) -> float:
        """Seconds from the machine's start to the end of what is paid for.

        >>> HOURLY.paid_until_s(4000)
        7200.0
        """
        return float(self.periods(held_s) * self.period_s)


HOURLY = BillingPeriod(3_600.0)
PER_MINUTE = BillingPeriod(60.0)
PER_SECOND = BillingPeriod(1.0, 60.0)


@dataclass(frozen=True, slots=True)
class VmClass:
    """A kind of machine.

    ``cores`` is N of DYN, ``core_power`` one core's rated speed relative to the reference core (pi), ``bandwidth``
    what it may send to or get from one other machine (beta), ``boot_s`` the seconds from asking for one to its first
    work, ``shut_down_s`` those for which it is still paid after its release. ``interruptions_per_h`` above 0 makes it
    a spot machine, which its owner may take back at any moment.

    >>> VmClass("m1.large", 2, 2.0, 500, Decimal("0.24")).power
    4.0
    """

    name: str
    cores: int
    core_power: float
    bandwidth_mbit_per_s: float
    price_per_h: Decimal
    boot_s: float = 0.0
    shut_down_s: float = 0.0
    interruptions_per_h: float = 0.0
    memory_bytes: int = 0
    """0 where it does not matter, as in a simulation."""

    def __post_init__(self) -> None:
        message = f"VM class '{self.name}'"
        if self.cores < 1 or not (isfinite(self.core_power) and self.core_power > 0):
            what = f"{self.cores} cores of power {self.core_power:g}"
            raise BadValue(f"{message} is too small for anything: {what}", "at least one core, with a power above 0")
        if not self.bandwidth_mbit_per_s > 0:
            what = f"a bandwidth of {self.bandwidth_mbit_per_s:g} Mbit/s"
            raise BadValue(f"{message} has {what}, so that no message could reach it", "a bandwidth above 0")
        if not (self.price_per_h.is_finite() and self.price_per_h > 0):
            expected = "a price above 0: with a free machine every plan would be as good as any"
            raise BadValue(f"{message} has a price of {self.price_per_h} an hour", expected)
        for name in ("boot_s", "shut_down_s", "interruptions_per_h"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise BadValue(f"{message} has {name} {getattr(self, name)}", "a finite number of at least 0")

    @property
    def power(self) -> float:
        """All of its cores, in reference cores."""
        return self.cores * self.core_power

    @property
    def price_per_power_h(self) -> Decimal:
        """What one reference core costs for an hour."""
        return self.price_per_h / Decimal(str(self.power))


@dataclass(frozen=True, slots=True)
class Cloud:
    """Available VM classes, their billing, and the network latency between machines."""

    name: str
    classes: tuple[VmClass, ...]
    billing: BillingPeriod = HOURLY
    latency_s: float = 0.0005
    """From one machine to another, when the network is at its best; within a machine there is none."""

    currency: str = "USD"
    _places: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.classes:
            raise BadValue(f"cloud '{self.name}' offers no VM class", "at least one")
        if not (isfinite(self.latency_s) and self.latency_s >= 0):
            raise BadValue(f"cloud '{self.name}' has a latency of {self.latency_s} s", "a finite number of at least 0")
        places = {each.name: place for place, each in enumerate(self.classes)}
        if len(places) < len(self.classes):
            raise BadValue(f"cloud '{self.name}' has two VM classes of one name", "each name once")
        object.__setattr__(self, "_places", places)

    def place(self, name: str) -> int:
        """The index of a class; an unknown one raises with the nearest name."""
        if name not in self._places:
            wanted = f"one of {', '.join(self._places)}"
            raise BadValue(
                f"cloud '{self.name}' has no VM class '{name[:60]}'", wanted, nearest(name, list(self._places))
            )
        return self._places[name]

    def vm_class(self, name: str) -> VmClass:
        return self.classes[self.place(name)]

    @property
    def largest(self) -> VmClass:
        """The class of most power; of several the cheapest."""
        return min(self.classes, key=lambda each: (-each.power, each.price_per_h))
