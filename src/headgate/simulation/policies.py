"""Policies on the simulator, by name."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.adaptation.catalogue import policy_named
from headgate.adaptation.look_ahead import PolicySettings
from headgate.errors import missing_package
from headgate.model.cluster.deployment import Deployment
from headgate.simulation.perfect_forecast import SimulatedReplication
from headgate.simulation.pooled import pooled_simulated
from headgate.simulation.reshaped import Reshaped
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator, VectorPolicy

__all__ = ["Deployed", "make_policy"]


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


def make_policy(name: str, setting: Setting, ahead: PolicySettings | None = None) -> VectorPolicy:
    """A policy by name, for a setting; ``ahead`` is for those that look ahead."""
    if setting.sharing is not None:
        return pooled_simulated(name, setting, ahead)
    entry = policy_named(name)
    try:
        deployment = entry.deployment(setting)
    except ModuleNotFoundError as error:
        raise missing_package("NO_PLANNING", f"policy '{name}'", error, "planning") from None
    make_core = entry.core
    if make_core is None:
        return Deployed(deployment, name)
    settings = ahead or PolicySettings()
    return Reshaped(lambda sim, row: make_core(SimulatedReplication(sim, row), settings), deployment, name)
