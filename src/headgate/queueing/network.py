"""A network of operators: rates, service, routes, and limits of the allocation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

from headgate.errors import BadValue, nearest

__all__ = ["Network", "Operator", "Route"]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: what it gets from outside, how it serves, and how many processors it may have.

    ``scv`` is the squared coefficient of variation, variance over squared mean: 1 for exponential times, 0 for
    constant ones. Tuples from outside may come in bulk; ``arrival_rate_per_s`` counts tuples, ``arrival_scv`` is that
    of the times between bulks.
    """

    name: str
    service_rate_per_s: float
    """Tuples that one processor (of speed 1) serves in a second: mu."""

    service_scv: float = 1.0
    arrival_rate_per_s: float = 0.0
    """Tuples that come from outside in a second."""

    arrival_scv: float = 1.0
    bulk_mean: float = 1.0
    """Mean number of tuples that come from outside at the same moment."""

    bulk_scv: float = 0.0
    processors_min: int = 1
    processors_max: int | None = None
    price: float = 1.0
    """Price of one processor of this operator, in any unit."""

    speeds: tuple[float, ...] = ()
    """Speeds of the processors that it would get, first to last; empty if all have speed 1."""

    def __post_init__(self) -> None:
        _check(f"service rate of '{self.name}'", self.service_rate_per_s, above=0.0)
        _check(f"arrival rate of '{self.name}'", self.arrival_rate_per_s, least=0.0)
        _check(f"service scv of '{self.name}'", self.service_scv, least=0.0)
        _check(f"arrival scv of '{self.name}'", self.arrival_scv, least=0.0)
        _check(f"mean bulk of '{self.name}'", self.bulk_mean, least=1.0)
        _check(f"bulk scv of '{self.name}'", self.bulk_scv, least=0.0)
        _check(f"price of '{self.name}'", self.price, above=0.0)
        _check(f"least processors of '{self.name}'", self.processors_min, least=1)
        if self.processors_max is not None and not self.processors_max >= self.processors_min:
            message = f"most processors of '{self.name}' is {self.processors_max}"
            raise BadValue(message, f"at least its least, {self.processors_min}")
        for speed in self.speeds:
            _check(f"speed of a processor of '{self.name}'", speed, above=0.0)

    @property
    def most(self) -> int | None:
        """The most processors that it may have; none if there is no limit."""
        limits = [limit for limit in (self.processors_max, len(self.speeds) or None) if limit is not None]
        return min(limits, default=None)


@dataclass(frozen=True, slots=True)
class Route:
    """``mean`` tuples are sent from ``source`` to ``target`` for each tuple that ``source`` has served.

    More than 1 multiplies tuples. If all that leave ``source`` add up to 1 or less, each tuple takes one of the routes
    (or leaves); otherwise every route is taken on its own.
    """

    source: str
    target: str
    mean: float = 1.0

    def __post_init__(self) -> None:
        _check(f"tuples from '{self.source}' to '{self.target}'", self.mean, least=0.0)


@dataclass(frozen=True)
class Network:
    """Operators and the routes between them: any topology, with splits, joins and loops."""

    operators: tuple[Operator, ...]
    routes: tuple[Route, ...] = ()

    def __post_init__(self) -> None:
        if not self.operators:
            raise BadValue("a network without operators", "at least one")
        names = [operator.name for operator in self.operators]
        for name in names:
            if names.count(name) > 1:
                raise BadValue(f"two operators are called '{name}'", "each name once")
        for route in self.routes:
            for end in (route.source, route.target):
                if end not in self.index:
                    raise BadValue(f"a route has an end at '{end}', which is not there", None, nearest(end, names))
        pairs = [(route.source, route.target) for route in self.routes]
        for pair in pairs:
            if pairs.count(pair) > 1:
                raise BadValue(f"two routes from '{pair[0]}' to '{pair[1]}'", "one, with the sum of their means")

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The place of each operator by its name."""
        return {operator.name: place for place, operator in enumerate(self.operators)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(operator.name for operator in self.operators)

    def with_share(self, share: float) -> Network:
        """The same network with only a share of what comes from outside."""
        operators = tuple(replace(each, arrival_rate_per_s=share * each.arrival_rate_per_s) for each in self.operators)
        return Network(operators, self.routes)

    @property
    def external_rate_per_s(self) -> float:
        """lambda_0: tuples that enter from outside in a second."""
        return sum(operator.arrival_rate_per_s for operator in self.operators)

    @cached_property
    def chooses(self) -> Mapping[str, bool]:
        """Whether a tuple served by an operator takes one of its routes, rather than every one on its own."""
        sent: dict[str, float] = dict.fromkeys(self.names, 0.0)
        for route in self.routes:
            sent[route.source] += route.mean
        return {name: total <= 1 + 1e-9 for name, total in sent.items()}


def _check(what: str, value: float, least: float | None = None, above: float | None = None) -> None:
    fits = isfinite(value) and (least is None or value >= least) and (above is None or value > above)
    if not fits:
        wanted = f"a finite number above {above:g}" if above is not None else f"a finite number, at least {least:g}"
        raise BadValue(f"{what} is {value:g}", wanted)
