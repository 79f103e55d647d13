"""The genetic planner at runtime: run again from time to time, with a penalty for changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import add_cores, drain_due
from headgate.adaptation.policies.exact import at_usual_speed, posed
from headgate.adaptation.policies.reactive import Reactive
from headgate.model.dataflow import Dataflow
from headgate.planning.genetic import Genetic, RunningDeployment

__all__ = ["Evolved"]


@dataclass(frozen=True, slots=True)
class Evolved:
    """Evolves a plan every ``evolve_every`` decisions, for the current rates and machine speeds.

    Fitness has DYN's penalty for changes. Both strands of the fittest are applied: alternates, and what each machine
    runs. Between, cores follow the throughput as CE's do, so that half an hour need not be waited for more of them.
    """

    dataflow: Dataflow
    evolve_every: int = 15
    population: int = 40
    generations: int = 80
    margin: float = 0.025
    name: str = "ga"

    def decide(self, now: ClusterView, turn: int) -> None:
        asked = now.aim(self.margin)
        if turn % self.evolve_every:
            Reactive(alternates_every=1_000_000, margin=self.margin).decide(now, turn)
            return
        usual = replace(now.cloud, classes=tuple(at_usual_speed(each, now) for each in now.cloud.classes))
        problem = posed(self.dataflow, now, usual, asked)
        running = RunningDeployment(now.active.copy(), now.kind.copy(), now.placed.copy())
        plan = Genetic(self.population, self.generations, seed=turn).redeployed(problem, running)
        now.active[:] = plan.active
        for kind in plan.kind[now.held :].tolist():
            now.open(kind, 1, float(usual.classes[kind].core_power))
        now.placed[:] = plan.placed
        add_cores(now, asked)
        drain_due(now)
