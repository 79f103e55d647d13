"""Errors for infeasible requests: how many processors are missing, and which operators need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import Infeasible
from headgate.queueing.percentile import gamma_percentile, sojourn_moments
from headgate.queueing.station import Station, sojourn_curve

if TYPE_CHECKING:
    from headgate.queueing.sizing import SizingProblem

__all__ = ["check_processors", "least_allocation", "unreachable"]


def least_allocation(stations: Sequence[Station]) -> list[int]:
    """The fewest processors with which every operator keeps up; raises where its limit is lower."""
    least = [station.least for station in stations]
    for station, needed in zip(stations, least, strict=True):
        if station.processors_max is not None and needed > station.processors_max:
            load = station.arrival_rate / station.service_rate
            raise Infeasible(
                "TOO_FEW_PROCESSORS",
                f"'{station.name}' needs {needed} processors to keep up ({station.arrival_rate:g} tuples/s keep "
                f"{load:.3g} of them busy) and may have at most {station.processors_max}",
                {"operator": station.name, "needed": needed, "given": station.processors_max},
            )
    return least


def check_processors(stations: Sequence[Station], least: Sequence[int], given: int) -> None:
    """Raise unless ``given`` processors are enough to keep up.

    >>> check_processors([Station("read", 12, 4), Station("detect", 16, 2)], [4, 9], 12)
    Traceback (most recent call last):
        ...
    headgate.errors.Infeasible: needs 13 processors, 12 given; 'detect' alone needs 9
    """
    needed = sum(least)
    if needed <= given:
        return
    most = max(range(len(stations)), key=lambda i: least[i])
    alone = f"; '{stations[most].name}' alone needs {least[most]}" if len(stations) > 1 else ""
    raise Infeasible(
        "TOO_FEW_PROCESSORS",
        f"needs {needed} processors, {given} given{alone}",
        {"needed": needed, "given": given, "least": {s.name: k for s, k in zip(stations, least, strict=True)}},
    )


def unreachable(
    problem: SizingProblem, allocation: Sequence[int], latency_s: float, percentile: float | None
) -> Infeasible:
    """The error for an unreachable latency: service alone takes longer, or the limits are too low."""
    what = "mean latency" if percentile is None else f"latency at the {100 * percentile:g}th percentile"
    curves = [sojourn_curve(s, problem.model, k) for s, k in zip(problem.stations, allocation, strict=True)]
    means = np.array([float(mean[0]) for mean, _ in curves])
    variances = np.array([float(variance[0]) for _, variance in curves])
    visits = np.array(problem.visits)
    mean, variance = sojourn_moments(visits, problem.covariance, means, variances)
    best = mean if percentile is None else float(gamma_percentile(mean, variance, percentile))
    shares = visits * means
    slowest = int(np.argmax(shares))
    station = problem.stations[slowest]
    limited = [s.name for s, k in zip(problem.stations, allocation, strict=True) if s.processors_max == k]
    if limited:
        named = ", ".join(f"'{name}'" for name in limited[:3])
        why = f"with as many processors as the limits allow (of {named}) it is {best:.4g} s"
    else:
        why = f"with any number of processors it is at least {best:.4g} s"
    return Infeasible(
        "LATENCY_NOT_REACHABLE",
        f"a {what} of {latency_s:g} s cannot be reached: {why}, {shares[slowest]:.4g} s of that at '{station.name}'",
        {"latency_s": latency_s, "best_s": best, "operator": station.name, "percentile": percentile},
    )
