"""All packers behind one protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from headgate.errors import Infeasible, unknown
from headgate.planning.placing.exact_packing import ExactPacking
from headgate.planning.placing.first_fit import FirstFit
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.placement import PackingProblem, Placement, across_per_s
from headgate.planning.placing.spreading import Metis, RoundRobin, RStorm, Spreader, fewest_machines

__all__ = ["PACKERS", "Packer", "make_packer"]


class Packer(Protocol):
    """Decides on which machine each instance runs."""

    @property
    def name(self) -> str: ...

    def place(self, problem: PackingProblem, loads: OperatorLoads) -> Placement:
        """Raises :class:`Infeasible` where there is no placement; no machine of a placement is overloaded (Eq. 3)."""


@dataclass(frozen=True, slots=True)
class _Greedy:
    name: str
    packing: FirstFit

    def place(self, problem: PackingProblem, loads: OperatorLoads) -> Placement:
        return _placement(self.name, problem, loads, lambda: (self.packing.pack(problem), None))


@dataclass(frozen=True, slots=True)
class _Proven:
    name: str
    packing: ExactPacking

    def place(self, problem: PackingProblem, loads: OperatorLoads) -> Placement:
        return _placement(self.name, problem, loads, lambda: self.packing.pack(problem))


@dataclass(frozen=True, slots=True)
class _Spread:
    name: str
    spreader: Spreader

    def place(self, problem: PackingProblem, loads: OperatorLoads) -> Placement:
        return _placement(self.name, problem, loads, lambda: (fewest_machines(self.spreader, problem), None))


def _placement(name: str, problem: PackingProblem, loads: OperatorLoads, pack: Callable[[], tuple]) -> Placement:  # type: ignore[type-arg]
    began = time.perf_counter()
    bins, bound = pack()
    most = problem.machines_max
    if most is not None and len(bins) > most:
        raise Infeasible("NO_MACHINES", f"{name} needs {len(bins)} machines, and {most} may be used; allow more")
    on = [each for _, each in bins]
    across = across_per_s(loads.source, loads.target, loads.stream_per_s, problem.items.count, on)
    placement = Placement.of(name, problem, bins, across)
    return replace(placement, bound=bound, took_s=time.perf_counter() - began)


PACKERS: Mapping[str, str] = {
    "first-fit": "P-DEPLOY's bin-centric first-fit decreasing",
    "exact": "mixed-integer program: fewest machines with a proof, for some 40 instances",
    "r-storm": "R-Storm's resource-aware scheduler",
    "metis": "balanced graph partitions with few rows between them",
    "round-robin": "Storm's default",
}


def make_packer(name: str, time_limit_s: float = 60.0, saving_weight: float = 1.0) -> Packer:
    """The packer of that name.

    >>> make_packer("first-fit").name
    'first-fit'
    """
    spreaders: dict[str, Spreader] = {each.name: each for each in (RStorm(), Metis(), RoundRobin())}
    if name in spreaders:
        return _Spread(name, spreaders[name])
    if name == "first-fit":
        return _Greedy(name, FirstFit(saving_weight))
    if name == "exact":
        return _Proven(name, ExactPacking(time_limit_s))
    raise unknown("UNKNOWN_PACKER", f"unknown packer {name[:60]!r}", name, PACKERS)
