"""How large a dataflow may be: what one takes to plan and to run, its neighbours wait for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from headgate.documents.check.report import Report, TaskInCheck
from headgate.documents.check.tasks import Tasks
from headgate.model.graph import topological_order
from headgate.model.names import TaskId
from headgate.model.sql.growth import MOST_GROWTH, growth_of
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
    growths: dict[TaskId, dict[str, float]] = {}
    for id in order:
        task = known[id]
        sources = [s for _, s in task.feeds if not s.feedback]
        tested = sum(operators_of(s.routing.where) for s in sources if isinstance(s.routing, ByPredicate))
        before = max((lengths.get(s.source, 0) for s in sources), default=0)
        lengths[id] = before + tested + _own(task, registry) if _is_fused(task, registry) else 0
        if before <= MAX_CHAIN < lengths[id]:
            message = f"the expressions up to this task have {lengths[id]:,} operators, one computed from the other"
            report.fault("TOO_LARGE", task.path, message, id, f"at most {MAX_CHAIN:,} in a chain of tasks")
        before_it = _merged([growths.get(s.source, {}) for s in sources])
        growths[id] = _grown(task, before_it)
        most = max(growths[id].values(), default=1.0)
        if max(before_it.values(), default=1.0) <= MOST_GROWTH < most:
            column = max(growths[id], key=growths[id].__getitem__)
            times = "without end" if most == math.inf else f"{most:,.0f} times"
            message = f"column '{column}' would repeat what comes in {times}"
            report.fault("TOO_LARGE", task.path, message, id, f"at most {MOST_GROWTH:,} times in a chain of tasks")


def _merged(growths: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Of each column the most."""
    merged: dict[str, float] = {}
    for one in growths:
        merged |= {name: max(growth, merged.get(name, 1.0)) for name, growth in one.items()}
    return merged


def _grown(task: TaskInCheck, before: Mapping[str, float]) -> dict[str, float]:
    """By column, how often it repeats what has come into the dataflow, after a task; 1 where nothing is said."""
    after = dict(before)
    for position, (_, options) in enumerate(task.configs):
        columns = getattr(options, "columns", None)
        if not isinstance(columns, Mapping):
            continue
        if task.alternates[position].type == "rename":
            after |= {new.casefold(): before.get(old.casefold(), 1.0) for old, new in columns.items()}
        else:
            made = {name.casefold(): growth_of(text, before) for name, text in columns.items() if isinstance(text, str)}
            after |= {name: growth for name, growth in made.items() if growth > 1.0 or name in after}
    return after


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
