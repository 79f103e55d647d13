"""What a model says of a given allocation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.queueing.network import Network
from headgate.queueing.percentile import gamma_percentile, sojourn_moments
from headgate.queueing.station import StationModel, make_stations, sojourn_curve
from headgate.queueing.traffic import solve_traffic, visit_covariance

__all__ = ["NetworkPrediction", "OperatorPrediction", "predict"]


@dataclass(frozen=True, slots=True)
class OperatorPrediction:
    """One operator under an allocation."""

    name: str
    processors: int
    arrival_rate_per_s: float
    utilisation: float
    visits: float
    """How often a tuple from outside comes by."""

    sojourn_s: float
    """Mean wait and service of a visit; infinite if it cannot keep up."""


@dataclass(frozen=True, slots=True)
class NetworkPrediction:
    """A network under an allocation: times in seconds."""

    model: StationModel
    operators: tuple[OperatorPrediction, ...]
    mean_s: float
    variance_s2: float

    def percentile_s(self, p: float) -> float:
        return float(gamma_percentile(self.mean_s, self.variance_s2, p))

    @property
    def processors(self) -> int:
        return sum(operator.processors for operator in self.operators)


def predict(network: Network, allocation: Sequence[int], model: StationModel = StationModel.MMK) -> NetworkPrediction:
    r"""Predict the sojourn of tuples from outside.

    .. math:: E[T] = \frac{1}{\lambda_0} \sum_i \lambda_i E[T_i](k_i)

    T adds up the sojourns of all tuples that a tuple from outside becomes, so where tuples are copied and served side
    by side it is more than the time until the last of them is done. Infinite when an operator cannot keep up.

    >>> from headgate.queueing.network import Operator, Route
    >>> chain = Network((Operator("a", 4.0, arrival_rate_per_s=3.0), Operator("b", 4.0)), (Route("a", "b"),))
    >>> found = predict(chain, [1, 1])
    >>> round(found.mean_s, 6), round(found.percentile_s(0.95), 4)
    (2.0, 4.7439)

    Reference: DRS (Fu et al. 2017), Eq. 4.
    """
    traffic = solve_traffic(network)
    stations = make_stations(network, model, allocation, traffic)
    curves = [sojourn_curve(station, model, k) for station, k in zip(stations, allocation, strict=True)]
    means = np.array([mean[0] for mean, _ in curves])
    variances = np.array([variance[0] for _, variance in curves])
    unstable = bool(np.any(~np.isfinite(means) & (traffic.rates_per_s > 0)))
    mean, variance = (float("inf"),) * 2
    if not unstable:
        mean, variance = sojourn_moments(traffic.visits, visit_covariance(network, traffic), means, variances)
    operators = tuple(
        OperatorPrediction(
            station.name,
            int(k),
            station.arrival_rate,
            station.arrival_rate / (station.service_rate * (sum(station.speeds[:k]) or k)),
            float(visits),
            float(sojourn),
        )
        for station, k, visits, sojourn in zip(stations, allocation, traffic.visits, means, strict=True)
    )
    return NetworkPrediction(model, operators, mean, variance)
