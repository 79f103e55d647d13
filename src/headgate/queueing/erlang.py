"""Erlang's formulas for k processors with a common queue, for one operator or for arrays of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc, gammaln

__all__ = ["erlang_b", "erlang_c"]

Floats = npt.NDArray[np.float64]

_STIRLING_FROM = 16
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))


def erlang_b(k: npt.ArrayLike, offered: npt.ArrayLike) -> Floats:
    r"""The probability that all of ``k`` processors are busy without a queue (M/M/k/k).

    .. math:: B(k, a) = \frac{a^k / k!}{\sum_{j=0}^{k} a^j / j!}, \qquad a = \lambda / \mu

    ``a`` is the offered load (erlangs, that is processors kept busy). The quotient is a Poisson probability over a
    Poisson distribution function, and is computed as that: the probability by Loader's saddle-point form, which loses
    no digits when ``k`` is large, the distribution function as an incomplete gamma function. There is no recursion,
    so an array costs no more with k = 100,000 than with k = 1. Below 1e-308 the result is 0. Meant for loads that the
    processors can bear, ``a <= k``, which is all that waiting times need.

    >>> erlang_b([1, 2, 100_000], [1.0, 1.0, 99_990.0]).round(6).tolist()
    [0.5, 0.2, 0.002456]

    References: A. K. Erlang 1917; C. Loader 2000, *Fast and Accurate Computation of Binomial Probabilities*, Sec. 2.
    """
    k_, a = np.broadcast_arrays(np.asarray(k, dtype=np.float64), np.asarray(offered, dtype=np.float64))
    if np.any(k_ < 1) or not np.all((a >= 0) & (a <= k_)):
        raise ValueError("Erlang's formula needs k >= 1 and an offered load from 0 to k")
    load = np.where(a > 0, a, 1.0)
    probability = np.exp(-_stirling_rest(k_) - _deviance(k_, load)) / np.sqrt(2 * np.pi * k_)
    return np.where(a > 0, probability / gammaincc(k_ + 1, load), 0.0)


def erlang_c(k: npt.ArrayLike, offered: npt.ArrayLike) -> Floats:
    r"""The probability that a tuple has to wait for one of ``k`` processors (M/M/k).

    .. math:: C(k, a) = \frac{B(k, a)}{1 - \rho (1 - B(k, a))}, \qquad \rho = a / k

    Holds for :math:`\rho < 1`; otherwise every tuple waits and the result is 1. Right to 1e-10 (relative) for k from
    1 to 100,000 and any rho up to 0.9999, as long as it is above 1e-300.

    >>> erlang_c([1, 2, 2], [0.5, 1.0, 2.5]).round(6).tolist()
    [0.5, 0.333333, 1.0]

    References: A. K. Erlang 1917; DRS (Fu et al. 2017), Eq. 3, which is the same with factorials that overflow.
    """
    k_, a = np.broadcast_arrays(np.asarray(k, dtype=np.float64), np.asarray(offered, dtype=np.float64))
    bearable = np.where(a < k_, a, k_)
    blocked = erlang_b(k_, bearable)
    idle = (k_ - bearable) / k_  # exact where a is close to k, which 1 - a / k is not
    return np.where(a < k_, blocked / (idle + (bearable / k_) * blocked), np.where(np.isnan(a), np.nan, 1.0))


def _stirling_rest(k: Floats) -> Floats:
    """``log k! - log(sqrt(2 pi k) (k/e)^k)``."""
    large = np.maximum(k, _STIRLING_FROM)
    inverse = 1 / (large * large)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - inverse / 1188) * inverse) * inverse) * inverse) / large
    small = np.minimum(k, _STIRLING_FROM)
    exact = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - _HALF_LOG_2PI
    return np.where(k < _STIRLING_FROM, exact, series)


def _deviance(k: Floats, a: Floats) -> Floats:
    """``k log(k/a) + a - k`` without loss of digits where k is close to a: k (u - log(1+u)) with u = (a-k)/k."""
    u = (a - k) / k
    near = np.where(np.abs(u) < 0.1, u, 0.0)
    # Below 0.1 in absolute value, 18 terms of the alternating series leave less than 1e-17 of the first.
    series = np.zeros_like(near)
    for power in range(19, 1, -1):
        series = (1.0 if power % 2 == 0 else -1.0) / power + near * series
    # Far from it, log(a/k) keeps the digits of a small a, which 1 + u has lost.
    return np.where(np.abs(u) < 0.1, k * near * near * series, k * (u - np.log(a / k)))
