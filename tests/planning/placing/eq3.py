"""P-DEPLOY's Eq. 1 to 4 instance by instance, from the numbers of a random problem; nothing of the packers is used."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.vm_class import VmClass
from headgate.planning.known_figures import Figure
from headgate.planning.placing.profiles import OperatorProfile

Instance = tuple[str, int]


@dataclass(frozen=True)
class Small:
    """Operators in topological order, the streams between them, costs, and what one instance gets."""

    streams: Mapping[tuple[str, str], float]
    """Rows per row into the source operator."""

    c_p: Mapping[str, float]
    c_t: Mapping[str, float]
    m: Mapping[str, float]
    f: Mapping[str, float]
    copies: Mapping[str, int]
    rates: Mapping[str, float]

    @property
    def names(self) -> list[str]:
        return list(self.c_p)

    @property
    def instances(self) -> list[Instance]:
        return [(name, number) for name in self.names for number in range(self.copies[name])]

    def rows_into(self) -> dict[str, float]:
        rows = dict.fromkeys(self.names, 0.0) | dict(self.rates)
        for name in self.names:
            for (source, target), share in self.streams.items():
                if source == name:
                    rows[target] += rows[name] * share
        return rows

    def cpu(self, one: Instance, beside: Sequence[Instance]) -> float:
        """Eq. 3: an instance's cores, with who is on its machine."""
        name, rows = one[0], self.rows_into()
        p = self.copies[name]
        cores = rows[name] / p * self.c_p[name]
        fed_here = False
        for (source, target), share in self.streams.items():
            carried = rows[source] * share
            if name not in (source, target):
                continue
            other = source if name == target else target
            here = sum(each[0] == other for each in beside)
            fed_here |= name == target and here > 0
            cores += carried / (self.copies[other] * p) * (self.copies[other] - here) * self.c_t[name]
        return cores + (0.0 if fed_here else self.f[name])

    def memory(self, one: Instance) -> float:
        """Eq. 4."""
        name, rows = one[0], self.rows_into()
        out = sum(rows[source] * share for (source, _), share in self.streams.items() if source == name)
        return (rows[name] + out) * self.m[name] / self.copies[name]

    def machine(self, on: Sequence[Instance]) -> tuple[float, float]:
        return sum(self.cpu(one, on) for one in on), sum(self.memory(one) for one in on)

    def fits(self, on: Sequence[Instance], kind: VmClass, fill: float = 1.0) -> bool:
        cpu, memory = self.machine(on)
        return cpu <= kind.power * fill + 1e-7 and (not kind.memory_bytes or memory <= kind.memory_bytes * (1 + 1e-7))

    def profiles(self) -> dict[str, OperatorProfile]:
        def given(value: float) -> Figure:
            return Figure(value, Origin.GIVEN)

        return {
            name: OperatorProfile(
                name,
                name,
                given(self.c_p[name]),
                given(self.c_p[name]),
                given(self.c_t[name]),
                given(self.m[name]),
                batch_s=given(self.f[name]),
                selectivity={t: given(share) for (s, t), share in self.streams.items() if s == name},
            )
            for name in self.names
        }


def random_small(random_state: random.Random, operators: int = 4, most: int = 3, batches: bool = False) -> Small:
    """A random dataflow whose instances each fit on a machine of one core by themselves."""
    names = [f"o{number}" for number in range(random_state.randint(1, operators))]
    streams = {}
    for place, target in enumerate(names[1:], start=1):
        for source in random_state.sample(names[:place], random_state.randint(1, min(2, place))):
            streams[source, target] = random_state.choice([0.5, 1.0, 1.0, 2.0])
    sources = [name for name in names if not any(target == name for _, target in streams)]
    zero = dict.fromkeys(names, 0.0)
    one = Small(
        streams,
        zero,
        zero,
        zero,
        zero,
        {n: random_state.randint(1, most) for n in names},
        dict.fromkeys(sources, 100.0),
    )
    rows = one.rows_into()
    # Sizes are drawn for an instance, and divided by its rows.
    c_p, c_t, m = {}, {}, {}
    for name in names:
        each = rows[name] / one.copies[name]
        passing = each + sum(rows[s] * share for (s, _), share in streams.items() if s == name) / one.copies[name]
        c_p[name] = random_state.uniform(0.05, 0.6) / each
        c_t[name] = random_state.choice([0.0, random_state.uniform(0.0, 0.3)]) / passing
        m[name] = random_state.uniform(0.02, 0.7) / passing
    f = {name: random_state.uniform(0, 0.1) if batches else 0.0 for name in names}
    return Small(streams, c_p, c_t, m, f, one.copies, one.rates)


def partitions(items: Sequence[Instance]) -> Iterator[list[list[Instance]]]:
    """All ways to divide items into machines."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for place in range(len(rest)):
            yield [*rest[:place], [items[0], *rest[place]], *rest[place + 1 :]]
