"""A dataflow's past: a bounded copy of it, beside the running tasks, for the rows that have passed already. Pure.

The copy's sources are marked, so that their signatures, and those of all tasks behind them, are no running task's.
Copies of several dataflows with one mark share their tasks as dataflows do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, TaskId

__all__ = ["dataflow_of", "handed_in", "handing_mark", "marked", "past_name", "past_of"]

_PAST = " (past)"
"""No name of a dataflow has a blank."""


def past_name(name: DataflowName) -> DataflowName:
    """The name of the copy."""
    return DataflowName(f"{name}{_PAST}")


def dataflow_of(name: DataflowName) -> DataflowName:
    """The dataflow that people know, of its name or its copy's.

    >>> dataflow_of(past_name("a")), dataflow_of("a")
    ('a', 'a')
    """
    return DataflowName(name.removesuffix(_PAST)) if name.endswith(_PAST) else name


def marked(dataflow: Dataflow, marks: Mapping[TaskId, str]) -> Dataflow:
    """The dataflow with some tasks confined to those with the same mark.

    >>> from headgate.documents import parse
    >>> flow = parse("tasks: [{id: r, type: rate}, {id: w, type: write_console, inputs: [r]}]", "yaml").dataflow
    >>> [task.scope for task in marked(flow, {"r": "from 7"}).tasks]
    ['from 7', '']
    """
    if not marks:
        return dataflow
    tasks = (
        replace(task, scope=f"{dataflow.scope(task)} {marks[task.id]}".strip(), share=None)
        if task.id in marks
        else task
        for task in dataflow.tasks
    )
    return replace(dataflow, tasks=tuple(tasks))


_HANDED = "handed"


def handing_mark(number: int) -> str:
    """What marks tasks with state that a dataflow has for itself, since it came with snapshot ``number``."""
    return f"{_HANDED}@{number}"


def handed_in(scope: str) -> tuple[str, ...]:
    """The marks in a scope of tasks that a past is handed to.

    >>> handed_in(f"mine since 5 {handing_mark(7)}"), handed_in("from 7")
    (('handed@7',), ())
    """
    return tuple(word for word in scope.split() if word.startswith(f"{_HANDED}@"))


def past_of(
    dataflow: Dataflow, late: Mapping[TaskId, str], sinks: Collection[TaskId], handed: Collection[TaskId] = ()
) -> Dataflow | None:
    """The copy: what rows of ``late`` sources, with their marks, reach on their way to sinks; ``None`` if none.

    It ends before the tasks that its rows are ``handed`` to.
    """
    reached = set(late)
    readers: dict[TaskId, list[TaskId]] = {}
    for stream in dataflow.streams:
        if stream.target not in handed:
            readers.setdefault(stream.source, []).append(stream.target)
    waiting = list(late)
    while waiting:
        fresh = [task for task in readers.get(waiting.pop(), ()) if task not in reached]
        reached.update(fresh)
        waiting += fresh
    leading = reached & {*sinks, *(stream.source for stream in dataflow.streams if stream.target in handed)}
    waiting = list(leading)
    before: dict[TaskId, list[TaskId]] = {}
    for stream in dataflow.streams:
        before.setdefault(stream.target, []).append(stream.source)
    while waiting:
        fresh = [task for task in before.get(waiting.pop(), ()) if task in reached and task not in leading]
        leading.update(fresh)
        waiting += fresh
    if not leading:
        return None
    kept = marked(dataflow, {task: mark for task, mark in late.items() if task in leading})
    return replace(
        kept,
        name=past_name(dataflow.name),
        tasks=tuple(task for task in kept.tasks if task.id in leading),
        streams=tuple(s for s in kept.streams if s.source in leading and s.target in leading),
    )
