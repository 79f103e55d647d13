"""Random queueing networks for the benchmarks and tests of the models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.traffic import solve_traffic
from headgate_benchmarks.event_simulator.distribution import Distribution

__all__ = ["Workload", "general_network", "jackson_network"]


@dataclass(frozen=True, slots=True)
class Workload:
    """A network, its processors, and the distributions to simulate it with."""

    network: Network
    allocation: tuple[int, ...]
    service: Mapping[str, Distribution]
    bulks: Mapping[str, Distribution]


def jackson_network(
    rng: np.random.Generator, utilisation: tuple[float, float] = (0.3, 0.95), meet_again: bool = False
) -> Workload:
    """Poisson arrivals, exponential service; 3 to 7 operators with joins, loops, and splits that choose or copy.

    A split that copies sends a tuple to each of two operators, so that more tuples leave than came. Copies go ways of
    their own; with ``meet_again`` they may come to one operator later, and then arrivals there are not independent,
    which no Jackson network allows.
    """
    count = int(rng.integers(3, 8))
    names = [f"o{place}" for place in range(count)]
    routes: dict[tuple[str, str], float] = {}
    copies: list[str] = []
    for place in range(count - 1):
        later = rng.permutation(np.arange(place + 1, count))[: 1 + int(rng.random() < 0.5)]
        if len(later) == 2 and meet_again and rng.random() < 0.4:
            means = [1.0, 1.0]
        else:
            share = float(rng.uniform(0.2, 0.8)) if len(later) == 2 else 1.0
            means = [share, 1 - share][: len(later)]
        routes |= {(names[place], names[target]): mean for target, mean in zip(later, means, strict=True)}
        if means == [1.0] and rng.random() < 0.4:
            copies.append(names[place])
    for place in range(1, count):
        if names[place] not in copies and rng.random() < 0.35:
            # Back to itself or to an earlier one; what goes back is taken from what goes on.
            back = names[int(rng.integers(max(place - 2, 0), place + 1))]
            chance = float(rng.uniform(0.1, 0.4))
            onward = {pair: mean for pair, mean in routes.items() if pair[0] == names[place]}
            if sum(onward.values()) <= 1 + 1e-9:
                routes |= {pair: mean * (1 - chance) for pair, mean in onward.items()}
                routes[names[place], back] = chance
    fed = {target for source, target in routes if source < target}
    rates = {name: float(rng.uniform(1, 10)) for name in names if name not in fed or rng.random() < 0.2}
    routes |= {(name, f"{name}_copy"): 1.0 for name in copies}
    names += [f"{name}_copy" for name in copies]
    draft = Network(
        tuple(Operator(name, 1.0, arrival_rate_per_s=rates.get(name, 0.0)) for name in names),
        tuple(Route(source, target, mean) for (source, target), mean in routes.items()),
    )
    allocation = tuple(int(k) for k in rng.integers(1, 9, len(names)))
    return Workload(_loaded(rng, draft, allocation, utilisation), allocation, {}, {})


def general_network(rng: np.random.Generator, utilisation: tuple[float, float] = (0.3, 0.95)) -> Workload:
    """Bulks from outside, gamma, lognormal or uniform service, splits that choose or multiply; 2 to 5 operators."""
    count = int(rng.integers(2, 6))
    names = [f"o{place}" for place in range(count)]
    routes = []
    for place in range(count - 1):
        kind = rng.random()
        if kind < 0.6 or place + 2 >= count:
            routes.append(Route(names[place], names[place + 1], float(rng.choice([1.0, 1.0, 0.6, 2.0, 3.0]))))
        else:
            share = float(rng.uniform(0.3, 0.7))
            routes += [
                Route(names[place], names[place + 1], share),
                Route(names[place], names[place + 2], 1 - share),
            ]
    if rng.random() < 0.4:
        routes.append(Route(names[-1], names[-1], float(rng.uniform(0.1, 0.3))))
    bulks = {
        names[0]: [Distribution.constant(1), Distribution.constant(3), Distribution.geometric(4.0)][rng.integers(3)]
    }
    service, operators = {}, []
    for place, name in enumerate(names):
        scv = float(rng.uniform(0.2, 2.0))
        shapes = [Distribution.gamma(1.0, scv), Distribution.lognormal(1.0, scv), Distribution.uniform(0.0, 2.0)]
        service[name] = shapes[rng.integers(3)]
        operators.append(Operator(name, 1.0, service[name].scv))
        if place == 0:
            size = bulks[name]
            arrival_scv = float(rng.choice([0.5, 1.0, 1.0, 2.0]))
            operators[0] = replace(
                operators[0],
                arrival_rate_per_s=float(rng.uniform(1, 10)),
                arrival_scv=arrival_scv,
                bulk_mean=size.mean,
                bulk_scv=size.scv,
            )
    allocation = tuple(int(k) for k in rng.integers(1, 9, count))
    network = _loaded(rng, Network(tuple(operators), tuple(routes)), allocation, utilisation)
    scaled = {
        operator.name: _scaled(service[operator.name], 1 / operator.service_rate_per_s)
        for operator in network.operators
    }
    return Workload(network, allocation, scaled, bulks)


def _loaded(
    rng: np.random.Generator, draft: Network, allocation: tuple[int, ...], utilisation: tuple[float, float]
) -> Network:
    """The network with service rates that give every operator a utilisation drawn from a range."""
    rates = solve_traffic(draft).rates_per_s
    operators = tuple(
        replace(operator, service_rate_per_s=float(rate / (k * rng.uniform(*utilisation))))
        for operator, rate, k in zip(draft.operators, rates, allocation, strict=True)
    )
    return Network(operators, draft.routes)


def _scaled(distribution: Distribution, mean: float) -> Distribution:
    if distribution.kind.name == "GAMMA":
        return Distribution.gamma(mean, distribution.scv)
    if distribution.kind.name == "LOGNORMAL":
        return Distribution.lognormal(mean, distribution.scv)
    return Distribution.uniform(0.0, 2 * mean)
