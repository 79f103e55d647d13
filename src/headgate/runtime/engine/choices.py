"""Choices about how running tasks are done, as a value that becomes one plan snapshot or none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headgate.errors import InputError
from headgate.model.alternate_choice import ActiveAlternate
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.runtime.compile.plan import CompiledPlan, alternate_key
from headgate.runtime.engine.find_task import check_limit, check_partitions, chosen_alternate, task_of
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.snapshot import Snapshot

__all__ = ["Choices", "active_alternates"]

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

    levels: Mapping[str, ServiceLevel | None] = field(default_factory=lambda: _NONE)
    """Service levels of dataflows; ``None`` is what its author wrote."""

    by: str = ""
    """Who chooses: a person by name, or ``policy`` with its name."""

    reason: str = ""

    def of(self, snapshot: Snapshot, plan: CompiledPlan) -> tuple[PendingChange, frozenset[Signature]]:
        """The snapshot with these choices, and the sources whose queries must start again for their limits.

        Raises :class:`~headgate.errors.InputError` for what cannot be chosen.
        """
        touched = [*self._touched(snapshot)]
        copied = {copy: way for task, way in self.active.items() for copy in snapshot.copies_of(task)}
        touched += copied
        colder = frozenset(task for task, rows in self.limits.items() if not _is_hot(snapshot, plan, task, rows))
        resting = {snapshot.find(name).dataflow.name for name, wanted in self.paused.items() if wanted}
        for name in resting - snapshot.paused:
            _check_pause(snapshot, name)
        changes = {
            "active": {**snapshot.active, **_keys(snapshot, {**self.active, **copied})},
            "partitions": _merged(snapshot.partitions, self.partitions),
            "limits": _merged(snapshot.limits, self.limits),
            "paused": (snapshot.paused | resting) - {name for name, wanted in self.paused.items() if not wanted},
            "held": (snapshot.held | {task for task, by in self.held.items() if by})
            - {task for task, by in self.held.items() if not by},
            "levels": self._levels(snapshot),
        }
        change = PendingChange(snapshot, by=self.by, reason=self.reason)
        return change.chosen(touched, **changes), colder

    def _levels(self, snapshot: Snapshot) -> dict[DataflowName, ServiceLevel]:
        changed = {snapshot.find(name).dataflow.name: level for name, level in self.levels.items()}
        every = {**snapshot.levels, **changed}
        return {name: level for name, level in every.items() if level is not None}

    def _touched(self, snapshot: Snapshot) -> list[Signature]:
        """The tasks that are compiled anew."""
        for count in self.partitions.values():
            check_partitions(count)
        for task in (*self.partitions, *self.held):
            task_of(snapshot, task)
        flows = [snapshot.find(name) for name in self.paused]
        return [*self.active, *self.partitions, *(task for flow in flows for task in flow.signatures.values())]


def _check_pause(snapshot: Snapshot, name: DataflowName) -> None:
    """Raise for a dataflow whose own state gets the past now: a pause would end that state."""
    catch_up = snapshot.catch_ups.get(name)
    if catch_up is not None and catch_up.handed:
        message = f"dataflow '{name}' is catching up; pause it when it has, or withdraw it"
        raise InputError("CATCHING_UP", message)


def _keys(snapshot: Snapshot, ways: Mapping[Signature, str]) -> dict[Signature, str]:
    return {task: chosen_alternate(*task_of(snapshot, task), way) for task, way in ways.items()}


def _is_hot(snapshot: Snapshot, plan: CompiledPlan, task: Signature, rows: int | None) -> bool:
    dataflow, known = task_of(snapshot, task)
    return check_limit(plan, task, dataflow, known.id, rows)


def _merged(kept: Mapping[Signature, int], chosen: Mapping[Signature, int | None]) -> dict[Signature, int]:
    every = {**kept, **chosen}
    return {task: count for task, count in every.items() if count is not None}


def active_alternates(snapshot: Snapshot, plan: CompiledPlan, name: str) -> dict[TaskId, ActiveAlternate]:
    """The active alternate of each task of a dataflow, by the names that it has for them; of a paused one, none."""
    submitted = snapshot.find(name)
    by_id = {task.id: task for task in submitted.dataflow.tasks}
    active = {}
    for task, signature in submitted.signatures.items():
        running = plan.tasks.get(signature)
        if running is None:
            continue
        ways, key = by_id[task].alternates, alternate_key(running.alternate)
        place = next((place for place, way in enumerate(ways) if alternate_key(way) == key), 0)
        choice = snapshot.chosen.get(signature)
        about = () if choice is None else (choice.at, choice.by, choice.reason, signature in snapshot.held)
        value = by_id[task].relative_values[place]
        names = tuple(way.name for way in ways)
        active[task] = ActiveAlternate(ways[place].name, running.alternate.type, value, names, *about)
    return active
