"""Distributions of times and of bulk sizes, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import isfinite, log, sqrt

from headgate.errors import BadValue

__all__ = ["Distribution", "Kind"]


class Kind(IntEnum):
    """The kinds of distribution, by the number that the event loop knows them by."""

    CONSTANT = 0
    EXPONENTIAL = 1
    UNIFORM = 2
    GAMMA = 3
    LOGNORMAL = 4
    HYPEREXPONENTIAL = 5
    GEOMETRIC = 6
    EMPIRICAL = 7


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of a time (s) or of a number of tuples; made by the methods named after the kinds."""

    kind: Kind
    mean: float
    scv: float
    """Squared coefficient of variation: variance over squared mean."""

    first: float = 0.0
    second: float = 0.0
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (isfinite(self.mean) and self.mean > 0 and isfinite(self.scv) and self.scv >= 0):
            given = f"a distribution with mean {self.mean:g} and scv {self.scv:g}"
            raise BadValue(given, "a finite mean above 0 and a finite scv of at least 0")

    @classmethod
    def constant(cls, value: float) -> Distribution:
        return cls(Kind.CONSTANT, value, 0.0, value)

    @classmethod
    def exponential(cls, mean: float) -> Distribution:
        return cls(Kind.EXPONENTIAL, mean, 1.0, mean)

    @classmethod
    def uniform(cls, low: float, high: float) -> Distribution:
        """Uniform from ``low`` to ``high``.

        >>> Distribution.uniform(0, 2).scv
        0.3333333333333333
        """
        if not 0 <= low <= high:
            raise BadValue(f"a uniform distribution from {low:g} to {high:g}", "0 <= low <= high")
        mean = (low + high) / 2
        return cls(Kind.UNIFORM, mean, (high - low) ** 2 / 12 / mean**2 if mean > 0 else 0.0, low, high)

    @classmethod
    def gamma(cls, mean: float, scv: float) -> Distribution:
        if scv <= 0:
            return cls.constant(mean)
        return cls(Kind.GAMMA, mean, scv, 1 / scv, mean * scv)

    @classmethod
    def lognormal(cls, mean: float, scv: float) -> Distribution:
        spread = log(1 + scv)
        return cls(Kind.LOGNORMAL, mean, scv, log(mean) - spread / 2, sqrt(spread))

    @classmethod
    def hyperexponential(cls, mean: float, scv: float) -> Distribution:
        """Two exponential phases with balanced means, for an scv of at least 1.

        Of the phases, one is taken with probability p = (1 + sqrt((c²-1)/(c²+1))) / 2 and has mean m/(2p), the other
        has mean m/(2(1-p)).

        Reference: W. Whitt 1982, *Approximating a Point Process by a Renewal Process, I*, Sec. 3.
        """
        if scv < 1:
            raise BadValue(f"a hyperexponential distribution with scv {scv:g}", "at least 1")
        return cls(Kind.HYPEREXPONENTIAL, mean, scv, (1 + sqrt((scv - 1) / (scv + 1))) / 2, mean)

    @classmethod
    def geometric(cls, mean: float) -> Distribution:
        """1, 2, 3... tuples, each with the same chance that one more follows."""
        if mean < 1:
            raise BadValue(f"a geometric distribution with mean {mean:g}", "at least 1")
        return cls(Kind.GEOMETRIC, mean, 1 - 1 / mean, 1 / mean)

    @classmethod
    def empirical(cls, values: tuple[float, ...]) -> Distribution:
        """Each of the values with the same chance, as they were measured.

        >>> Distribution.empirical((1, 1, 4)).mean
        2.0
        """
        if not values:
            raise BadValue("no values to draw from", "at least one")
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        return cls(Kind.EMPIRICAL, mean, variance / mean**2, values=values)

    @classmethod
    def of_moments(cls, mean: float, scv: float) -> Distribution:
        """A distribution with these two moments: constant, gamma, exponential or hyperexponential.

        >>> Distribution.of_moments(2.0, 1.0).kind.name, Distribution.of_moments(2.0, 4.0).kind.name
        ('EXPONENTIAL', 'HYPEREXPONENTIAL')
        """
        if scv < 1e-9:
            return cls.constant(mean)
        if abs(scv - 1) < 1e-9:
            return cls.exponential(mean)
        return cls.gamma(mean, scv) if scv < 1 else cls.hyperexponential(mean, scv)
