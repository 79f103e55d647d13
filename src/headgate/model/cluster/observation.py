"""Measurements of running dataflows in an interval: the input of every policy.

Spark's runtime, the simulator and the tests' fakes all report in these.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.names import Signature

__all__ = [
    "FragmentObservation",
    "Observation",
    "SinkObservation",
    "Sojourn",
    "TaskObservation",
    "TaskProfile",
    "WorkerObservation",
]


@dataclass(frozen=True, slots=True)
class TaskProfile:
    """What a row costs in a task, from batches in which the task was run by itself (P-DEPLOY's task profile)."""

    rows: int
    """From how many rows it was measured."""

    cpu_s_per_row: float
    """CPU seconds in the task itself, given that the row is there (c_p of P-DEPLOY, c of DYN)."""

    sojourn_s_per_row: float
    """Seconds from the row's turn to its result on one processor, waiting included (t_soj of P-DEPLOY)."""

    transfer_s_per_row: float
    """CPU seconds to hand a row of its output on to another fragment (c_t of P-DEPLOY)."""

    memory_bytes: int
    """The most memory that one processor took for it."""

    spread: float | None
    """Standard error of ``cpu_s_per_row`` over ``cpu_s_per_row``; none after a single measurement."""


@dataclass(frozen=True, slots=True)
class TaskObservation:
    """A task in an interval. Tasks that dataflows share appear once."""

    task: Signature
    name: str
    type: str
    alternate: str
    """The active alternate."""

    dataflows: tuple[str, ...]
    partitions: int | None
    """Its processors, if they were set; otherwise it runs on as many as what feeds it."""

    rows_in: int
    rows_out: int
    errors: int = 0
    """Rows that were left out because they raised."""

    profile: TaskProfile | None = None
    rows_waiting: float | None = None
    """Rows that wait for this task at the end of the interval; none where only its fragment's are known."""

    placed: tuple[tuple[str, int], ...] = ()
    """Its cores by machine, where tasks have cores of their own."""

    @property
    def selectivity(self) -> float | None:
        """Rows out per row in; none without rows.

        >>> TaskObservation(Signature("s"), "t", "filter", "t", ("d",), None, 200, 50).selectivity
        0.25
        """
        return self.rows_out / self.rows_in if self.rows_in else None


@dataclass(frozen=True, slots=True)
class Sojourn:
    """How long events took, in seconds."""

    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class SinkObservation:
    """A sink in an interval: what reached it, and how long after its events had come in."""

    task: Signature
    name: str
    dataflows: tuple[str, ...]
    rows: int
    sojourn: Sojourn | None
    """None if no row came."""


@dataclass(frozen=True, slots=True)
class FragmentObservation:
    """A fragment in an interval. Its batches' seconds are sums over the interval."""

    id: str
    kind: str
    tasks: tuple[Signature, ...]
    batches: int
    rows_in: int
    rows_behind: int | None
    """Rows that wait for it at the end of the interval; none where its source does not report them."""

    batch_s: float
    """In batches altogether; the four that follow are its parts."""

    planning_s: float
    """Until Spark had a job to run: finding the plan, fusing it, Spark's own analysis and planning."""

    scheduling_s: float
    """From the job's hand-over to its first task at work."""

    execution_s: float
    """From there until all of its tasks were done."""

    commit_s: float
    """Making the outcome durable and delivering it."""

    bytes_behind: int | None = None
    """Bytes at its source that later batches will read; none where they are not known."""


@dataclass(frozen=True, slots=True)
class WorkerObservation:
    """A running executor in an interval."""

    id: str
    machine: str
    cores: int
    busy: float
    """Share of its cores' time in which they were at work, from 0 to 1."""

    speed: float | None
    """One of its cores relative to the reference core (pi(t) of the papers); none until it was probed."""

    vm_class: str | None = None
    acquired: float | None = None
    """Since when the machine is paid for, on the clock of :attr:`Observation.ended`; none if it is not known."""

    ready: bool = True
    """Whether it can work; not while its machine starts."""


@dataclass(frozen=True, slots=True)
class Observation:
    """All measurements of an interval."""

    ended: float
    """When the interval ended, in seconds since 1970 (or since the beginning of a simulation)."""

    seconds: float
    tasks: tuple[TaskObservation, ...] = ()
    sinks: tuple[SinkObservation, ...] = ()
    fragments: tuple[FragmentObservation, ...] = ()
    workers: tuple[WorkerObservation, ...] = ()

    def rate_in_per_s(self, task: TaskObservation) -> float:
        """Rows into a task per second of the interval."""
        return task.rows_in / self.seconds

    def rate_out_per_s(self, task: TaskObservation) -> float:
        """Rows out of a task per second of the interval."""
        return task.rows_out / self.seconds
