"""What is measured while dataflows run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MEASURING", "Measuring"]


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured while dataflows run."""

    counting: bool = True
    """Whether the rows of every task are counted in every epoch; without that, there are no observations."""

    sample_every: int | None = 20
    """One epoch of a fragment in so many is used to profile tasks; ``None`` turns profiling off."""

    share: float = 0.005
    """The share of the time in epochs that profiling may take."""

    at_first_s: float = 4.0
    """Further seconds for profiling, once per engine."""


MEASURING = Measuring()
