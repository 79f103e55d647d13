"""``replace`` and ``replace-prune`` (MR and MPR of SHARE): a change stops the groups it links and launches others."""

from __future__ import annotations

from headgate.sharing.change import GraphChange
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies.base import NO_TASKS, GroupSteps, QueryGroup, Units, parts
from headgate.sharing.strategies.incremental import pause, resume

__all__ = ["Replace", "ReplacePrune"]


class Replace:
    """After a withdrawal, paused tasks stay."""

    def submit(self, units: Units, change: GraphChange) -> tuple[Units, GroupSteps]:
        after, resumed = resume(units, change.own_tasks)
        fresh = change.own_tasks - resumed
        if not fresh:
            return after, GroupSteps(resumed=resumed)
        linked = after.containing(change.shared_tasks | resumed)
        stopped = tuple(units.groups[number] for number in linked)
        old = [after.groups[number] for number in linked]
        active, paused = (group.active for group in old), (group.paused for group in old)
        group = QueryGroup(active=fresh.union(*active), paused=NO_TASKS.union(*paused))
        return after.with_groups([group], without=linked), GroupSteps(stopped, (group,), resumed=resumed)

    def withdraw(self, units: Units, change: GraphChange, after: RunningSet) -> tuple[Units, GroupSteps]:
        del after
        return pause(units, change.own_tasks)


class ReplacePrune(Replace):
    """A withdrawal launches the groups again without the tasks that nobody needs."""

    def withdraw(self, units: Units, change: GraphChange, after: RunningSet) -> tuple[Units, GroupSteps]:
        numbers = units.containing(change.own_tasks)
        stopped = tuple(units.groups[number] for number in numbers)
        launched = tuple(group for old in stopped for group in parts(old.active - change.own_tasks, after))
        return units.with_groups(launched, without=numbers), GroupSteps(stopped, launched)
