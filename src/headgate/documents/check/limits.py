"""How large a dataflow may be: what one takes to plan and to run, its neighbours wait for."""

from __future__ import annotations

from headgate.documents.check.report import Report, TaskInCheck
from headgate.documents.check.tasks import Tasks
from headgate.model.graph import topological_order
from headgate.model.names import TaskId
from headgate.model.sql.permitted import operators_of
from headgate.model.stream import ByPredicate
from headgate.model.work import RowExpression
from headgate.tasks.registry import Registry

__all__ = ["MAX_CHAIN", "MAX_TASKS", "check_chains", "check_size"]

MAX_TASKS = 100_000
"""Tasks of a dataflow."""

MAX_CHAIN = 1_000
"""Operators of expressions that are computed one from the other, whichever tasks they are in.

Spark makes one expression of them and works on it by recursion: beyond some thousand it fails, for all that run in the
same query.
"""


def check_size(tasks: int, report: Report) -> bool:
    """Report a dataflow of too many tasks; returns whether it may be looked at further."""
    if tasks > MAX_TASKS:
        message = f"the dataflow has {tasks:,} tasks"
        report.fault("TOO_LARGE", ("tasks",), message, expected=f"at most {MAX_TASKS:,}; make several dataflows of it")
    return tasks <= MAX_TASKS


def check_chains(tasks: Tasks, registry: Registry, report: Report) -> None:
    """Report the first task of each chain of expressions that is too long."""
    known = tasks.known
    order = topological_order({id: [s.source for _, s in task.feeds if not s.feedback] for id, task in known.items()})
    lengths: dict[TaskId, int] = {}
    for id in order:
        task = known[id]
        sources = [s for _, s in task.feeds if not s.feedback]
        tested = sum(operators_of(s.routing.where) for s in sources if isinstance(s.routing, ByPredicate))
        before = max((lengths.get(s.source, 0) for s in sources), default=0)
        lengths[id] = before + tested + _own(task, registry) if _is_fused(task, registry) else 0
        if before <= MAX_CHAIN < lengths[id]:
            message = f"the expressions up to this task have {lengths[id]:,} operators, one computed from the other"
            report.fault("TOO_LARGE", task.path, message, id, f"at most {MAX_CHAIN:,} in a chain of tasks")


def _is_fused(task: TaskInCheck, registry: Registry) -> bool:
    return any(isinstance(registry[alternate.type].work, RowExpression) for alternate in task.alternates)


def _own(task: TaskInCheck, registry: Registry) -> int:
    """The most operators that an alternate's expressions put on top of what comes in."""
    return max(
        (
            max((operators_of(text) for text in _texts(options.model_dump())), default=0)
            for position, (_, options) in enumerate(task.configs)
            if isinstance(registry[task.alternates[position].type].work, RowExpression)
        ),
        default=0,
    )


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    return [text for item in value for text in _texts(item)] if isinstance(value, list | tuple) else []
