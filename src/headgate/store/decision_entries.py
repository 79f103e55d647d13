"""The entries that decisions leave in a journal: what was decided and from what, each step of doing it, how it went.

A decision is durable before anything is done. Its steps are numbered; the last entry of a step says how far it is. All
that was decided from is with the decision, so that it can be computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

__all__ = [
    "DecisionEnded",
    "DecisionMade",
    "DecisionOutcome",
    "DecisionVerified",
    "PolicyChosen",
    "StepChanged",
    "StepState",
    "TermsRecorded",
]


@dataclass(frozen=True, slots=True)
class PolicyChosen:
    """Which policy decides from now on, whether what it decides is done, and within which limits."""

    at: float
    policy: str
    mode: str
    rails: Mapping[str, Any]
    by: str
    """A person, or the controller itself."""

    reason: str = ""
    engine: str = ""
    """With what the keys of its machines begin; chosen once for a state directory."""

    @property
    def key(self) -> str:
        return "policy"


@dataclass(frozen=True, slots=True)
class TermsRecorded:
    """What decisions were made on that hardly changes: the graph, service levels, machines that can be had."""

    id: str
    document: Mapping[str, Any]

    @property
    def key(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """A decision with all that it follows from."""

    KEPT_S: ClassVar[float] = 7 * 24 * 3600.0
    """How long decisions that did something are known, the newest of them at most :attr:`MOST`."""

    MOST: ClassVar[int] = 1_000

    number: int
    at: float
    policy: str
    version: int
    mode: str
    terms: str
    window: Mapping[str, Any]
    memory: Mapping[str, Any]
    """Of the policy, before it decided."""

    decision: Mapping[str, Any]
    """What the policy decided."""

    guarded: Mapping[str, Any]
    """What the guard rails left of it."""

    steps: tuple[Mapping[str, Any], ...]
    """What is to be done, in this order; none if it is only recommended."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """With what the policy was made."""

    @property
    def key(self) -> str:
        return str(self.number)


class StepState(StrEnum):
    """How far a step is."""

    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepChanged:
    """A step of a decision has begun, is done or has failed."""

    decision: int
    step: int
    state: StepState
    at: float
    result: str = ""
    """A machine, a snapshot, or why it failed."""

    @property
    def key(self) -> str:
        return f"{self.decision}/{self.step}"


class DecisionOutcome(StrEnum):
    """What became of a decision."""

    DONE = "done"
    ABANDONED = "abandoned"
    RECOMMENDED = "recommended"
    """Nothing was to be done."""


@dataclass(frozen=True, slots=True)
class DecisionEnded:
    """Nothing is left to be done for a decision."""

    number: int
    at: float
    outcome: DecisionOutcome
    reason: str = ""

    @property
    def key(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class DecisionVerified:
    """What a decision expected, and what was measured a window after it had taken effect."""

    number: int
    at: float
    predicted: Mapping[str, float]
    measured: Mapping[str, float]
    error: float | None
    """The largest relative difference; none if nothing could be compared."""

    @property
    def key(self) -> str:
        return str(self.number)
