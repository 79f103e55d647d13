"""Formulas of micro-batches as Spark runs them: the time of a stage with its barrier, and percentiles of sojourns."""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

__all__ = ["batch_percentile", "passes_variance", "slowest_s"]

Floats = npt.NDArray[np.float64]


def slowest_s(
    service_s: float, service_scv: float, k: npt.ArrayLike, tuples: npt.ArrayLike, dealers: npt.ArrayLike = 1
) -> Floats:
    r"""Mean time (s) until the slowest of ``k`` partitions is done with its share of a batch's tuples.

    With :math:`n` tuples in the batch, the fullest partition has about :math:`c = \max(1 - e^{-n}, n/k + (1 - 1/k)/2)`
    of them (dealt out in turn, n from a Poisson distribution), and the barrier waits for the slowest of :math:`m =
    \min(k, n)` partitions, which takes longer than the mean one by :math:`z_m` standard deviations:

    .. math:: d(k) = \bar s c + \bar s \sqrt{c_s^2\, c}\; z_m, \qquad
              z_m = \Phi^{-1}\!\left(\frac{m - 0.375}{m + 0.25}\right)

    :math:`\bar s, c_s^2` are mean and squared coefficient of variation of the service time. Neither convex nor even
    falling in k throughout: more partitions mean a slower slowest.

    Tuples come from j = ``dealers`` partitions of the stage before. Each of them deals out its own in turn, from a
    place of its own, so with several a partition's share has a variance of about :math:`V = j x (1 - x)`, x = n/(jk),
    and the slowest takes :math:`\bar s\,(n/k + z_k \sqrt{c_s^2\, n/k + V})` if that is longer.

    >>> slowest_s(0.1, 0.0, [1, 2, 5], 20.0).round(3).tolist()
    [2.0, 1.025, 0.44]
    >>> slowest_s(0.1, 0.0, [1, 2, 5], 20.0, dealers=10).round(3).tolist()
    [2.0, 1.054, 0.563]

    Reference: the expected largest of m normal values is G. Blom 1958, *Statistical Estimates*; the rest is ours.
    """
    many, count = np.asarray(k, dtype=np.float64), np.asarray(tuples, dtype=np.float64)
    fullest = np.maximum(1 - np.exp(-count), count / many + (1 - 1 / many) / 2)
    in_turn = fullest + np.sqrt(service_scv * fullest) * _slowest(np.minimum(many, count))
    dealt = _dealt_by(np.asarray(dealers, dtype=np.float64), many, count, service_scv)
    return np.asarray(service_s * np.maximum(in_turn, dealt))


def _dealt_by(dealers: Floats, many: Floats, tuples: Floats, varying: float) -> Floats:
    """The slowest partition's work, in service times, where several deal out their tuples; 0 for a single one."""
    share = tuples / many
    each = np.minimum(share / np.maximum(dealers, 1.0), 1.0)
    # From half a round on, where in its round a dealer ends is about anywhere: a sixth, as of a uniform place.
    by_chance = np.where(each <= 0.5, each * (1 - each), np.maximum(each * (1 - each), 1 / 6)) * (1 - 1 / many)
    spread = np.sqrt(varying * share + dealers * by_chance)
    return np.where(dealers > 1, share + spread * _slowest(many), 0.0)


def _slowest(count: Floats) -> Floats:
    """By how many standard deviations the largest of so many values exceeds the mean."""
    at_least = np.maximum(count, 1.0)
    return np.asarray(ndtri((at_least - 0.375) / (at_least + 0.25)))


def passes_variance(passes: float) -> float:
    """Of a loop's geometric number of passes, or of a filter's yes or no; 0 for just one pass."""
    return passes * (passes - 1) if passes >= 1 else passes * (1 - passes)


def batch_percentile(mean: Floats, variance: Floats, waits: int, p: float) -> Floats:
    r"""The p-quantile of a sojourn through micro-batches: :math:`M + z \sqrt{V}`.

    z is the quantile of a sum of so many uniform waits, standardised: exact for one (uniform) and two (triangular),
    from three on the normal quantile corrected for the sum's kurtosis :math:`-1.2/n` (Cornish and Fisher 1938).

    >>> batch_percentile(np.array(1.5), np.array(1 / 12), 1, 0.95).round(3).tolist()  # uniform from 1 to 2
    1.95
    """
    if waits == 1:
        z = sqrt(12) * (p - 0.5)
    elif waits == 2:
        z = sqrt(6) * (1 - sqrt(2 * (1 - p)) if p >= 0.5 else sqrt(2 * p) - 1)
    else:
        normal = float(ndtri(p))
        z = normal + (normal**3 - 3 * normal) * (-1.2 / waits) / 24
    return np.asarray(mean + z * np.sqrt(variance))
