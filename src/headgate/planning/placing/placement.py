"""Where instances run: machines with a count of each operator, and the problem that asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf
from types import MappingProxyType

import numpy as np

from headgate.errors import BadValue
from headgate.model.arrays import Ints
from headgate.model.cluster.vm_class import VmClass
from headgate.planning.placing.items import InstanceItems

__all__ = ["Bin", "PackingProblem", "Placement", "Site", "moves"]

SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Site:
    """A machine, and what is on it. What others need of it is beside what this placement puts there."""

    name: str
    vm_class: str
    instances: Mapping[str, int]
    cpu: float = 0.0
    """Cores that the instances are predicted to need."""

    capacity: float = 0.0
    """Reference cores that may be used."""

    memory_bytes: float = 0.0
    others_cpu: float = 0.0
    others_memory_bytes: float = 0.0

    def __post_init__(self) -> None:
        kept = {name: count for name, count in self.instances.items() if count}
        object.__setattr__(self, "instances", MappingProxyType(kept))
        if any(count < 0 for count in kept.values()):
            raise BadValue(f"machine '{self.name}' has fewer than no instances of an operator", "counts of at least 0")


@dataclass(frozen=True, slots=True)
class Bin:
    """A machine while it is filled."""

    name: str
    kind: VmClass
    cpu: float
    """What is left for this problem."""

    memory: float
    kept: tuple[int, ...] = ()
    """The instances that are there already, by operator; none where it is new."""


@dataclass(frozen=True, slots=True, eq=False)
class PackingProblem:
    """Items, the classes of machines, and machines that are there already."""

    items: InstanceItems
    classes: tuple[VmClass, ...]
    fill: float = 1.0
    """Share of a machine's CPU that may be used."""

    there: tuple[Site, ...] = ()
    """Machines with room: instances of this dataflow stay where they are if they can."""

    machines_max: int | None = None

    def __post_init__(self) -> None:
        if not self.classes:
            raise BadValue("there is no class of machines to pack on", "at least one")

    def new_bin(self, kind: VmClass, number: int) -> Bin:
        memory = float(kind.memory_bytes) if kind.memory_bytes else inf
        return Bin(f"m{number}", kind, kind.power * self.fill, memory, (0,) * len(self.items.names))

    def class_named(self, name: str) -> VmClass:
        match = next((each for each in self.classes if each.name == name), None)
        if match is None:
            known = ", ".join(each.name for each in self.classes)
            raise BadValue(f"a machine that is there is of class '{name[:60]}'", f"one of {known}")
        return match

    def open_bins(self) -> list[Bin]:
        """The machines that are there; of an operator that needs fewer instances than it has, some go."""
        left = dict(zip(self.items.names, self.items.count.tolist(), strict=True))
        bins = []
        for site in self.there:
            kind = self.class_named(site.vm_class)
            kept = []
            for name in self.items.names:
                stays = min(site.instances.get(name, 0), left[name])
                left[name] -= stays
                kept.append(stays)
            fresh = self.new_bin(kind, 0)
            cpu, memory = fresh.cpu - site.others_cpu, fresh.memory - site.others_memory_bytes
            bins.append(Bin(site.name, kind, cpu, memory, tuple(kept)))
        return bins

    def fits(self, one: Bin, on: Ints) -> bool:
        """Whether a machine holds so many instances of each operator, in CPU and in memory."""
        return bool(
            self.items.cpu_of(on) <= one.cpu + SLACK and self.items.memory_of(on) <= one.memory * (1 + SLACK) + SLACK
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer of a packer."""

    packer: str
    sites: tuple[Site, ...]
    price_per_h: Decimal
    across_per_s: float
    """Rows per second between machines."""

    bound: float | None = None
    """No placement has a lower price, of one class no fewer machines; none if nothing was proven."""

    took_s: float = field(default=0.0, compare=False)

    @property
    def machines(self) -> int:
        return len(self.sites)

    @classmethod
    def of(cls, packer: str, problem: PackingProblem, bins: Sequence[tuple[Bin, Ints]], across: float) -> Placement:
        """From machines and the instances on each; those that nobody uses are left out, if they are new."""
        used = [(one, on) for one, on in bins if on.any() or any(one.name == site.name for site in problem.there)]
        others = {site.name: site for site in problem.there}
        items = problem.items
        sites = []
        for one, on in used:
            before = others.get(one.name)
            sites.append(
                Site(
                    one.name,
                    one.kind.name,
                    dict(zip(items.names, on.tolist(), strict=True)),
                    items.cpu_of(on),
                    one.kind.power * problem.fill,
                    items.memory_of(on),
                    before.others_cpu if before else 0.0,
                    before.others_memory_bytes if before else 0.0,
                )
            )
        price = sum((one.kind.price_per_h for one, _ in used), Decimal())
        return cls(packer, tuple(sites), price, across)


def moves(before: Sequence[Site], after: Sequence[Site]) -> int:
    """Instances that are on a machine on which they were not before.

    >>> one, two = Site("m1", "c", {"a": 2}), Site("m2", "c", {"a": 1})
    >>> moves([one], [Site("m1", "c", {"a": 1}), two])
    1
    """
    had = {site.name: site.instances for site in before}
    return sum(
        max(count - had.get(site.name, {}).get(name, 0), 0) for site in after for name, count in site.instances.items()
    )


def across_per_s(source: Ints, target: Ints, stream: np.ndarray, count: Ints, machines: Sequence[Ints]) -> float:
    """Rows per second that leave a machine, of streams between operators."""
    within = 0.0
    for on in machines:
        share = on / count
        within += float((stream * share[source] * share[target]).sum())
    return float(stream.sum()) - within
