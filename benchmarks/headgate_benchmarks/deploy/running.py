"""Deployments of the applications in a simulated cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from headgate.adaptation.deploying.correcting import Knowledge
from headgate.adaptation.deploying.loop import Deploying, Outcome, run_to_target
from headgate.model.cluster.catalogues import catalogue
from headgate.planning.placing.deployment_plan import DeploymentPlan, DeployOptions, DeployTarget, plan_deployment
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.parallelism import InstanceLimits
from headgate.simulation.placed import PlacedWorld, WorldFacts, drawn_truth
from headgate_benchmarks.deploy.applications import Application

__all__ = ["CLOUD", "FINER", "LATENCY_S", "OURS", "PAPER", "Deployed", "deployed", "loop_for", "planned", "world_of"]

CLOUD = catalogue("p-deployer")
LATENCY_S = 0.5
PAPER = DeployOptions(InstanceLimits(), grains=(1.0,))
"""The fewest instances, machines filled to the brim."""

FINER = DeployOptions(InstanceLimits())
"""The same, with smaller instances where that takes fewer machines."""

OURS = DeployOptions(InstanceLimits(fill=0.85))


@dataclass(frozen=True, slots=True)
class Deployed:
    """An application that was deployed to a target."""

    outcome: Outcome
    world: PlacedWorld
    target: DeployTarget

    @property
    def plan(self) -> DeploymentPlan:
        assert self.outcome.plan is not None
        return self.outcome.plan


def _rates(application: Application, rate: float) -> dict[str, float]:
    return dict.fromkeys(application.sources, rate / len(application.sources))


def loop_for(application: Application, rate: float, options: DeployOptions, under: float = 1.0) -> Deploying:
    """The loop before its first plan; ``under`` is what profiles say of costs, relative to what they are."""
    rates = _rates(application, rate)
    streams = list(application.streams)
    known = {
        name: one.corrected(cpu_s=one.cpu_s.value * under, transfer_s=one.transfer_s.value * under)
        for name, one in application.profiles.items()
    }
    return Deploying(
        DeployTarget(rates, LATENCY_S),
        partial(_load, streams, rates),
        CLOUD,
        options,
        Knowledge(known, fill=options.limits.fill),
    )


def _load(streams: list[tuple[str, str]], rates: Mapping[str, float], profiles: Mapping) -> OperatorLoads:  # type: ignore[type-arg]
    return OperatorLoads.of(streams, profiles, rates)


def world_of(application: Application, seed: int, error: float = 0.05, overhead: float = 0.1) -> PlacedWorld:
    """The cloud of an application: costs off by up to ``error``, the system's overhead, surges of windows."""
    facts = WorldFacts(overhead=overhead, surges=application.surging, seed=seed)
    return PlacedWorld(drawn_truth(application.profiles, error, seed), CLOUD, facts)


def deployed(
    application: Application,
    rate: float,
    seed: int,
    options: DeployOptions = OURS,
    under: float = 1.0,
    error: float = 0.05,
    overhead: float = 0.1,
) -> Deployed:
    """Run the loop to its end."""
    deploying = loop_for(application, rate, options, under)
    world = world_of(application, seed, error, overhead)
    return Deployed(run_to_target(deploying, world), world, deploying.target)


def planned(
    application: Application, rate: float, packer: str, options: DeployOptions = PAPER, **instances: int
) -> DeploymentPlan:
    """A plan from what is known."""
    deploying = loop_for(application, rate, options)
    chosen = replace(options, packer=packer, instances=instances)
    return plan_deployment(deploying.load, deploying.knowledge.planned(), deploying.target, CLOUD, chosen)
