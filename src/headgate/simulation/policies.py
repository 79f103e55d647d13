"""How policies meet the simulator: one deployment for all replications, or a policy of its own for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.adaptation.policy import Policy
from headgate.model.cluster.deployment import Deployment
from headgate.simulation.cluster import SimulatedCluster
from headgate.simulation.simulator import Simulator

__all__ = ["Deployed", "EachReplication"]


@dataclass(slots=True)
class Deployed:
    """One deployment in all replications, which stays as it is."""

    deployment: Deployment
    name: str = "static"
    every: int | None = None

    def begin(self, simulator: Simulator) -> None:
        simulator.deploy(self.deployment)

    def decide(self, simulator: Simulator) -> None:
        del simulator


@dataclass(slots=True)
class EachReplication:
    """A policy of its own for each replication, on a cluster of its own: the same policy that runs on Spark."""

    make: Callable[[], Policy]
    every: int | None = 1
    name: str = ""
    _loops: list[tuple[SimulatedCluster, Policy]] = field(default_factory=list)

    def begin(self, simulator: Simulator) -> None:
        rows = range(simulator.setting.replications)
        self._loops = [(SimulatedCluster(simulator, row), self.make()) for row in rows]
        self.name = self.name or self._loops[0][1].name
        self.decide(simulator)

    def decide(self, simulator: Simulator) -> None:
        del simulator
        for cluster, policy in self._loops:
            actions = policy.decide(cluster.observe())
            if actions:
                cluster.apply(actions)
