"""A queueing network to be simulated, and what was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.errors import Infeasible
from headgate.queueing.network import Network
from headgate.queueing.traffic import solve_traffic
from headgate_benchmarks.event_simulator.distribution import Distribution

__all__ = ["Simulated", "simulate"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a simulation saw of the tuples that came after its warm-up."""

    names: tuple[str, ...]
    sojourns_s: Floats = field(repr=False)
    """For each tuple from outside, the sojourns of all tuples that it became, added up: T of the model."""

    spans_s: Floats = field(repr=False)
    """For each tuple from outside, how long it took until the last tuple that it became was served."""

    operator_visits: Floats
    operator_waits_s: Floats
    """Mean wait per visit."""

    operator_sojourns_s: Floats
    """Mean wait and service per visit."""

    visits: int
    """All services, measured or not: what the simulator's speed is counted in."""

    simulated_s: float

    @property
    def mean_s(self) -> float:
        """E[T]."""
        return float(self.sojourns_s.mean())

    def percentile_s(self, p: float) -> float:
        return float(np.quantile(self.sojourns_s, p))

    @property
    def error_s(self) -> float:
        """Half the width of the 95 % confidence interval of the mean, by means of 20 batches (Student's t, 19 degrees).

        Sojourns of neighbours depend on each other; the means of long batches of them hardly do.
        """
        means = [part.mean() for part in np.array_split(self.sojourns_s, 20)]
        return float(2.093 * np.std(means, ddof=1) / 20**0.5)


def simulate(
    network: Network,
    allocation: Sequence[int],
    tuples: int,
    seed: int,
    *,
    warm_up: int | None = None,
    service: Mapping[str, Distribution] | None = None,
    arrivals: Mapping[str, Distribution] | None = None,
    bulks: Mapping[str, Distribution] | None = None,
    most_in_system: int = 20_000_000,
) -> Simulated:
    """Simulate a network with ``allocation[i]`` processors at operator i, first come first served.

    Measures ``tuples`` tuples from outside, after ``warm_up`` others (a fifth as many if not given). Distributions that
    are not given follow from the operators' moments: constant, gamma, exponential or hyperexponential for times,
    constant or geometric for bulks. One seed gives one result.

    >>> from headgate.queueing.network import Operator
    >>> seen = simulate(Network((Operator("only", 4.0, arrival_rate_per_s=3.0),)), [1], 200_000, seed=1)
    >>> abs(seen.mean_s - 1.0) < 0.05  # M/M/1: 1 / (mu - lambda)
    True
    """
    from headgate_benchmarks.event_simulator.event_loop import run_events

    solve_traffic(network)  # refuses what would never come to an end
    tables = _Tables()
    chosen_service, chosen_arrivals, chosen_bulks = (dict(given or {}) for given in (service, arrivals, bulks))
    rows: dict[str, list[int]] = {"service": [], "arrival": [], "bulk": []}
    for operator in network.operators:
        name = operator.name
        served = chosen_service.get(name) or Distribution.of_moments(
            1 / operator.service_rate_per_s, operator.service_scv
        )
        rows["service"].append(tables.add(served))
        if operator.arrival_rate_per_s <= 0:
            rows["arrival"].append(-1)
            rows["bulk"].append(-1)
            continue
        default = Distribution.constant(1) if operator.bulk_mean == 1 else Distribution.geometric(operator.bulk_mean)
        if operator.bulk_scv == 0 and float(operator.bulk_mean).is_integer():
            default = Distribution.constant(operator.bulk_mean)
        size = chosen_bulks.get(name, default)
        gap = chosen_arrivals.get(name) or Distribution.of_moments(
            size.mean / operator.arrival_rate_per_s, operator.arrival_scv
        )
        rows["arrival"].append(tables.add(gap))
        rows["bulk"].append(tables.add(size))
    speed_begin, speeds = [0], []
    for operator, processors in zip(network.operators, allocation, strict=True):
        speeds += sorted(operator.speeds[:processors], reverse=True)
        speed_begin.append(len(speeds))
    begin, targets, means = [0], [], []
    for name in network.names:
        leaving = [route for route in network.routes if route.source == name and route.mean > 0]
        targets += [network.index[route.target] for route in leaving]
        means += [route.mean for route in leaving]
        begin.append(len(targets))
    count = len(network.operators)
    sums, spans = np.zeros(tuples), np.zeros(tuples)
    visits, waits, sojourns = np.zeros(count), np.zeros(count), np.zeros(count)
    done, now, served_visits = run_events(
        np.random.default_rng(seed),
        np.array(allocation, dtype=np.int64),
        np.array(speeds, dtype=np.float64),
        np.array(speed_begin, dtype=np.int64),
        np.array(rows["service"], dtype=np.int64),
        np.array(rows["arrival"], dtype=np.int64),
        np.array(rows["bulk"], dtype=np.int64),
        np.array(tables.parameters),
        np.array(tables.values or [0.0]),
        np.array(begin, dtype=np.int64),
        np.array(targets, dtype=np.int64),
        np.array(means, dtype=np.float64),
        np.array([network.chooses[name] for name in network.names]),
        tuples // 5 if warm_up is None else warm_up,
        tuples,
        most_in_system,
        sums,
        spans,
        visits,
        waits,
        sojourns,
    )
    if done < tuples:
        reason = f"more than {most_in_system:,} tuples were waiting after {now:g} s: these processors cannot keep up"
        raise Infeasible("OVERLOADED", reason, {"in_system": most_in_system})
    seen = np.maximum(visits, 1)
    return Simulated(network.names, sums, spans, visits, waits / seen, sojourns / seen, int(served_visits), float(now))


class _Tables:
    """The parameters of distributions as rows of numbers, and all values of empirical ones in one array."""

    def __init__(self) -> None:
        self.parameters: list[tuple[float, ...]] = []
        self.values: list[float] = []

    def add(self, distribution: Distribution) -> int:
        begin, count = len(self.values), len(distribution.values)
        self.values += distribution.values
        self.parameters.append((float(distribution.kind), distribution.first, distribution.second, begin, count))
        return len(self.parameters) - 1
