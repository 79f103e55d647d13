"""The observer: makes observations of what epochs recorded and what Spark reports."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headgate.adaptation.costs import CostedTask, Profiles, alternate_costs
from headgate.adaptation.evaluating import evaluated
from headgate.model.cluster.alternate_cost import AlternateCost
from headgate.model.cluster.machine_observations import MachineObservations
from headgate.model.cluster.observation import (
    DataflowObservation,
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
)
from headgate.model.names import Signature
from headgate.model.task_type import Role
from headgate.planning.objective import value_range
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.observing.arrivals import ArrivalCounter
from headgate.runtime.observing.counting import RowCounts
from headgate.runtime.observing.kept_profiles import KeptProfiles
from headgate.runtime.observing.records import Arrivals, EpochRecord, Records
from headgate.runtime.observing.value_clock import ValueClock, alternate_value
from headgate.runtime.spark_internals.protocol import JobInfo, SparkInternals

__all__ = ["ObservedEngine", "Observer", "sojourn_of"]


@dataclass(frozen=True, slots=True)
class ObservedEngine:
    """The parts of an engine that an observer reads."""

    inside: SparkInternals
    records: Records
    plans: Plans
    fragments: Callable[[], Sequence[RunningFragment]]
    refusing: Callable[[], Iterable[Signature]]
    """The sinks that refuse rows; these rows have not arrived."""

    profiles: Callable[[], Profiles]
    machines: Callable[[float], MachineObservations]
    kept: KeptProfiles | None = None
    """What engines have measured before."""


LOOKED_AT = 4
"""How many of a fragment's latest batches the observer looks up in Spark's status store."""


@dataclass(slots=True)
class Observer:
    """Observes the time since its last observation; observers are independent of each other."""

    engine: ObservedEngine
    clock: Callable[[], float] = time.time
    _last: float = field(init=False)
    _records: Any = field(init=False)
    _progress: dict[str, int] = field(default_factory=dict)
    """The last batch of each fragment whose progress has been read."""

    _arrivals: ArrivalCounter = field(default_factory=ArrivalCounter)
    _values: ValueClock = field(default_factory=ValueClock)

    def __post_init__(self) -> None:
        self._last = self.clock()
        self._records = self.engine.records.taken()
        for fragment in self.engine.fragments():
            self._arrivals.begin(fragment.fragment.id, fragment.backlog.rows())

    def observe(self) -> Observation:
        """All that was measured since the last observation."""
        now = self.clock()
        seconds, self._last = max(now - self._last, 1e-6), now
        records: list[EpochRecord] = [self._records.popleft() for _ in range(len(self._records))]
        counts: RowCounts = Counter()
        arrived: dict[Signature, list[Arrivals]] = defaultdict(list)
        by_fragment: dict[str, list[EpochRecord]] = defaultdict(list)
        for record in records:
            counts.update(record.counts)
            for sink, arrivals in record.arrivals.items():
                arrived[sink] += arrivals
            by_fragment[record.fragment].append(record)
        plan = self.engine.plans.current
        profiles = self.engine.profiles()
        refusing = set(self.engine.refusing())
        machines = self.engine.machines(seconds)
        speed = machines.mean_speed()
        fragments = tuple(
            self._fragment(fragment, by_fragment[fragment.fragment.id], speed) for fragment in self.engine.fragments()
        )
        self._arrivals.forget_others(fragment.id for fragment in fragments)
        tasks = list(plan.tasks.values())
        routed = {task.signature for task in tasks if _is_routed(task, plan)}
        if self.engine.kept is not None:
            self.engine.kept.keep(plan, profiles, speed)
        seen = Observation(
            now,
            seconds,
            tuple(_task(task, counts, profiles, routed) for task in tasks if task.role is not Role.SINK),
            tuple(
                _sink(task, [] if task.signature in refusing else arrived[task.signature], routed)
                for task in tasks
                if task.role is Role.SINK
            ),
            fragments,
            machines,
            tuple(_sources(tasks, fragments)),
            tuple(_dataflows(self.engine.plans.snapshot)),
            tuple(self._costs(tasks, speed or 1.0)),
        )
        return evaluated(self._values.valued(seen, plan, records, self.engine.plans))

    def _costs(self, tasks: Iterable[CompiledTask], speed: float) -> Iterator[AlternateCost]:
        kinds, kept = self.engine.plans.snapshot.shared.registry, self.engine.kept
        costed = (CostedTask(task.signature, task.running.task, task.alternate.name) for task in tasks)
        stored = None if kept is None else kept.of(self.engine.plans.current)
        return alternate_costs(costed, kinds, self.engine.profiles(), stored, speed)

    def _fragment(
        self, fragment: RunningFragment, records: Sequence[EpochRecord], speed: float | None
    ) -> FragmentObservation:
        """A fragment's epochs, added up; their time is divided as that of the latest ones.

        To ask Spark for every job would cost a busy engine more than the rest of an observation.
        """
        latest = records[-LOOKED_AT:]
        jobs = [job for record in latest for job in self.engine.inside.jobs(record.tag)]
        looked_s = sum(record.committed - record.began for record in latest)
        run_s = sum(record.committed - record.began for record in records)
        scale = run_s / looked_s if looked_s > 0 else 0.0
        in_jobs = min(scale * sum(job.completed - job.submitted for job in jobs), run_s)
        waited = min(scale * sum(job.scheduling_s for job in jobs), in_jobs)
        planning_s, commit_s = self._by_spark(fragment)
        planning_s += run_s - in_jobs  # an epoch's time outside jobs is the planning of jobs
        commit_s += sum(record.ended - record.committed for record in records)
        name, rows_in, waiting = (
            fragment.fragment.id,
            sum(record.rows_in for record in records),
            fragment.backlog.rows(),
        )
        return FragmentObservation(
            name,
            fragment.fragment.kind.value,
            (*fragment.fragment.roots, *fragment.fragment.tasks),
            len(records),
            rows_in,
            waiting,
            planning_s + in_jobs + commit_s,
            planning_s,
            waited,
            in_jobs - waited,
            commit_s,
            fragment.backlog.bytes(),
            self._arrivals.arrived(name, rows_in, waiting),
            None if speed is None else scale * sum(job.run_s for job in jobs) * speed,
            parts=_parts(jobs),
            misplaced=_misplaced(records),
        )

    def _by_spark(self, fragment: RunningFragment) -> tuple[float, float]:
        """Seconds that Spark itself took around the epochs since the last observation: planning and committing."""
        if fragment.query is None:
            return 0.0, 0.0
        last = self._progress.get(fragment.fragment.id, -1)
        batches = self.engine.inside.progress(fragment.query, last)
        self._progress[fragment.fragment.id] = max([last, *(batch.batch for batch in batches)])
        return sum(batch.planning_s for batch in batches), sum(batch.commit_s for batch in batches)


def _parts(jobs: Sequence[JobInfo]) -> int | None:
    """Into how many parts work was cut: as in the job that took longest."""
    return max(jobs, key=lambda job: job.run_s).parts if jobs else None


def _misplaced(records: Sequence[EpochRecord]) -> int | None:
    known = [record.misplaced for record in records if record.misplaced is not None]
    return sum(known) if known else None


def _task(task: CompiledTask, counts: RowCounts, profiles: Profiles, routed: Collection[Signature]) -> TaskObservation:
    return TaskObservation(
        task.signature,
        task.name,
        task.alternate.type,
        task.alternate.name,
        task.users,
        task.partitions,
        counts[task.signature, "in"],
        counts[task.signature, "out"],
        counts[task.signature, "errors"],
        profiles.get((task.signature, task.alternate.name)),
        inputs=_inputs(task),
        value=alternate_value(task),
        routed=task.signature in routed,
    )


def _sink(task: CompiledTask, arrivals: Sequence[Arrivals], routed: Collection[Signature]) -> SinkObservation:
    rows, is_routed = sum(some.rows for some in arrivals), task.signature in routed
    return SinkObservation(task.signature, task.name, task.users, rows, sojourn_of(arrivals), _inputs(task), is_routed)


def _is_routed(task: CompiledTask, plan: CompiledPlan) -> bool:
    """Whether some rows of its inputs are not for it."""
    feeds = [feed for feed in task.feeds if not feed.feedback]
    several = (feed.source in plan.tasks and len(plan.tasks[feed.source].ports.outputs) > 1 for feed in feeds)
    return any(feed.where is not None for feed in feeds) or any(several)


def _inputs(task: CompiledTask) -> tuple[Signature, ...]:
    return tuple(dict.fromkeys(feed.source for feed in task.feeds if not feed.feedback))


def _sources(tasks: Iterable[CompiledTask], fragments: Iterable[FragmentObservation]) -> Iterator[SourceObservation]:
    read_by = {fragment.tasks[0]: fragment for fragment in fragments if fragment.kind == "source"}
    for task in tasks:
        fragment = read_by.get(task.signature)
        if task.role is Role.SOURCE and fragment is not None:
            waiting, unknown = fragment.rows_behind, ""
            if waiting is None:
                unknown = f"a source of type {task.alternate.type} does not report what waits, or not yet"
            yield SourceObservation(
                task.signature,
                task.name,
                task.users,
                fragment.rows_in,
                fragment.rows_arrived,
                waiting,
                fragment.bytes_behind,
                unknown,
            )


def _dataflows(snapshot: Snapshot) -> Iterator[DataflowObservation]:
    for flow in snapshot.dataflows:
        paused, worst = flow.name in snapshot.paused, value_range(flow)[1]
        owner, count = str(flow.owner), len(flow.tasks)
        yield DataflowObservation(flow.name, owner, flow.service_level, worst, paused, tasks=count)


def sojourn_of(arrivals: Sequence[Arrivals]) -> Sojourn | None:
    """How long events took to their sink, from when rows arrived and when their events had been taken in.

    >>> half = np.array([1_000_000, 2_000_000])
    >>> sojourn_of([Arrivals(2, half, at=3.0), Arrivals(2, half, at=3.0)])
    Sojourn(mean_s=1.5, p50_s=1.0, p95_s=2.0, p99_s=2.0)
    """
    if not arrivals:
        return None
    ages = np.concatenate([some.at - some.ingested_us / 1e6 for some in arrivals])
    weights = np.concatenate([np.full(len(a.ingested_us), a.rows / len(a.ingested_us)) for a in arrivals])
    order = np.argsort(ages, kind="stable")
    ages, reached = ages[order], np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array([0.50, 0.95, 0.99]) * reached[-1] - 1e-9)
    p50, p95, p99 = (float(ages[place]) for place in places)
    return Sojourn(float(np.average(ages, weights=weights[order])), p50, p95, p99)
