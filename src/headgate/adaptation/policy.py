"""What decides: from what was observed to what is to be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headgate.adaptation.cluster import Action, Cluster
from headgate.model.cluster.observation import Observation

__all__ = ["Policy", "control"]


class Policy(Protocol):
    """Decides from observations alone. It may remember those it has seen; it reads no clock and touches nothing."""

    name: str

    def decide(self, observed: Observation) -> Sequence[Action]:
        """What to do now; nothing if all is well."""


def control(cluster: Cluster, policy: Policy, wait: Callable[[], bool]) -> None:
    """Observe, decide, act, until ``wait``, which lets time pass, says that it is over."""
    while wait():
        actions = policy.decide(cluster.observe())
        if actions:
            cluster.apply(actions)
