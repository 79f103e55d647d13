"""An operator as the formulas see it, once the traffic through its network is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import floor

import numpy as np
import numpy.typing as npt

from headgate.errors import Infeasible
from headgate.queueing import ggk, heterogeneous, mmk
from headgate.queueing.ggk import Bulk
from headgate.queueing.network import Network
from headgate.queueing.traffic import Traffic, solve_traffic
from headgate.queueing.variability import solve_variability

__all__ = ["Station", "StationModel", "make_stations", "sojourn_curve"]

Floats = npt.NDArray[np.float64]


class StationModel(StrEnum):
    """How an operator is modelled."""

    MMK = "mmk"
    """M/M/k: exponential times; needs rates only."""

    GGK = "ggk"
    """GI/G/k: first two moments of arrivals and service, bulks."""

    GGK_REFINED = "ggk-refined"
    """GI/G/k with Whitt's refinement for few processors and light traffic."""


@dataclass(frozen=True, slots=True)
class Station:
    """One operator with its arrivals; rates in tuples/s."""

    name: str
    arrival_rate: float
    service_rate: float
    arrival_scv: float = 1.0
    service_scv: float = 1.0
    bulks: tuple[Bulk, ...] = ()
    processors_min: int = 1
    processors_max: int | None = None
    price: float = 1.0
    speeds: tuple[float, ...] = ()

    @property
    def least(self) -> int:
        """The fewest processors with which it keeps up, k > lambda/mu, and that it may have.

        >>> Station("detect", 9.0, 3.0).least
        4
        """
        if not self.speeds:
            return max(self.processors_min, floor(self.arrival_rate / self.service_rate) + 1)
        needed, capacity = 0, 0.0
        for speed in self.speeds:
            needed, capacity = needed + 1, capacity + speed * self.service_rate
            if capacity > self.arrival_rate:
                return max(self.processors_min, needed)
        message = f"'{self.name}' gets {self.arrival_rate:g} tuples/s; its {needed} processors serve {capacity:g}"
        raise Infeasible("TOO_FEW_PROCESSORS", message, {"operator": self.name})


def make_stations(
    network: Network, model: StationModel, allocation: Sequence[int] | None = None, traffic: Traffic | None = None
) -> tuple[Station, ...]:
    """The stations of a network under a model.

    For GI/G/k the variability of arrivals depends, weakly, on the processors; it is taken at ``allocation``, or at the
    least allocation that keeps up with a processor to spare. The paper's Assumption 1 is that it does not change when
    processors do.
    """
    traffic = traffic or solve_traffic(network)
    plain = [
        Station(
            operator.name,
            float(rate),
            operator.service_rate_per_s,
            1.0,
            1.0,
            (),
            operator.processors_min,
            operator.most,
            operator.price,
            operator.speeds,
        )
        for operator, rate in zip(network.operators, traffic.rates_per_s, strict=True)
    ]
    if model is StationModel.MMK:
        return tuple(plain)
    at = [station.least + 1 for station in plain] if allocation is None else allocation
    spread = solve_variability(network, traffic, at)
    return tuple(
        Station(
            station.name,
            station.arrival_rate,
            station.service_rate,
            float(scv),
            operator.service_scv,
            bulks,
            station.processors_min,
            station.processors_max,
            station.price,
            station.speeds,
        )
        for station, operator, scv, bulks in zip(
            plain, network.operators, spread.arrival_scv, spread.bulks, strict=True
        )
    )


def sojourn_curve(station: Station, model: StationModel, k: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Mean (s) and variance (s²) of one visit's sojourn for each number of processors in ``k``.

    >>> means, _ = sojourn_curve(Station("match", 3.0, 4.0), StationModel.MMK, [1, 2])
    >>> means.round(4).tolist()
    [1.0, 0.2909]
    """
    many = np.atleast_1d(np.asarray(k, dtype=np.int64))
    lam, mu, cs2 = station.arrival_rate, station.service_rate, station.service_scv
    if station.speeds:
        mixed = [heterogeneous.mixed_speeds(station.speeds[:count], lam, mu) for count in many]
        scale = (station.arrival_scv + cs2) / 2
        waits = scale * np.array([each.wait_mean_s for each in mixed])
        service = np.array([each.service_mean_s for each in mixed])
        chance = np.array([max(each.wait_probability, 1e-300) for each in mixed])
        variance = np.where(np.isfinite(waits), waits * waits * (2 - chance) / chance, np.inf) + cs2 * service**2
        return waits + service, variance
    if model is StationModel.MMK:
        return mmk.wait_mean(many, lam, mu) + 1 / mu, mmk.sojourn_variance(many, lam, mu)
    waits = ggk.wait_mean(many, lam, mu, station.arrival_scv, cs2, model is StationModel.GGK_REFINED)
    own = ggk.bulk_delay(many, lam, mu, station.bulks)
    # The wait for tuples of one's own bulk is taken to be about exponential too.
    variance = ggk.wait_variance(many, lam, mu, waits) + own**2 + cs2 / mu**2
    return waits + own + 1 / mu, variance
