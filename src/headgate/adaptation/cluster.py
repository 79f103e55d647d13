"""The protocol of a cluster, which measures and acts: Spark, the simulator, or a fake in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.adaptation.actions import Action
from headgate.model.cluster.observation import Observation

__all__ = ["Cluster"]


class Cluster(Protocol):
    """Where dataflows run."""

    def observe(self) -> Observation:
        """What was measured since the last call, or since the beginning."""

    def apply(self, actions: Sequence[Action]) -> None:
        """Do all of some actions or, if one cannot be done, none, and say why."""
