"""The operator as an M/M/k queue: Poisson arrivals, exponential service, k processors, first come first served."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from headgate.queueing.erlang import erlang_c

__all__ = ["sojourn_percentile", "sojourn_tail", "sojourn_variance", "wait_mean"]

Floats = npt.NDArray[np.float64]


def wait_mean(k: npt.ArrayLike, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike) -> Floats:
    r"""Mean time in the queue (s).

    .. math:: E[Q_i](k_i) = \frac{C(k_i, \lambda_i/\mu_i)}{k_i \mu_i - \lambda_i}

    Rates in tuples/s; infinite when :math:`\rho = \lambda / (k \mu) \ge 1`.

    >>> wait_mean([1, 2], 3.0, 4.0).round(6).tolist()
    [0.75, 0.040909]

    Reference: DRS (Fu et al. 2017), Eq. 2.
    """
    k_, lam, mu = (np.asarray(value, dtype=np.float64) for value in (k, arrival_rate, service_rate))
    spare = k_ * mu - lam
    stable = spare > 0
    return np.where(stable, erlang_c(k_, lam / mu) / np.where(stable, spare, 1.0), np.inf)


def sojourn_variance(k: npt.ArrayLike, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike) -> Floats:
    r"""Variance of the time in queue and service (s²).

    The wait is 0 with probability 1 - C and otherwise exponential with rate :math:`k\mu - \lambda`, and independent of
    the service: :math:`Var[T] = C (2 - C) / (k \mu - \lambda)^2 + 1 / \mu^2`.

    >>> float(sojourn_variance(1, 3.0, 4.0))  # M/M/1: exponential with rate mu - lambda
    1.0
    """
    k_, lam, mu = (np.asarray(value, dtype=np.float64) for value in (k, arrival_rate, service_rate))
    spare = k_ * mu - lam
    stable = spare > 0
    waits = erlang_c(k_, lam / mu)
    return np.where(stable, waits * (2 - waits) / np.where(stable, spare, 1.0) ** 2 + 1 / mu**2, np.inf)


def sojourn_tail(t: float, k: int, arrival_rate: float, service_rate: float) -> float:
    r"""The probability that queue and service take more than ``t`` seconds, exact for M/M/k.

    .. math::

        P(T > t) = (1 - C) e^{-\mu t} + C \frac{\theta e^{-\mu t} - \mu e^{-\theta t}}{\theta - \mu},
        \qquad \theta = k\mu - \lambda

    and :math:`e^{-\mu t}(1 + C \mu t)` when :math:`\theta = \mu`.

    >>> round(sojourn_tail(1.0, 1, 3.0, 4.0), 6)  # M/M/1: exp(-(mu - lambda) t)
    0.367879
    """
    theta, mu = k * service_rate - arrival_rate, service_rate
    if theta <= 0:
        return 1.0
    waits = float(erlang_c(k, arrival_rate / mu))
    served, drained, apart = float(np.exp(-mu * t)), float(np.exp(-theta * t)), theta - mu
    # (e^{-mu t} - e^{-theta t}) / (theta - mu), which is t e^{-mu t} in the limit
    delayed = served * float(-np.expm1(-apart * t)) / apart if 1e-12 < abs(apart) * t < 1.0 else served * t
    if abs(apart) * t >= 1.0:
        delayed = (served - drained) / apart
    return served + waits * mu * delayed


def sojourn_percentile(p: float, k: int, arrival_rate: float, service_rate: float) -> float:
    """The time (s) within which a share ``p`` of the tuples is through, exact for M/M/k; infinite when unstable.

    >>> round(sojourn_percentile(0.95, 1, 3.0, 4.0), 6)  # M/M/1: -log(0.05) / (mu - lambda)
    2.995732
    """
    if k * service_rate <= arrival_rate:
        return float("inf")
    high = 1 / service_rate
    while sojourn_tail(high, k, arrival_rate, service_rate) > 1 - p:
        high *= 2
    return float(
        brentq(lambda t: sojourn_tail(t, k, arrival_rate, service_rate) - (1 - p), 0.0, high, xtol=1e-14 * high)
    )
