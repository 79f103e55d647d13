"""Percentiles of the whole sojourn from its mean and variance."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import gammaincinv

__all__ = ["gamma_percentile", "gamma_percentile_floor", "sojourn_moments"]

Floats = npt.NDArray[np.float64]


def sojourn_moments(visits: Floats, covariance: Floats, means: Floats, variances: Floats) -> tuple[float, float]:
    r"""Mean (s) and variance (s²) of the whole sojourn T of a tuple from outside.

    .. math:: E[T] = \sum_i v_i E[T_i], \qquad Var[T] = \sum_i v_i Var[T_i] + \sum_{ij} Cov[N_i, N_j] E[T_i] E[T_j]

    :math:`N_i` is how often a tuple, with all that is made of it, comes by operator i, :math:`v_i` its mean. The second
    sum is what chance in the routes adds: a loop makes some tuples stay much longer than others. Takes the sojourns
    of different visits for independent, which holds exactly for chains of M/M/1 queues.

    Reference: the mean is DRS (Fu et al. 2017), Eq. 4; the variance is that of a random sum.
    """
    return float(visits @ means), float(visits @ variances + means @ covariance @ means)


def gamma_percentile(mean: npt.ArrayLike, variance: npt.ArrayLike, p: float) -> Floats:
    r"""The p-quantile of a gamma distribution with the given mean and variance (s).

    Exact for M/M/1 (exponential), for chains of equal M/M/1 queues (Erlang), and for a loop round an M/M/1 queue. When
    the shape :math:`E[T]^2 / Var[T]` becomes so small that a quantile would fall again with growing variance, it is
    held at its largest value, so the percentile never falls when the variance rises. It may fall when the mean rises
    and the variance does not, since the tail gets lighter; far out (p99) that is so at shapes from 0.1 to 1. Meant for
    the upper tail, p from 0.75 on.

    >>> gamma_percentile([1.0, 2.0], [1.0, 2.0], 0.95).round(4).tolist()
    [2.9957, 4.7439]
    """
    m, v = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    finite = np.isfinite(m) & np.isfinite(v)
    shape = np.maximum(_shape(np.where(finite, m, 1.0), np.where(finite, v, 1.0)), _least_shape(p))
    quantile = m * gammaincinv(shape, p) / shape
    return np.where(finite, np.where(v > 0, quantile, m), np.inf)


def gamma_percentile_floor(mean: npt.ArrayLike, variance: npt.ArrayLike, p: float) -> Floats:
    """The least percentile of all means and variances that are no smaller than these: a bound for searches.

    At a given mean the percentile never falls with the variance, so the least variance will do. In units of the
    standard deviation it depends on the shape alone, and a larger mean leads to a larger shape: what counts is the
    least value at any larger shape.

    >>> bool(gamma_percentile_floor(1.0, 3.0, 0.99) <= gamma_percentile(2.0, 3.0, 0.99))
    True
    """
    m, v = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    shapes, least = _least_beyond(p)
    place = np.clip(np.searchsorted(shapes, _shape(m, v), side="right") - 1, 0, len(shapes) - 1)
    return np.where(v > 0, np.minimum(gamma_percentile(m, v, p), np.sqrt(v) * least[place]), m)


def _shape(mean: Floats, variance: Floats) -> Floats:
    """The shape of the gamma distribution, at most 1e12: from there on it is a constant."""
    square = np.maximum(mean * mean, 1e-200)
    return np.asarray(square / np.maximum(variance, 1e-12 * square))


@cache
def _least_beyond(p: float) -> tuple[Floats, Floats]:
    """Shapes, and the least quantile in units of the standard deviation at each of them and all beyond."""
    shapes = np.geomspace(_least_shape(p), 1e6, 8_000)
    in_deviations = gammaincinv(shapes, p) / np.sqrt(shapes)
    return shapes, np.minimum.accumulate(in_deviations[::-1])[::-1]


@cache
def _least_shape(p: float) -> float:
    """The shape at which the quantile, in units of the mean, is largest."""
    minimum = minimize_scalar(lambda log: -gammaincinv(np.exp(log), p) / np.exp(log), bounds=(-7, 3), method="bounded")
    return float(np.exp(minimum.x))
