"""Plans, and answers where no plan is feasible, each with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headgate.model.cluster.deployment import Deployment
from headgate.planning.problem import Problem

__all__ = ["Answer", "NoPlan", "Plan", "Planner", "Relaxation", "better"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Alternates and machines, with the predicted steady state."""

    planner: str
    deployment: Deployment = field(repr=False)
    omega: float
    gamma: float
    cost_per_h: float
    theta: float
    took_s: float = field(compare=False, default=0.0)
    bound: float | None = None
    """No plan has more profit than this; none where nothing was proven."""

    explanation: tuple[str, ...] = field(default=(), repr=False)
    """Why these alternates and machines, in sentences."""

    @property
    def gap(self) -> float | None:
        """How much more profit the best plan may have, in units of value; none where nothing was proven."""
        return None if self.bound is None else max(self.bound - self.theta, 0.0)

    @property
    def cores(self) -> Mapping[str, int]:
        return self.deployment.cores

    @property
    def machines(self) -> Mapping[str, int]:
        """Machines by class."""
        counts: dict[str, int] = {}
        for machine in self.deployment.machines:
            counts[machine.vm_class] = counts.get(machine.vm_class, 0) + 1
        return dict(sorted(counts.items()))


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A relaxed limit that makes a plan feasible: which one, from what to what, and a sentence."""

    demand: str
    asked: float
    possible: float
    sentence: str

    @property
    def step(self) -> float:
        """How far it is, relative to what was asked."""
        return abs(self.possible - self.asked) / abs(self.asked) if self.asked else abs(self.possible)


@dataclass(frozen=True, slots=True)
class NoPlan:
    """No plan is feasible: the reason, and which limits to relax, the smallest step first."""

    planner: str
    condition: str
    reason: str
    relaxations: tuple[Relaxation, ...] = ()
    took_s: float = field(compare=False, default=0.0)

    @property
    def sentence(self) -> str:
        """The reason and the nearest relaxation."""
        return self.reason + (f"; {self.relaxations[0].sentence}" if self.relaxations else "")


Answer = Plan | NoPlan


class Planner(Protocol):
    """Makes plans."""

    @property
    def name(self) -> str:
        """The name of the policy."""

    def plan(self, problem: Problem) -> Answer:
        """A plan for the problem, or why there is none."""


def better(one: Answer | None, other: Answer | None) -> Answer | None:
    """The plan of more profit; of equal ones the cheaper, and any plan before none."""
    if not isinstance(other, Plan):
        return one if one is not None else other
    if not isinstance(one, Plan):
        return other
    return one if (one.theta, -one.cost_per_h) >= (other.theta, -other.cost_per_h) else other
