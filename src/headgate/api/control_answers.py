"""What the routes of the controller are asked and what they answer, as models."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AcquireRequest",
    "DecisionDetails",
    "DecisionsAnswer",
    "MachineAnswer",
    "MachinesAnswer",
    "PolicyAnswer",
    "PolicyChosenAnswer",
    "PolicyRequest",
    "ReleasedMachine",
    "ScaleAnswer",
    "ScaleRequest",
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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
    known: list[str] = Field(description="The policies that there are.")
    controller_cpu_s: float = Field(description="Seconds of a processor that deciding has taken so far.")
    controller_running_s: float = Field(description="Seconds since the controller began.")


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
    executors: int | None = Field(None, description="Spark executors on it, in a list of machines.")


class MachinesAnswer(BaseModel):
    """Machines, and executors on them."""

    provider: bool = Field(description="Whether machines can be acquired.")
    machines: list[MachineAnswer]
    executors: list[dict[str, Any]]
    wanted_executors: int | None
    classes: list[dict[str, Any]] = Field(description="VM classes that can be acquired.")


class ReleasedMachine(BaseModel):
    """A machine that is being released."""

    name: str
    state: str


class ScaleAnswer(BaseModel):
    """How many executors there should be."""

    executors: int
