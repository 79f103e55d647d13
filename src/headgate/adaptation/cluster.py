"""The interface between policies and a cluster: actions, and the protocol that observes and applies them.

A policy sees observations and answers with actions. What observes and acts is a :class:`Cluster`: Spark, the simulator,
or a fake in a test; the same policy runs on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.model.cluster.observation import Observation
from headgate.model.names import Signature

__all__ = [
    "AcquireMachine",
    "Action",
    "Cluster",
    "PlaceInstances",
    "ReleaseMachine",
    "SetPartitions",
    "SwitchAlternate",
]


@dataclass(frozen=True, slots=True)
class SwitchAlternate:
    """Make another alternate of a task the active one, for all dataflows that share the task."""

    task: Signature
    alternate: str


@dataclass(frozen=True, slots=True)
class SetPartitions:
    """Set the number of processors of a task; ``None`` takes that of its upstream task."""

    task: Signature
    partitions: int | None


@dataclass(frozen=True, slots=True)
class AcquireMachine:
    """Start one more machine of a VM class."""

    vm_class: str
    machine: str | None = None
    """What actions beside this one call it when they place instances on it; afterwards it has the cluster's name."""


@dataclass(frozen=True, slots=True)
class ReleaseMachine:
    """Stop a machine after it has finished its current work."""

    machine: str


@dataclass(frozen=True, slots=True)
class PlaceInstances:
    """Give a task a number of dedicated cores on a machine; 0 removes it. For clusters that assign cores to tasks."""

    task: Signature
    machine: str
    cores: int


Action = SwitchAlternate | SetPartitions | AcquireMachine | ReleaseMachine | PlaceInstances


class Cluster(Protocol):
    """Where dataflows run."""

    def observe(self) -> Observation:
        """What was measured since the last call, or since the beginning."""

    def apply(self, actions: Sequence[Action]) -> None:
        """Do all of some actions or, if one cannot be done, none, and say why."""
