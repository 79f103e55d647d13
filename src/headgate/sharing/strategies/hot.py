"""``hot``: tasks join and leave running groups in place; only sources are launched and stopped."""

from __future__ import annotations

from headgate.sharing.change import GraphChange
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies.base import GroupSteps, QueryGroup, Tasks, Units, parts

__all__ = ["Hot"]


class Hot:
    def submit(self, units: Units, change: GraphChange) -> tuple[Units, GroupSteps]:
        own = change.own_tasks
        if not own:
            return units, GroupSteps()
        sources = _sources(change)
        linked = units.containing(change.shared_tasks)
        whole = QueryGroup(active=own.union(*(units.groups[number].active for number in linked)))
        steps = GroupSteps(launched=(QueryGroup(sources),) if sources else (), joined=own - sources)
        return units.with_groups([whole], without=linked), steps

    def withdraw(self, units: Units, change: GraphChange, after: RunningSet) -> tuple[Units, GroupSteps]:
        own, sources = change.own_tasks, _sources(change)
        numbers = units.containing(own)
        groups = [group for number in numbers for group in parts(units.groups[number].active - own, after)]
        steps = GroupSteps(stopped=(QueryGroup(sources),) if sources else (), left=own - sources)
        return units.with_groups(groups, without=numbers), steps


def _sources(change: GraphChange) -> Tasks:
    """The sources that come or go; their queries start and end at the same time, side by side."""
    return frozenset(task.signature for task in change.own if task.root == task.signature)
