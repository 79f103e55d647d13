"""What is measured of a deployment under the profiling stream, once it is stable."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headgate.planning.placing.deployment_plan import DeploymentPlan

__all__ = ["DeployWorld", "OperatorReading", "Readings"]


@dataclass(frozen=True, slots=True)
class OperatorReading:
    """An operator's instances, as measured."""

    rows_per_s: float
    """Into all of them."""

    cpu_s: float
    """CPU seconds of a row in the operator itself, from sampled rows."""

    wait_s: float
    """Seconds for which a row holds an instance without CPU."""

    busiest: float
    """Share of time for which the busiest instance is held by rows."""

    busy: float
    """The same, of the mean instance."""

    growth_per_s: float
    """Rows per second by which what waits before it grows."""

    largest_share: float = 1.0
    """Rows of the instance that gets most, over the mean; 1 where all get the same."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Ten readings or so of throughput and latency, and means of the rest."""

    throughput_per_s: tuple[float, ...]
    """Rows of the sources whose results reached every sink."""

    latency_s: tuple[float, ...]
    """Complete latency: until all that came of a row is done."""

    offered_per_s: float
    """Rows that the profiling stream delivered."""

    growth_per_s: float
    """Rows per second by which queues grow."""

    operators: Mapping[str, OperatorReading] = field(default_factory=dict)
    cpu_by_site: Mapping[str, float] = field(default_factory=dict)
    """Reference cores that each machine used."""

    lost: tuple[str, ...] = ()
    """Machines that died meanwhile."""

    @property
    def mean_throughput_per_s(self) -> float:
        return statistics.mean(self.throughput_per_s)

    @property
    def mean_latency_s(self) -> float:
        return statistics.mean(self.latency_s)


class DeployWorld(Protocol):
    """Runs plans: a simulation, or an engine."""

    def run(self, plan: DeploymentPlan) -> Readings:
        """Deploy, wait until it is stable, measure. What ran before is replaced."""
