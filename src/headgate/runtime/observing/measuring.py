"""What is measured while dataflows run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MEASURING", "Measuring"]


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured while dataflows run."""

    counting: bool = True
    """Whether the rows of every task are counted in every epoch; without, nothing is observed."""

    sample_every: int | None = 20
    """One epoch of a fragment in so many has tasks measured by themselves; none has if it is left out."""

    share: float = 0.005
    """Of the time in which epochs are at work, so much may go to measuring tasks by themselves."""

    at_first_s: float = 4.0
    """And so many seconds beyond that, once in an engine's life."""


MEASURING = Measuring()
