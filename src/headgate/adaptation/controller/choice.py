"""Which policy decides for an engine, whether that is done, and how often it decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from headgate.adaptation.controller.guards import GuardRails
from headgate.adaptation.controller.windows import EpochGoal
from headgate.errors import BadValue
from headgate.store.decision_entries import PolicyChosen

__all__ = ["ControlSettings", "PolicyChoice", "PolicyMode"]


class PolicyMode(StrEnum):
    """Whether an engine decides by itself."""

    OFF = "off"
    """Nothing is decided."""

    RECOMMEND = "recommend"
    """What would be done is written down, and nothing is done."""

    AUTO = "auto"
    """What is decided is done."""


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """What decides."""

    policy: str
    mode: PolicyMode = PolicyMode.OFF
    rails: GuardRails = field(default_factory=GuardRails)
    by: str = ""
    reason: str = ""

    @classmethod
    def of(cls, entry: PolicyChosen) -> PolicyChoice:
        """As the journal has it."""
        return cls(entry.policy, PolicyMode(entry.mode), GuardRails.of(entry.rails), entry.by, entry.reason)

    def entry(self, at: float, engine: str) -> PolicyChosen:
        """For the journal."""
        return PolicyChosen(at, self.policy, self.mode.value, self.rails.document(), self.by, self.reason, engine)


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """How often an engine decides, and on how much."""

    every_s: float = 60.0
    """From one decision to the next; when a machine is lost or more comes than can be done, at once."""

    window_s: float = 60.0
    """What a decision is based on."""

    epochs: EpochGoal = field(default_factory=lambda: EpochGoal(0.5, 2.0))

    def __post_init__(self) -> None:
        for name in ("every_s", "window_s"):
            if not 1 <= getattr(self, name) <= 24 * 3_600:
                raise BadValue(f"{name} is {getattr(self, name):g}", "seconds from 1 to 86,400")
