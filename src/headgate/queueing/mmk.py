"""The operator as an M/M/k queue: Poisson arrivals, exponential service, k processors, first come first served."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.queueing.erlang import erlang_c

__all__ = ["sojourn_variance", "wait_mean"]

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
