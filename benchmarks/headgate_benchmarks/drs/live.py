"""Allocations on a live Spark, one after the other, each until enough batches have run under it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.adaptation.actions import SetPartitions
from headgate.adaptation.cluster import Cluster
from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.model.names import Signature
from headgate.queueing.fitting.batch_costs import BatchSample

__all__ = ["Batches", "Held", "Summed", "hold"]

LOOK_S = 0.25


@dataclass(slots=True)
class Batches:
    """The batches of a fragment, added up."""

    batches: int = 0
    rows: int = 0
    outside_jobs_s: float = 0.0
    in_jobs_s: float = 0.0

    def add(self, seen: FragmentObservation) -> None:
        """One observation more."""
        self.batches += seen.batches
        self.rows += seen.rows_in
        self.outside_jobs_s += seen.planning_s + seen.commit_s
        self.in_jobs_s += seen.scheduling_s + seen.execution_s


@dataclass(slots=True)
class Summed:
    """Observations added up: batches of the fragments, and the sojourns of what reached the sink."""

    seconds: float = 0.0
    rows_done: int = 0
    sojourn_s: float = 0.0
    """Of all rows together."""

    source: Batches = field(default_factory=Batches)
    feedback: Batches = field(default_factory=Batches)

    def add(self, seen: Observation) -> None:
        """One observation more."""
        self.seconds += seen.seconds
        for sink in seen.sinks:
            if sink.sojourn is not None:
                self.rows_done += sink.rows
                self.sojourn_s += sink.rows * sink.sojourn.mean_s
        for fragment in seen.fragments:
            (self.source if fragment.kind == "source" else self.feedback).add(fragment)

    @property
    def batches(self) -> int:
        return self.source.batches

    @property
    def mean_s(self) -> float:
        return self.sojourn_s / self.rows_done if self.rows_done else float("nan")

    def samples(self, allocation: tuple[int, ...]) -> list[BatchSample]:
        """The batches as what costs are fitted from."""
        samples = []
        for place, batches in enumerate((self.source, self.feedback)):
            if count := batches.batches:
                outside, inside = batches.outside_jobs_s / count, batches.in_jobs_s / count
                samples.append(BatchSample(allocation, count, batches.rows / count, outside, inside, place))
        return samples


@dataclass(frozen=True, slots=True)
class Held:
    """What was seen of an allocation: while it came into force, and then."""

    allocation: tuple[int, ...]
    apply_s: float
    """How long it took to publish it."""

    first: Summed
    then: Summed

    @property
    def cost_s(self) -> float:
        """By how much rows took longer while it came into force than then."""
        return self.first.mean_s - self.then.mean_s


def hold(
    cluster: Cluster,
    tasks: Mapping[str, Signature],
    allocation: tuple[int, ...],
    settle: int,
    batches: int,
    most_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Held:
    """Give operators their processors, let some batches pass, and measure those that follow.

    ``settle`` counts from the batch that was under way. A phase also waits for a first row to be through; it ends
    after ``most_s`` in any case.
    """
    pairs: Sequence[tuple[Signature, int]] = list(zip(tasks.values(), allocation, strict=True))
    cluster.observe()
    began = clock()
    cluster.apply([SetPartitions(task, k) for task, k in pairs])
    applied = clock() - began
    phases = []
    for wanted in (settle, batches):
        summed, until = Summed(), clock() + most_s
        while (summed.batches < wanted or not summed.rows_done) and clock() < until:
            sleep(LOOK_S)
            summed.add(cluster.observe())
        phases.append(summed)
    return Held(allocation, applied, *phases)
