"""The genetic planner at runtime: run again from time to time, with a penalty for changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import add_cores, drain_due, fit_power
from headgate.adaptation.policies.exact import at_usual_speed, posed
from headgate.adaptation.policies.reactive import Reactive
from headgate.model.dataflow import Dataflow
from headgate.planning.genetic import Genetic
from headgate.planning.layout import Layout
from headgate.planning.plan import Plan

__all__ = ["Evolved"]


@dataclass(frozen=True, slots=True)
class Evolved:
    """Evolves a plan every ``evolve_every`` decisions, for the current rates and machine speeds.

    Fitness has DYN's penalty for changes. Between, cores follow the throughput as CE's do, so that half an hour need
    not be waited for more of them.
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
        cores = now.placed.sum(axis=0)
        near = (tuple(int(way) for way in now.active), tuple(int(count) for count in cores))
        plan = Genetic(self.population, self.generations, seed=turn, near=near).plan(problem)
        if not isinstance(plan, Plan):
            add_cores(now, asked)
            return
        layout = Layout.of(problem, plan.deployment)
        for task, name in enumerate(now.shape.names):
            if name in plan.deployment.alternates:
                now.active[task] = now.shape.alternates[task].index(plan.deployment.alternates[name])
        speed = np.array([each.core_power for each in usual.classes])
        needed = (layout.count * speed[layout.kind]) @ layout.placed
        fit_power(now, needed, needed)
        add_cores(now, asked)
        drain_due(now)
