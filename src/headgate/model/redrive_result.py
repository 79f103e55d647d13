"""What came of offering rows that failed to their task again."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RedriveResult"]


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """How many rows were offered, and how many the task has refused again."""

    dataflows: tuple[str, ...]
    """Whose rows they were."""

    task: str
    rows: int
    refused: int
    snapshot: int
    """The plan snapshot that they ran."""
