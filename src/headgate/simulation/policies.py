"""Policies on the simulator: one deployment for all replications, or a policy of its own for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.adaptation.catalogue import POLICIES, RENAMED_POLICIES
from headgate.adaptation.look_ahead import LookAheadSettings
from headgate.adaptation.policy import Policy
from headgate.errors import InputError, missing_package, unknown
from headgate.model.cluster.deployment import Deployment
from headgate.simulation.cluster import SimulatedCluster
from headgate.simulation.perfect_forecast import SimulatedReplication
from headgate.simulation.reshaped import Reshaped
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator, VectorPolicy

__all__ = ["Deployed", "EachReplication", "make_policy"]


@dataclass(slots=True)
class Deployed:
    """One fixed deployment in all replications."""

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


def make_policy(name: str, setting: Setting, ahead: LookAheadSettings | None = None) -> VectorPolicy:
    """A policy by name, for a setting; ``ahead`` is for those that look ahead."""
    entry = POLICIES.get(name)
    if name in RENAMED_POLICIES:
        raise InputError("RENAMED_POLICY", f"policy '{name}' is now '{RENAMED_POLICIES[name]}'")
    if entry is None:
        raise unknown("UNKNOWN_POLICY", f"unknown policy {name[:60]!r}", name, POLICIES)
    try:
        deployment = entry.deployment(setting)
    except ModuleNotFoundError as error:
        raise missing_package("NO_PLANNING", f"policy '{name}'", error, "planning") from None
    make_core = entry.core
    if make_core is None:
        return Deployed(deployment, name)
    settings = ahead or LookAheadSettings()
    return Reshaped(lambda sim, row: make_core(SimulatedReplication(sim, row), settings), deployment, name)
