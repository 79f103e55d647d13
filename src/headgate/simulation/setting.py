"""The setting of a simulation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from headgate.capacity.sharing import Sharing
from headgate.errors import BadValue
from headgate.model.arrays import Floats, Shape
from headgate.model.cluster.vm_class import Cloud
from headgate.model.dataflow import Dataflow
from headgate.model.service_level import ServiceLevel
from headgate.simulation.random_streams import machine_trace
from headgate.simulation.rates import ArrivalRate, Steps
from headgate.simulation.variability import STEADY, TracePool

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A dataflow, a cloud, arrival rates and a period.

    One seed gives one world: rates and machines are the same for every policy, whatever it decides.
    """

    dataflow: Dataflow
    cloud: Cloud
    rates: Mapping[str, ArrivalRate]
    """By task without inputs."""

    intervals: int = 360
    interval_s: float = 120.0
    pool: TracePool = STEADY
    replications: int = 1
    seed: int = 1
    message_bytes: float = 100.0
    deploy_s: float = 0.0
    """How long a newly assigned core is idle (m of a migration)."""

    switch_s: float = 0.0
    """How long a task pauses when its alternate changes."""

    counts_queues: bool = True
    """Whether the backlog counts as achievable output, as in DYN; otherwise only arrivals do."""

    warm: bool = True
    """Whether machines acquired before the first interval are ready when it begins."""

    costs: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Measured (cost_s, selectivity) by (task, alternate), before what the dataflow says."""

    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Share of the messages that pass a stream's predicate, by (source, target); 1 if not given."""

    sharing: Sharing | None = None
    """Fragments that share cores; without it, each task has cores of its own."""

    owners: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The tasks of each of several dataflows, where ``dataflow`` is the graph that runs for all of them."""

    levels: Mapping[str, ServiceLevel] = field(default_factory=dict)
    """The service level of each of several dataflows."""

    def __post_init__(self) -> None:
        for name, least in (("intervals", 1), ("replications", 1)):
            if getattr(self, name) < least:
                raise BadValue(f"{name} is {getattr(self, name)}", f"at least {least}")
        if not (isfinite(self.interval_s) and self.interval_s > 0):
            raise BadValue(f"interval_s is {self.interval_s}", "seconds above 0")
        if not (isfinite(self.message_bytes) and self.message_bytes > 0):
            raise BadValue(f"message_bytes is {self.message_bytes}", "bytes above 0")
        for name in ("deploy_s", "switch_s"):
            if not 0 <= getattr(self, name) <= self.interval_s:
                message = f"{name} is {getattr(self, name):g} and an interval has {self.interval_s:g} s"
                raise BadValue(message, "at least 0 and no longer than an interval")
        for vm_class in self.cloud.classes:
            if vm_class.bandwidth_mbit_per_s * 125_000 * self.interval_s < self.message_bytes:
                message = (
                    f"VM class '{vm_class.name}' is too small for anything: with {vm_class.bandwidth_mbit_per_s:g} "
                )
                raise BadValue(f"{message}Mbit/s not one message gets through in an interval", "more bandwidth")

    @property
    def hours(self) -> float:
        return self.intervals * self.interval_s / 3_600

    def shape(self) -> Shape:
        groups = () if self.sharing is None else self.sharing.groups
        return Shape.of(self.dataflow, self.costs, self.shares, groups, list(self.owners.values()))

    def external(self, shape: Shape) -> Floats:
        """Messages per second from outside, by replication, interval and source."""
        shape.check_rates(self.rates, "constant:50")
        names = [str(shape.names[place]) for place in shape.sources]
        rates = np.empty((self.replications, self.intervals, max(len(names), 1)))
        for place, name in enumerate(names):
            rng = np.random.default_rng([self.seed, 0x726174, place])
            rates[:, :, place] = self.rates[name].series(rng, self.replications, self.intervals, self.interval_s)
        return rates

    def machine_speeds(self, replication: int, count: int) -> Floats:
        """Relative speeds of the first ``count`` machines of a replication, machines × intervals.

        A machine depends only on its number, not on when it is acquired.
        """
        pool = self.pool.every(self.interval_s).speed
        number = np.arange(count)
        trace, offset = machine_trace(self.seed, replication, number, pool.shape)
        return np.asarray(pool[trace[:, None], (offset[:, None] + np.arange(self.intervals)) % pool.shape[1]])

    def mean_rates(self) -> dict[str, float]:
        """By source, over the period where that is known beforehand."""
        period_s = self.intervals * self.interval_s
        return {
            name: rate.mean_until(period_s) if isinstance(rate, Steps) else rate.mean_per_s
            for name, rate in self.rates.items()
        }

    def peak_rates(self) -> dict[str, float]:
        return {name: rate.peak_per_s for name, rate in self.rates.items()}
