"""Estimates with confidence intervals, from samples that may have outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log, sqrt
from statistics import fmean, median

__all__ = ["SampleEstimate", "count_rate", "dispersion_of", "mean_of", "ratio_of", "scv_of", "without_outliers"]

_Z = 1.96

FEWEST_WINDOWS = 8
"""Windows from which a variance is taken from their counts."""


@dataclass(frozen=True, slots=True)
class SampleEstimate:
    """A value, the 95 % confidence interval about it, and how many measurements it stems from."""

    value: float
    low: float
    high: float
    samples: int

    @property
    def spread(self) -> float:
        """Half the width of the interval, relative to the value: small is trustworthy.

        >>> SampleEstimate(10.0, 9.0, 11.0, 50).spread
        0.1
        """
        if self.value == 0:
            return 0.0 if self.high == self.low else inf
        return (self.high - self.low) / 2 / abs(self.value)


def _about(value: float, error: float, samples: int) -> SampleEstimate:
    return SampleEstimate(value, max(value - _Z * error, 0.0), value + _Z * error, samples)


def without_outliers(values: Sequence[float], cut: float = 6.0) -> list[float]:
    """The values without extreme outliers, such as a pause of the machine or a clock change.

    On logarithms, since service times are skewed, further than ``cut`` robust standard deviations (1.4826 times the
    median absolute deviation) from the median. At 6, an exponential sample loses about one value in a thousand, all of
    them tiny. With fewer than 8 values nothing is taken out.

    >>> without_outliers([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.05, 500.0])
    [1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.05]

    Reference: F. R. Hampel 1974, *The Influence Curve and its Role in Robust Estimation*.
    """
    positive = [log(value) for value in values if value > 0]
    if len(positive) < 8:
        return list(values)
    middle = median(positive)
    deviation = 1.4826 * median(abs(value - middle) for value in positive)
    if deviation == 0:
        # More than half are the same; a tenth of it is deviation enough.
        deviation = log(1.1)
    low, high = exp(middle - cut * deviation), exp(min(middle + cut * deviation, 700.0))
    return [value for value in values if low <= value <= high]


def mean_of(values: Sequence[float]) -> SampleEstimate:
    """The mean of a sample, with its standard error."""
    mean = fmean(values)
    if len(values) < 2:
        return SampleEstimate(mean, 0.0, inf, len(values))
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return _about(mean, sqrt(variance / len(values)), len(values))


def scv_of(values: Sequence[float]) -> SampleEstimate:
    r"""The squared coefficient of variation of a sample.

    Its standard error, by the delta method: :math:`c^2 \sqrt{(\kappa - 1 + 4c^2 - 4 \gamma c) / n}` with skewness
    :math:`\gamma` and kurtosis :math:`\kappa` of the sample.

    >>> scv_of([1.0, 3.0] * 50).value
    0.2525...
    """
    count = len(values)
    if count < 2:
        return SampleEstimate(1.0, 0.0, inf, count)
    mean = fmean(values)
    central = [value - mean for value in values]
    second = sum(part**2 for part in central) / count
    if mean == 0 or second == 0:
        return SampleEstimate(0.0, 0.0, 0.0, count)
    scv = second * count / (count - 1) / mean**2
    skewness = sum(part**3 for part in central) / count / second**1.5
    kurtosis = sum(part**4 for part in central) / count / second**2
    spread = max(kurtosis - 1 + 4 * scv - 4 * skewness * sqrt(scv), 0.0)
    return _about(scv, scv * sqrt(spread / count), count)


def count_rate(count: float, seconds: float, scv: float = 1.0) -> SampleEstimate:
    """A rate (1/s) from a count during some time; counts of a renewal process have variance scv times their mean.

    >>> count_rate(100, 10.0).value
    10.0
    """
    if count == 0:
        return SampleEstimate(
            0.0, 0.0, 3 / seconds, 0
        )  # the rule of three: with 3 expected, none comes in 5 % of cases
    return _about(count / seconds, sqrt(max(scv, 0.0) * count) / seconds, int(count))


def dispersion_of(counts: Sequence[tuple[float, float]]) -> float | None:
    r"""The index of dispersion of counts in successive windows of some seconds; none where they are too few.

    .. math:: I = \frac{1}{\bar\lambda (n-1)} \sum_i \frac{(\lambda_{i+1} - \lambda_i)^2}{1/s_i + 1/s_{i+1}}

    It tends to the squared coefficient of variation of the times between arrivals of a renewal process: 1 for Poisson
    arrivals, 0 for those that come like a clock. From differences, so that a slow change of the rate is no variance.

    >>> dispersion_of([(100, 10.0)] * 10), dispersion_of([(100, 10.0)] * 3)
    (0.0, None)

    Reference: D. R. Cox and P. A. W. Lewis 1966, *The Statistical Analysis of Series of Events*, Sec. 4.5.
    """
    rates = [count / seconds for count, seconds in counts]
    total = sum(rates)
    if len(counts) < FEWEST_WINDOWS or total <= 0:
        return None
    lengths = [seconds for _, seconds in counts]
    steps = zip(pairwise(rates), pairwise(lengths), strict=True)
    squares = sum((later - before) ** 2 / (1 / long + 1 / longer) for (before, later), (long, longer) in steps)
    return squares / (len(counts) - 1) * len(counts) / total


def ratio_of(sent: float, served: float) -> SampleEstimate:
    """Tuples sent per tuple served: a share if at most 1 (binomial), a multiple otherwise (Poisson)."""
    if served == 0:
        return SampleEstimate(0.0, 0.0, inf, 0)
    ratio = sent / served
    variance = ratio * (1 - ratio) if ratio <= 1 else ratio
    return _about(ratio, sqrt(variance / served), int(served))
