"""What the API is asked and what it answers, as models: the OpenAPI document is made of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from headgate.model.cluster.observation import Observation
from headgate.model.status import DataflowStatus, FragmentStatus

__all__ = [
    "AccessAnswer",
    "AcquireRequest",
    "AlternateRequest",
    "AuditAnswer",
    "BillAnswer",
    "Changed",
    "DataflowDetails",
    "DeadLettersAnswer",
    "DecisionDetails",
    "DecisionsAnswer",
    "EngineAnswer",
    "EngineStatus",
    "LimitRequest",
    "Listing",
    "MachineAnswer",
    "MachinesAnswer",
    "Me",
    "Observations",
    "PartitionsRequest",
    "PolicyAnswer",
    "PolicyChosenAnswer",
    "PolicyRequest",
    "ReleasedMachine",
    "ScaleAnswer",
    "ScaleRequest",
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


class PolicyRequest(_Request):
    """Which policy decides, in which mode, within which limits. What is left out stays as it is."""

    policy: str | None = None
    mode: Literal["off", "recommend", "auto"] | None = None
    budget_per_h: Decimal | None = Field(None, ge=0, le=1_000_000, description="For all machines; null lifts it.")
    machines_max: int | None = Field(None, ge=1, description="Machines at most; null lifts the limit.")


class AcquireRequest(_Request):
    """A machine to acquire."""

    vm_class: str


class ScaleRequest(_Request):
    """How many executors there should be."""

    executors: int = Field(ge=1, le=10_000)


class PolicyChosenAnswer(BaseModel):
    """What decides."""

    policy: str
    mode: str = Field(description="off, recommend or auto.")
    budget_per_h: str | None
    machines_max: int | None
    by: str = Field(description="Who has chosen that; controller if it has taken over itself.")
    reason: str


class PolicyAnswer(PolicyChosenAnswer):
    """What decides, what it thought last, and what is being done."""

    last: dict[str, Any] | None
    under_way: list[dict[str, Any]]
    failure: str = Field(description="Why the controller cannot work; empty if it does.")


class DecisionAnswer(BaseModel):
    """A decision, and what became of it."""

    number: int
    at: float = Field(description="Seconds since 1970.")
    policy: str
    mode: str
    rule: str = Field(description="The rule that has fired.")
    sentences: list[str] = Field(description="Why.")
    actions: list[dict[str, Any]]
    outcome: str = Field(description="under way, done, abandoned or recommended.")
    outcome_reason: str
    ended_at: float | None
    error: float | None = Field(description="How far off the prediction was, as a share.")


class DecisionsAnswer(BaseModel):
    """Decisions, oldest first."""

    decisions: list[DecisionAnswer]


class DecisionDetails(DecisionAnswer):
    """A decision with all that is known of it."""

    decided: dict[str, Any] = Field(description="What the policy decided, before guard rails.")
    figures: dict[str, float]
    rejected: list[dict[str, str]] = Field(description="What was weighed and not done, and why.")
    prediction: dict[str, Any] | None
    steps: list[dict[str, Any]]
    verified: dict[str, dict[str, float]] | None = Field(description="The prediction beside what was measured.")
    again: dict[str, Any] | None = Field(description="What comes out when it is made again from its record.")


class MachineAnswer(BaseModel):
    """A machine of the engine's provider."""

    name: str
    vm_class: str
    state: str
    cores: int
    price_per_h: str
    acquired_at: float
    startup_s: float | None
    gone_at: float | None
    cost: str
    decision: int | None = Field(description="The decision that has asked for it.")


class MachinesAnswer(BaseModel):
    """Machines, and executors on them."""

    provider: bool = Field(description="Whether machines can be acquired.")
    machines: list[MachineAnswer]
    executors: list[dict[str, Any]]
    wanted_executors: int | None


class ReleasedMachine(BaseModel):
    """A machine that is being released."""

    name: str
    state: str


class ScaleAnswer(BaseModel):
    """How many executors there should be."""

    executors: int


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


class AccessAnswer(BaseModel):
    """Who has which role, and the members of teams."""

    roles: list[RoleOf]
    teams: list[TeamMembers]


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


class TaskSharing(BaseModel):
    """A task of a dataflow, and the other dataflows that use it."""

    task: str
    type: str
    signature: str
    shared_with: list[str]


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


class SubmittedDataflow(_SharingChange):
    """What a submitted dataflow reuses and adds."""

    reused: list[ReusedTask]
    wider: list[WiderTask]
    added: list[str]


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
