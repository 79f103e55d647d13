"""Which streams of a fragment several tasks read, and which tasks begin a frame of their own."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.model.names import Signature
from headgate.model.task_type import Role
from headgate.model.work import RowExpression
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Fragment

__all__ = ["branching", "leading_out", "starts_frame"]


def starts_frame(task: CompiledTask) -> bool:
    """Whether a task cannot be a column of what feeds it."""
    row_wise = isinstance(task.work, RowExpression) or task.role is Role.SINK
    return not row_wise or (task.role is not Role.SINK and len(task.feeds) > 1) or task.partitions is not None


def branching(
    plan: CompiledPlan, fragment: Fragment, staged: frozenset[Signature]
) -> tuple[set[tuple[str, str]], set[str]]:
    """The streams that pay to be stored: several read them, and not all as columns of one frame.

    And the tasks behind which a frame begins, whether or not others read them.
    """
    readers: dict[tuple[str, str], list[bool]] = {}
    for signature in fragment.tasks:
        task = plan.tasks[signature]
        for feed in task.feeds:
            starts = starts_frame(task) and signature not in staged
            readers.setdefault((feed.source, feed.source_port), []).append(starts)
    for topic in fragment.writes:
        for feed in topic.feeds:
            readers.setdefault((feed.source, feed.source_port), []).append(False)
    stored = {stream for stream, starting in readers.items() if len(starting) > 1 and any(starting)}
    return stored, {source for (source, _), starting in readers.items() if any(starting)}


def leading_out(plan: CompiledPlan, ends: Iterable[Signature]) -> set[Signature]:
    """Some tasks of a plan, and those whose rows reach one of them."""
    leading: set[Signature] = set()
    waiting = list(ends)
    while waiting:
        task = waiting.pop()
        if task not in leading and task in plan.tasks:
            leading.add(task)
            waiting += [feed.source for feed in plan.tasks[task].feeds]
    return leading
