"""The whole distribution of the sojourn in an M/M/k queue: what formulas and simulators are compared with."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from headgate.queueing.erlang import erlang_c


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
