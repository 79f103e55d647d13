"""Measurements of running dataflows in an interval: the input of every policy.

Spark's runtime, the simulator and the tests' fakes all report in these. What is not known is ``None``, with the reason
beside it where there is one, and never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.model.cluster.alternate_cost import AlternateCost
from headgate.model.cluster.machine_observations import MachineObservations
from headgate.model.names import Signature
from headgate.model.service_level import ServiceLevel

__all__ = [
    "DataflowObservation",
    "Figures",
    "FragmentObservation",
    "Observation",
    "SinkObservation",
    "Sojourn",
    "SourceObservation",
    "TaskObservation",
    "TaskProfile",
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

    inputs: tuple[Signature, ...] = ()
    """The tasks whose rows it reads; none of a source."""

    value: float = 1.0
    """Of the active alternate, relative to the best (gamma of DYN); the mean over the interval."""

    routed: bool = False
    """Whether some rows of its inputs are not for it: a predicate or one of several ports decides."""

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

    inputs: tuple[Signature, ...] = ()
    """The tasks whose rows it reads."""

    routed: bool = False
    """Whether some rows of its inputs are not for it: a predicate or one of several ports decides."""


@dataclass(frozen=True, slots=True)
class SourceObservation:
    """A source in an interval: what came to it, whether or not it has been taken."""

    task: Signature
    name: str
    dataflows: tuple[str, ...]
    rows_taken: int
    """Rows that epochs have taken and finished."""

    rows_arrived: float | None
    """Rows that came: those taken, and by how much those that wait have grown."""

    rows_waiting: float | None
    """Rows that wait at the end, those of the epoch under way included."""

    bytes_waiting: int | None = None
    unknown: str = ""
    """Why it is not known what arrived and what waits; empty if it is."""


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

    rows_arrived: float | None = None
    """Rows that came before it, from its source or from other fragments; none where that is not known."""

    work_s: float | None = None
    """Core-seconds of the reference core that its rows took, waiting on a held core included; none if not known."""

    row_s: float | None = None
    """Of several intervals together: what a row usually takes; one in which workers start says little."""

    parts: int | None = None
    """Into how many parts the work of its latest epoch was cut: no more cores were of use; none if not known."""

    driver_s: float | None = None
    """Of several intervals together: what an epoch usually takes of the driver."""

    misplaced: int | None = None
    """Partitions that ran elsewhere than on the machine they are placed on; none where nothing is placed."""

    @property
    def fixed_s(self) -> float | None:
        """Seconds of the driver in each epoch: planning and commit (f); none without an epoch.

        >>> FragmentObservation("f", "source", (), 4, 100, 0, 2.0, 0.2, 0.1, 1.5, 0.2, work_s=3.0).fixed_s
        0.1
        """
        if self.driver_s is not None:
            return self.driver_s
        return (self.planning_s + self.commit_s) / self.batches if self.batches else None

    @property
    def work_s_per_row(self) -> float | None:
        """Reference core-seconds of a row that enters (W); none without rows."""
        if self.row_s is not None:
            return self.row_s
        return None if self.work_s is None or not self.rows_in else self.work_s / self.rows_in


@dataclass(frozen=True, slots=True)
class Figures:
    """How well a dataflow, or all of them, did in an interval (:mod:`headgate.adaptation.evaluating`)."""

    omega: float | None
    """Relative throughput: the share of the rows that were there which reached the sinks (DYN, Eq. 7)."""

    kept_up: float | None
    """Rows that its fragments took over rows that came: above 1 while it catches up."""

    gamma: float | None
    """Relative value of the active alternates (DYN, Eq. 3)."""

    cost_per_h: float | None
    """What it pays for machines, for an hour (mu)."""

    theta: float | None
    """Profit (DYN, Eq. 8); none without break-even costs."""

    sojourn: Sojourn | None
    """Over the rows of all sinks; percentiles are those of the sink where they are longest."""

    within: bool | None
    """Whether the service level was met."""

    unknown: tuple[str, ...] = ()
    """Why figures are missing."""


@dataclass(frozen=True, slots=True)
class DataflowObservation:
    """A dataflow in an interval: what was agreed for it, and how well it did."""

    name: str
    owner: str
    level: ServiceLevel
    value_min: float = 1.0
    """Gamma if every task ran its worst alternate."""

    paused: bool = False
    figures: Figures | None = None
    tasks: int | None = None
    """How many its author wrote, without duplicates."""


@dataclass(frozen=True, slots=True)
class Observation:
    """All measurements of an interval."""

    ended: float
    """When the interval ended, in seconds since 1970 (or since the beginning of a simulation)."""

    seconds: float
    tasks: tuple[TaskObservation, ...] = ()
    sinks: tuple[SinkObservation, ...] = ()
    fragments: tuple[FragmentObservation, ...] = ()
    machines: MachineObservations = field(default_factory=MachineObservations)
    sources: tuple[SourceObservation, ...] = ()
    dataflows: tuple[DataflowObservation, ...] = ()
    costs: tuple[AlternateCost, ...] = ()
    """Of every alternate of every task whose cost is known."""

    together: Figures | None = None
    """All dataflows together."""

    @property
    def tasks_and_sinks(self) -> tuple[TaskObservation | SinkObservation, ...]:
        """All tasks, those that write rows included."""
        return (*self.tasks, *self.sinks)

    def rate_in_per_s(self, task: TaskObservation) -> float:
        """Rows into a task per second of the interval."""
        return task.rows_in / self.seconds

    def rate_out_per_s(self, task: TaskObservation) -> float:
        """Rows out of a task per second of the interval."""
        return task.rows_out / self.seconds
