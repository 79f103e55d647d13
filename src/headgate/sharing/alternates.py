"""What binds a shared task: the strictest service level of those who share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from headgate.model.names import DataflowName, Signature
from headgate.model.service_level import ServiceLevel
from headgate.sharing.running import RunningSet

__all__ = ["binding_level", "strictest"]


def binding_level(
    running: RunningSet, signature: Signature, changed: Mapping[DataflowName, ServiceLevel] = MappingProxyType({})
) -> ServiceLevel:
    """The service level that binds a running task: the strictest of the dataflows that use it.

    Those that were ``changed`` count before those that their authors wrote.
    """
    names: Iterable[DataflowName] = running.users(signature)
    return strictest(changed.get(name) or running.find(name).dataflow.service_level for name in names)


def strictest(levels: Iterable[ServiceLevel]) -> ServiceLevel:
    """Join service levels into one that meets each: what holds for a shared task holds for all who share it.

    Throughput is the greatest that is asked for with the least tolerance, latency the least. Budget, break-even costs
    and processors stay each dataflow's own: they bound what it pays, not how a task that it shares is served.

    >>> one = ServiceLevel(throughput_min=0.9, latency_max_s=10, latency_min_s=2)
    >>> both = strictest([one, ServiceLevel(throughput_tolerance=0.01, latency_max_s=1.5)])
    >>> both.throughput_min, both.throughput_tolerance, both.latency_max_s, both.latency_min_s
    (0.9, 0.01, 1.5, None)
    """
    known = list(levels)
    longest = min((level.latency_max_s for level in known if level.latency_max_s is not None), default=None)
    shortest = min((level.latency_min_s for level in known if level.latency_min_s is not None), default=None)
    kept = shortest if longest is not None and shortest is not None and shortest < longest else None
    return ServiceLevel(
        throughput_min=max(level.throughput_min for level in known),
        throughput_tolerance=min(level.throughput_tolerance for level in known),
        latency_max_s=longest,
        latency_min_s=kept,
    )
