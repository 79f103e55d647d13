"""What strategies share: groups of tasks that are launched and stopped as one, and the steps between two states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from headgate.model.names import DataflowName, Signature
from headgate.sharing.change import GraphChange
from headgate.sharing.running import RunningSet

__all__ = ["NO_TASKS", "GroupSteps", "QueryGroup", "Strategy", "Tasks", "Units", "parts"]

Tasks = frozenset[Signature]
NO_TASKS: Tasks = frozenset()


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Tasks that are launched and stopped as one."""

    active: Tasks = NO_TASKS
    paused: Tasks = NO_TASKS
    proxies: Tasks = NO_TASKS
    """The running tasks of other groups whose output it reads, each through a proxy task of its own."""

    @property
    def tasks(self) -> Tasks:
        return self.active | self.paused

    @property
    def size(self) -> int:
        """How many tasks take up room, proxies and paused ones included."""
        return len(self.active) + len(self.paused) + len(self.proxies)


@dataclass(frozen=True, slots=True)
class GroupSteps:
    """What has to be done, in this order: stop, launch, then change running groups."""

    stopped: tuple[QueryGroup, ...] = ()
    launched: tuple[QueryGroup, ...] = ()
    paused: Tasks = NO_TASKS
    resumed: Tasks = NO_TASKS
    joined: Tasks = NO_TASKS
    """Tasks that join running groups in place."""

    left: Tasks = NO_TASKS
    """Tasks that leave running groups in place."""


@dataclass(frozen=True, slots=True)
class Units:
    """The query groups that there are, by number."""

    groups: Mapping[int, QueryGroup] = field(default_factory=dict)
    of_dataflow: Mapping[DataflowName, int] = field(default_factory=dict)
    """The group of each dataflow, where dataflows have groups of their own."""

    made: int = 0

    @property
    def active(self) -> int:
        """How many tasks are at work, proxies not counted."""
        return sum(len(group.active) for group in self.groups.values())

    def workers(self, packing: int = 8) -> int:
        """How many workers the groups take, with at most ``packing`` tasks of one group on a worker."""
        return sum(-(-group.size // packing) for group in self.groups.values())

    def containing(self, tasks: Tasks) -> list[int]:
        """The groups that contain any of the tasks, at work or paused."""
        return [number for number, group in self.groups.items() if not tasks.isdisjoint(group.tasks)]

    def with_groups(self, groups: Iterable[QueryGroup], without: Iterable[int] = ()) -> Units:
        gone = set(without)
        kept = {number: group for number, group in self.groups.items() if number not in gone}
        added = dict(enumerate(groups, self.made + 1))
        return replace(self, groups=kept | added, made=self.made + len(added))

    def changed(self, groups: Mapping[int, QueryGroup]) -> Units:
        return replace(self, groups={**self.groups, **groups})


class Strategy(Protocol):
    """How submissions and withdrawals change the query groups."""

    def submit(self, units: Units, change: GraphChange) -> tuple[Units, GroupSteps]: ...
    def withdraw(self, units: Units, change: GraphChange, after: RunningSet) -> tuple[Units, GroupSteps]: ...


def parts(tasks: Tasks, after: RunningSet) -> list[QueryGroup]:
    """Tasks by the connected component of the running graph, a group each."""
    groups: dict[int, set[Signature]] = {}
    for signature in sorted(tasks):
        groups.setdefault(after.components.of(after.tasks[signature].running.root), set()).add(signature)
    return [QueryGroup(active=frozenset(part)) for part in groups.values()]
