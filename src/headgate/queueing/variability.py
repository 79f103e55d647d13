"""How the variability of arrivals spreads through a network: the second half of the GI/G/k model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.queueing.ggk import Bulk
from headgate.queueing.network import Network
from headgate.queueing.traffic import Traffic

__all__ = ["Variability", "solve_variability"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Variability:
    """Squared coefficients of variation of the arrivals at each operator, and the bulks in which they come."""

    arrival_scv: Floats
    bulks: tuple[tuple[Bulk, ...], ...]


def solve_variability(network: Network, traffic: Traffic, allocation: Sequence[int]) -> Variability:
    r"""Solve the variability equations for given numbers of processors.

    A stream into operator j is taken for renewal epochs at which one or several tuples come. Its parts:

    - departures of i, as j sees them: :math:`c_{d,i}^2 = c_{a,i}^2 + s_{ij} (1 + (\max(c_{s,i}^2, 0.2) - 1)/\sqrt{k_i}
      - c_{a,i}^2)`, with :math:`s_{ij} = \rho_i^2 \min(1, (1-\rho_j)/(1-\rho_i))^2`;
    - the epochs at which i sends to j: :math:`c^2 = p\,c_{d,i}^2 + 1 - p` with p the chance that it sends anything;
    - superposition: :math:`c^2` counts with weight :math:`w_j = [1 + 4(1-\rho_j)^2(v_j-1)]^{-1}` and 1, the Poisson
      process, with the rest; :math:`v_j = 1/\sum_i (\lambda_{ij}/\lambda_j)^2`, the effective number of streams;
    - n tuples at an epoch, with mean :math:`\bar n` and squared coefficient of variation :math:`c_n^2`:
      :math:`c_a^2 = \bar n (c^2 + c_n^2)`.

    The equations are linear in :math:`c_a^2`. Exact for Jackson networks (all are 1) and for bulks of Poisson
    arrivals. Two things are ours. QNA superposes before it makes bulks, by which many bulky streams would become
    Poisson. And QNA has :math:`s_{ij} = \rho_i^2`, as if a busy operator smoothed its arrivals for everyone behind it;
    it does so for short times only, and an operator j that is busier than i lives by longer ones, on which departures
    vary as arrivals do (Whitt calls it the heavy-traffic bottleneck phenomenon).

    Reference: W. Whitt 1983, *The Queueing Network Analyzer*, Eqs. 24 to 41.
    """
    size = len(network.operators)
    rates, routing = traffic.rates_per_s, traffic.routing
    k = np.asarray(allocation, dtype=np.float64)
    service_rate = np.array([operator.service_rate_per_s for operator in network.operators])
    service_scv = np.array([operator.service_scv for operator in network.operators])
    rho = np.minimum(rates / (k * service_rate), 1.0)
    of_service = 1 + (np.maximum(service_scv, 0.2) - 1) / np.sqrt(k)
    spare = np.maximum(1 - rho, 1e-9)
    matrix, constant = np.eye(size), np.ones(size)
    bulks: list[tuple[Bulk, ...]] = []
    for j, operator in enumerate(network.operators):
        if rates[j] <= 0:
            bulks.append(())
            continue
        into = np.flatnonzero(routing[:, j] * rates > 0)
        shares = routing[into, j] * rates[into] / rates[j]
        outside = operator.arrival_rate_per_s / rates[j]
        streams = 1 / (outside**2 + float((shares**2).sum()))
        weight = 1 / (1 + 4 * (1 - rho[j]) ** 2 * (streams - 1))
        solved = []
        constant[j] = 0.0
        if outside > 0:
            mean, scv = operator.bulk_mean, operator.bulk_scv
            constant[j] += outside * mean * (weight * operator.arrival_scv + 1 - weight + scv)
            solved.append(Bulk(outside, mean, scv))
        for i, share in zip(into, shares, strict=True):
            mean_sent = routing[i, j]
            fraction = mean_sent - np.floor(mean_sent)
            chance = min(mean_sent, 1.0)
            mean = max(mean_sent, 1.0)
            scv = 0.0 if mean_sent <= 1 else fraction * (1 - fraction) / mean_sent**2
            smoothed = rho[i] ** 2 * min(1.0, spare[j] / spare[i]) ** 2
            matrix[j, i] -= share * mean * weight * chance * (1 - smoothed)
            constant[j] += share * mean * (weight * (chance * smoothed * of_service[i] + 1 - chance) + 1 - weight + scv)
            solved.append(Bulk(float(share), float(mean), float(scv)))
        bulks.append(tuple(bulk for bulk in solved if bulk.ahead > 0))
    return Variability(np.maximum(np.linalg.solve(matrix, constant), 0.0), tuple(bulks))
