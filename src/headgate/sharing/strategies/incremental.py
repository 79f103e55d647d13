"""``incremental`` (RU of SHARE): new tasks become a group, fed by proxies; tasks that nobody needs are paused."""

from __future__ import annotations

from dataclasses import replace

from headgate.sharing.change import GraphChange
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies.base import NO_TASKS, GroupSteps, QueryGroup, Tasks, Units

__all__ = ["Incremental", "pause", "resume"]


class Incremental:
    def submit(self, units: Units, change: GraphChange) -> tuple[Units, GroupSteps]:
        units, resumed = resume(units, change.own_tasks)
        fresh = change.own_tasks - resumed
        if not fresh:
            return units, GroupSteps(resumed=resumed)
        feeds = (stream.source for task in change.own if task.signature in fresh for stream in task.feeds)
        group = QueryGroup(active=fresh, proxies=frozenset(feeds) - fresh)
        return units.with_groups([group]), GroupSteps(launched=(group,), resumed=resumed)

    def withdraw(self, units: Units, change: GraphChange, after: RunningSet) -> tuple[Units, GroupSteps]:
        del after
        return pause(units, change.own_tasks)


def resume(units: Units, wanted: Tasks) -> tuple[Units, Tasks]:
    """Resume those of the wanted tasks that are paused, in place."""
    changed, resumed = {}, NO_TASKS
    for number in units.containing(wanted):
        group = units.groups[number]
        back = group.paused & wanted
        changed[number] = replace(group, active=group.active | back, paused=group.paused - back)
        resumed |= back
    return units.changed(changed), resumed


def pause(units: Units, tasks: Tasks) -> tuple[Units, GroupSteps]:
    """Pause tasks in place."""
    changed = {}
    for number in units.containing(tasks):
        group = units.groups[number]
        changed[number] = replace(group, active=group.active - tasks, paused=group.paused | (group.active & tasks))
    return units.changed(changed), GroupSteps(paused=tasks)
