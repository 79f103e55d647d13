"""The part of a fragment that rows run through which one of its tasks had refused: that task and all behind it.

Only what the dataflows of these rows use is run: others had the rows, or never were to have them. What such a dataflow
shares with one that is not to get the rows is refused as a whole, because its rows are there for all who share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from headgate.errors import InputError
from headgate.model.names import DataflowName, Signature
from headgate.model.on_error import OnError
from headgate.model.task_type import Role
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Feed, Fragment, Kind, Topic

__all__ = ["REDRIVEN", "RedrivenPart", "redriven_part"]

REDRIVEN = Signature("redriven")
"""Stands for where the rows come from."""


@dataclass(frozen=True, slots=True)
class RedrivenPart:
    """A plan in which a fragment begins with a task's rows."""

    plan: CompiledPlan
    fragment: str
    source: Signature
    """What feeds the task in the running plan; its columns are those of the rows."""

    guarded: frozenset[str]
    """The tasks that go on without rows for which they raise."""


def redriven_part(plan: CompiledPlan, home: str, task: CompiledTask, dataflows: AbstractSet[str]) -> RedrivenPart:
    """What is to run; raises :class:`InputError` where the rows would also reach somebody else."""
    fragment, feed = plan.fragments[home], _only_feed(task)
    entry = replace(task, feeds=(Feed(REDRIVEN, "out", feed.target_port, feed.where, None, False),))
    running = _behind(plan, fragment, task, dataflows)
    reached = {task.signature, *running}
    writes = tuple(topic for topic in fragment.writes if _is_reached(plan, topic, reached, dataflows))
    part = Fragment(home, Kind.SOURCE, (REDRIVEN,), (task.signature, *running), writes=writes)
    tasks = plan.tasks.updated({task.signature: entry})
    guarded = frozenset(one for one in reached if plan.tasks[one].on_error is not OnError.FAIL)
    changed = replace(plan, tasks=tasks, fragments=plan.fragments.updated({home: part}))
    return RedrivenPart(changed, home, feed.source, guarded)


def _only_feed(task: CompiledTask) -> Feed:
    """What feeds a task, if all that does is alike; raises where it is not known which way a row came."""
    ways = {(feed.target_port, feed.where) for feed in task.feeds}
    if len(ways) != 1 or all(feed.feedback for feed in task.feeds):
        message = f"task '{task.name}' has several streams into it, and it is not known by which a row came"
        raise InputError("CANNOT_REDRIVE", f"{message}; export the rows, and put them where its sources read")
    return next(feed for feed in task.feeds if not feed.feedback)


def _behind(plan: CompiledPlan, fragment: Fragment, task: CompiledTask, dataflows: AbstractSet[str]) -> list[Signature]:
    """What a task's rows reach within its fragment, of what the dataflows use; sinks must be theirs alone."""
    reached, order = {task.signature}, []
    for signature in fragment.tasks:
        one = plan.tasks[signature]
        fed = any(feed.source in reached and not feed.feedback for feed in one.feeds)
        if fed and not dataflows.isdisjoint(one.used_by):
            if one.role is Role.SINK:
                _check_shared(f"sink '{one.name}'", one.used_by, dataflows)
            reached.add(signature)
            order.append(signature)
    return order


def _is_reached(plan: CompiledPlan, topic: Topic, reached: set[Signature], dataflows: AbstractSet[str]) -> bool:
    """Whether rows go into a topic; raises if somebody reads it who is not to get them."""
    if reached.isdisjoint(feed.source for feed in topic.feeds) or topic.reader not in plan.fragments:
        return False
    readers = [plan.tasks[root] for root in plan.fragments[topic.reader].roots if root in plan.tasks]
    users = {user for one in readers for user in one.used_by}
    if dataflows.isdisjoint(users):
        return False
    _check_shared(f"task '{readers[0].name}'", users, dataflows)
    return True


def _check_shared(what: str, users: Iterable[DataflowName], dataflows: AbstractSet[str]) -> None:
    others = sorted({str(user) for user in users} - {str(one) for one in dataflows})
    if others:
        message = f"{what} is shared with {', '.join(others)}, for which these rows were not refused"
        raise InputError("CANNOT_REDRIVE", f"{message}; export the rows instead")
