"""What two dataflows have in common, and what only one of them does."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.sharing.deduplicate import deduplicate

__all__ = ["Overlap", "overlap"]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Tasks of two dataflows: equivalent pairs, and those that only one has."""

    equivalent: tuple[tuple[TaskId, TaskId], ...]
    only_first: tuple[TaskId, ...]
    only_second: tuple[TaskId, ...]

    @property
    def shared(self) -> float:
        """The share of the second dataflow's tasks that run already when the first one does."""
        return len(self.equivalent) / max(len(self.equivalent) + len(self.only_second), 1)


def overlap(first: Dataflow, second: Dataflow) -> Overlap:
    """Find the equivalent tasks of two dataflows (each without its own duplicates)."""
    one, two = deduplicate(first).signatures, deduplicate(second).signatures
    by_signature = {signature: task for task, signature in one.items()}
    signatures = set(two.values())
    return Overlap(
        equivalent=tuple(
            (by_signature[signature], task) for task, signature in two.items() if signature in by_signature
        ),
        only_first=tuple(task for task, signature in one.items() if signature not in signatures),
        only_second=tuple(task for task, signature in two.items() if signature not in by_signature),
    )
