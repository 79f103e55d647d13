"""The protocol of policies, and the control loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headgate.adaptation.cluster import Action, Cluster
from headgate.model.cluster.observation import Observation

__all__ = ["Policy", "control"]


class Policy(Protocol):
    """Decides from observations only. It may keep earlier ones; it reads no clock and has no side effects."""

    name: str

    def decide(self, observed: Observation) -> Sequence[Action]:
        """The actions to take now; none if nothing needs to change."""


def control(cluster: Cluster, policy: Policy, wait: Callable[[], bool]) -> None:
    """Observe, decide, act, as long as ``wait``, which lets time pass, returns true."""
    while wait():
        actions = policy.decide(cluster.observe())
        if actions:
            cluster.apply(actions)
