"""Smoothing over windows, so that one unusual window does not move processors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.errors import BadValue

__all__ = ["AlphaWeighted", "MovingMean", "Smoothing", "weighted"]


class Smoothing(Protocol):
    """How much each of the last windows counts."""

    def weights(self, count: int) -> list[float]:
        """Weights of ``count`` windows, oldest first; they add up to 1."""


@dataclass(frozen=True, slots=True)
class AlphaWeighted:
    r"""Older windows fade away: :math:`D(n) = \alpha D(n-1) + (1-\alpha) d(n)`.

    :math:`\alpha` near 1 remembers long, 0 takes the last window alone. The first window counts in full,
    :math:`D(1) = d(1)`.

    >>> AlphaWeighted(0.5).weights(3)
    [0.25, 0.25, 0.5]

    Reference: DRS (Fu et al. 2017), Sec. IV-A.
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise BadValue(f"alpha is {self.alpha:g}", "from 0 to below 1")

    def weights(self, count: int) -> list[float]:
        first = [self.alpha ** (count - 1)]
        return first + [(1 - self.alpha) * self.alpha ** (count - 1 - place) for place in range(1, count)]


@dataclass(frozen=True, slots=True)
class MovingMean:
    r"""The last ``windows`` have equal weights: :math:`D(n) = \frac{1}{w} \sum_{j=n-w+1}^{n} d(j)`.

    >>> MovingMean(2).weights(3)
    [0.0, 0.5, 0.5]

    Reference: DRS (Fu et al. 2017), Sec. IV-A.
    """

    windows: int = 6

    def __post_init__(self) -> None:
        if self.windows < 1:
            raise BadValue(f"a mean of {self.windows} windows", "at least 1")

    def weights(self, count: int) -> list[float]:
        kept = min(count, self.windows)
        return [0.0] * (count - kept) + [1 / kept] * kept


def weighted(smoothing: Smoothing, values: Sequence[float]) -> float:
    """The smoothed value of a series, oldest first."""
    return sum(weight * value for weight, value in zip(smoothing.weights(len(values)), values, strict=True))
