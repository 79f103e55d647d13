"""What the API is asked and what it answers, as models: the OpenAPI document is made of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from headgate.model.alternate_choice import ActiveAlternate
from headgate.model.cluster.observation import Observation
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.service.console.letters import LetterCause
from headgate.service.console.snapshots import SnapshotStep

__all__ = [
    "AccessAnswer",
    "AlternateRequest",
    "AuditAnswer",
    "BillAnswer",
    "Changed",
    "DataflowDetails",
    "DeadLettersAnswer",
    "EngineAnswer",
    "EngineStatus",
    "LetterCauses",
    "LevelRequest",
    "LimitRequest",
    "Listing",
    "Me",
    "Observations",
    "PartitionsRequest",
    "PreviewRequest",
    "Snapshots",
    "SubmissionRequest",
    "SubmittedDataflow",
    "WithdrawalRequest",
    "WithdrawnDataflow",
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SubmissionRequest(_Request):
    """Dataflows to submit, all of them or none."""

    dataflows: list[dict[str, Any]] = Field(min_length=1, description="Dataflows, as their JSON documents.")
    replace: bool = Field(False, description="Replace running dataflows of the same names.")
    allow_partial: bool = Field(False, description="Take what is there where some of the past is gone.")


class PreviewRequest(_Request):
    """A dataflow as its author wrote it, to be looked at before it is submitted."""

    text: str = Field(min_length=1, max_length=1_000_000)
    format: str = Field("yaml", description="yaml, json or xml.")
    replace: bool = Field(False, description="Replace a running dataflow of the same name.")


class WithdrawalRequest(_Request):
    """Dataflows to withdraw, all of them or none."""

    dataflows: list[str] = Field(min_length=1, description="Their names.")


class LimitRequest(_Request):
    """How many rows a source or a stateful task takes per trigger."""

    rows: int | None = Field(description="At least 1; null removes the limit.")


class AlternateRequest(_Request):
    """Which alternate of a task is active."""

    alternate: str


class PartitionsRequest(_Request):
    """On how many partitions a task runs."""

    partitions: int | None = Field(description="At least 1; null leaves it to the task's input.")


class LevelRequest(_Request):
    """Limits of a dataflow that are to change; what is left out stays, and null removes a limit."""

    throughput_min: float | None = Field(None, description="Least relative throughput.")
    throughput_tolerance: float | None = Field(None, description="How far throughput may stray.")
    latency_max_s: float | None = Field(None, description="Mean seconds from arrival to sink, at most.")
    latency_min_s: float | None = Field(None, description="Below so many seconds, resources may go.")
    budget_per_h: Decimal | None = Field(None, description="The most that it may cost in an hour.")
    break_even_at_best_per_h: Decimal | None = Field(None, description="Cost at which the best alternates just pay.")
    break_even_at_worst_per_h: Decimal | None = Field(None, description="Cost at which the worst alternates just pay.")
    processors_max: int | None = Field(None, description="The most processors that it may use.")
    time_within_min: float | None = Field(None, description="Share of a month in which the level is to be met.")


class EngineAnswer(BaseModel):
    """Which engine answers, and its newest plan snapshot."""

    state: str = Field(description="The state directory.")
    process: int = Field(description="The process id.")
    folder: str = Field(description="Relative paths in dataflows are looked up here.")
    strategy: str
    snapshot: int


class Me(BaseModel):
    """Who you are to an engine."""

    name: str = Field(description="The user, or the name of the token.")
    role: str = Field(description="viewer, submitter, operator or admin.")
    teams: list[str] = Field(description="The owners for whom you may speak.")
    origin: str = Field(description="From where the request came.")
    may_to_all: list[str] = Field(description="What you may do to the dataflows of all owners, and to the engine.")


class RoleOf(BaseModel):
    """The role of a user; * stands for all others."""

    name: str
    role: str


class TeamMembers(BaseModel):
    """The members of a team, which is the owner of dataflows."""

    team: str
    members: list[str]


class OwnerQuota(BaseModel):
    """What an owner has on this engine, and may have."""

    owner: str
    dataflows: int
    tasks: int
    sources: int = 0
    rows_per_s: float = Field(0.0, description="Rows that its sources took, in the last minute.")
    cores: float = Field(0.0, description="Cores that its tasks kept busy, in the last minute.")
    kept_bytes: int = Field(0, description="State and checkpoints of the fragments that it uses.")
    price_per_day: float = Field(0.0, description="What it has paid for machines in the last 24 hours.")
    most_dataflows: int
    most_tasks: int
    most_sources: int = 500
    most_rows_per_s: float | None = None
    most_cores: float | None = None
    most_kept_bytes: int | None = None
    most_price_per_day: float | None = None


class AccessAnswer(BaseModel):
    """Who has which role, the members of teams, and the quotas of owners."""

    roles: list[RoleOf]
    teams: list[TeamMembers]
    quotas: list[OwnerQuota] = []


class AuditEntry(BaseModel):
    """A change that was made, or a request that was refused."""

    at: float = Field(description="Seconds since 1970.")
    principal: str
    role: str
    origin: str
    action: str
    objects: list[str]
    outcome: str = Field(description="done, or the condition of the refusal.")
    message: str


class AuditAnswer(BaseModel):
    """Changes and refusals, oldest first."""

    entries: list[AuditEntry]


class Listing(EngineAnswer):
    """The dataflows, in the order of submission."""

    dataflows: list[DataflowStatus]


class EngineStatus(Listing):
    """Dataflows and fragments."""

    fragments: list[FragmentStatus]
    over_quota: list[str] = Field([], description="Which owners have more than they may, as sentences.")


class TaskSharing(BaseModel):
    """A task of a dataflow, the other dataflows that use it, and its active alternate."""

    task: str
    type: str
    signature: str
    shared_with: list[str]
    active: ActiveAlternate | None = Field(description="Null while the dataflow is paused.")
    publish: str = Field("", description="The name under which others may read what it puts out.")


class DataflowDetails(EngineStatus):
    """One dataflow and its tasks."""

    tasks: list[TaskSharing]


class _Reused(BaseModel):
    model_config = ConfigDict(title="Reused")

    task: str
    users: int
    for_: str = Field(alias="for", description="The dataflows that use it, in words.")


class ReusedTask(_Reused):
    """A task that ran already."""

    brought_by: str


class TaskLeft(_Reused):
    """A task that keeps running for others."""


class WiderTask(BaseModel):
    """A task whose rows come from a wider stream that ran already, through residual tasks."""

    task: str
    wider: str
    residual: list[str]


class Tap(BaseModel):
    """A stream from a running task to a new one."""

    from_: str = Field(alias="from")
    to: str


class GraphComponents(BaseModel):
    """The components of the running graph that the dataflow belongs to, by number, before and after the change."""

    before: list[int]
    after: list[int]


class _SharingChange(BaseModel):
    dataflow: str
    streams_shared: int
    streams_own: int
    taps: list[Tap]
    touched: list[str] = Field(description="Dataflows whose tasks the change touches.")
    running_dataflows: GraphComponents


class StartAnswer(BaseModel):
    """From where a submitted dataflow reads, and how it gets that."""

    model_config = ConfigDict(populate_by_name=True)

    from_: str = Field(alias="from", description="As the dataflow says, or as its sources give it.")
    how: str = Field(description="new, now, with, continued, catch up or alone.")
    text: str = Field(description="The same for people.")


class SubmittedDataflow(_SharingChange):
    """What a submitted dataflow reuses and adds."""

    reused: list[ReusedTask]
    wider: list[WiderTask]
    added: list[str]
    start: StartAnswer


class WithdrawnDataflow(_SharingChange):
    """What is removed of a withdrawn dataflow, and what keeps running for others."""

    left: list[TaskLeft]
    removed: list[str]


class ChangedFragments(BaseModel):
    """The fragments that a change affects, by id."""

    touched: list[str]
    started: list[str]
    restarted: list[str]


class Changed(EngineAnswer):
    """What a submission or withdrawal has changed."""

    submitted: list[SubmittedDataflow]
    withdrawn: list[WithdrawnDataflow]
    continued: list[str] = Field(default=[], description="Dataflows that ran already, exactly as given.")
    fragments: ChangedFragments


class Observations(BaseModel):
    """What was measured, oldest first."""

    observations: list[Observation]


class Snapshots(BaseModel):
    """The plan snapshots that are kept, oldest first."""

    snapshots: list[SnapshotStep]


class LetterCauses(BaseModel):
    """Rows that failed, by cause, most rows first."""

    causes: list[LetterCause]


class DeadLetterAnswer(BaseModel):
    """A row for which a task raised."""

    task: str
    dataflows: list[str]
    error: str
    record: Any = Field(description="The row that came in.")
    snapshot: int
    epoch: int
    at: str


class DeadLettersAnswer(BaseModel):
    """Rows for which tasks raised, oldest first."""

    dead_letters: list[DeadLetterAnswer]


class _Amounts(BaseModel):
    owner: str
    cost: str = Field(description="What is paid, as a decimal.")
    alone: str = Field(description="What it would cost on machines of its own.")
    saved: str


class DataflowAmounts(_Amounts):
    """What a dataflow pays."""

    dataflow: str
    tasks: int
    hours: float
    unused: str = Field(description="The part that was paid and not used: the rest of billing periods.")


class OwnerAmounts(_Amounts):
    """What an owner pays."""

    dataflows: int


class BillAnswer(BaseModel):
    """Who pays what; the dataflows and `idle` add up to `total`."""

    start: str
    end: str
    currency: str
    dataflows: list[DataflowAmounts]
    owners: list[OwnerAmounts]
    idle: str
    total: str
