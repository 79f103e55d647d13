"""Choices about how running tasks are done, as a value that becomes one plan snapshot or none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.engine.find_task import check_limit, check_partitions, chosen_alternate, task_of
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.snapshot import Snapshot

__all__ = ["Choices"]

_NONE: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Choices:
    """What is to be chosen; what is not named stays as it is."""

    active: Mapping[Signature, str] = field(default_factory=lambda: _NONE)
    """Alternates, by their names."""

    partitions: Mapping[Signature, int | None] = field(default_factory=lambda: _NONE)
    """``None`` leaves it to what feeds the task."""

    limits: Mapping[Signature, int | None] = field(default_factory=lambda: _NONE)
    """Rows per trigger of sources and stateful tasks; ``None`` lifts a limit."""

    paused: Mapping[str, bool] = field(default_factory=lambda: _NONE)
    """Dataflows, by their names."""

    held: Mapping[Signature, bool] = field(default_factory=lambda: _NONE)
    """Whether a person has chosen for a task, so that no policy does."""

    def of(self, snapshot: Snapshot, plan: CompiledPlan) -> tuple[PendingChange, frozenset[Signature]]:
        """The snapshot with these choices, and the sources whose queries must start again for their limits.

        Raises :class:`~headgate.errors.InputError` for what cannot be chosen.
        """
        touched = [*self._touched(snapshot)]
        colder = frozenset(task for task, rows in self.limits.items() if not _is_hot(snapshot, plan, task, rows))
        paused = snapshot.paused | {snapshot.find(name).dataflow.name for name, wanted in self.paused.items() if wanted}
        changes = {
            "active": {**snapshot.active, **{task: _key(snapshot, task, way) for task, way in self.active.items()}},
            "partitions": _merged(snapshot.partitions, self.partitions),
            "limits": _merged(snapshot.limits, self.limits),
            "paused": paused - {name for name, wanted in self.paused.items() if not wanted},
            "held": (snapshot.held | {task for task, by in self.held.items() if by})
            - {task for task, by in self.held.items() if not by},
        }
        return PendingChange(snapshot).chosen(touched, **changes), colder

    def _touched(self, snapshot: Snapshot) -> list[Signature]:
        """The tasks that are compiled anew."""
        for count in self.partitions.values():
            check_partitions(count)
        for task in (*self.partitions, *self.held):
            task_of(snapshot, task)
        flows = [snapshot.find(name) for name in self.paused]
        return [*self.active, *self.partitions, *(task for flow in flows for task in flow.signatures.values())]


def _key(snapshot: Snapshot, task: Signature, alternate: str) -> str:
    return chosen_alternate(*task_of(snapshot, task), alternate)


def _is_hot(snapshot: Snapshot, plan: CompiledPlan, task: Signature, rows: int | None) -> bool:
    dataflow, known = task_of(snapshot, task)
    return check_limit(plan, task, dataflow, known.id, rows)


def _merged(kept: Mapping[Signature, int], chosen: Mapping[Signature, int | None]) -> dict[Signature, int]:
    every = {**kept, **chosen}
    return {task: count for task, count in every.items() if count is not None}
