"""Which alternate of a task is the active one, since when, by whom it was chosen and why."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ActiveAlternate", "AlternateChoice"]


@dataclass(frozen=True, slots=True)
class AlternateChoice:
    """A choice of an alternate, as snapshots keep it."""

    alternate: str
    """What the alternate does, as a text: dataflows that share the task may call it by different names."""

    at: float
    """When it was chosen, in seconds since 1970."""

    by: str
    """A person by name, or ``policy`` with the policy's name; ``headgate`` when the dataflow was submitted."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class ActiveAlternate:
    """The active alternate of a task of a dataflow, by the names that the dataflow has for them."""

    alternate: str
    type: str
    value: float
    """Relative to the best."""

    alternates: tuple[str, ...]
    since: float | None = None
    """In seconds since 1970; none of a task without a choice."""

    by: str = ""
    reason: str = ""
    held: bool = False
    """Whether no policy chooses for the task, because a person has."""
