"""What a strategy keeps from being shared, by confining tasks to their own dataflow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import TaskId
from headgate.model.share import Share, scope_of
from headgate.model.task import Task
from headgate.model.task_type import Role, State
from headgate.tasks.registry import Registry

__all__ = ["confined", "met_in_a_batch"]


def confined(dataflow: Dataflow, tasks: Collection[TaskId] | None = None) -> Dataflow:
    """The dataflow with some of its tasks, or all of them, confined to it.

    >>> from headgate.documents import parse
    >>> flow = parse("tasks: [{id: r, type: rate}, {id: w, type: write_console, inputs: [r]}]", "yaml").dataflow
    >>> [task.share.value for task in confined(flow).tasks]
    ['never', 'never']
    """
    circle = scope_of(Share.NEVER, dataflow.owner, dataflow.name)

    def alone(task: Task) -> Task:
        return replace(task, scope=f"{circle} {task.scope}") if task.scope else replace(task, share=Share.NEVER)

    tasks_confined = (alone(task) if tasks is None or task.id in tasks else task for task in dataflow.tasks)
    return replace(dataflow, tasks=tuple(tasks_confined))


def met_in_a_batch(dataflow: Dataflow, new: Collection[TaskId], registry: Registry) -> frozenset[TaskId]:
    """The tasks that must run in one query with a new one, and of which some run elsewhere already.

    A stateless task with several input ports sees all of them within a micro-batch, so all that lies between it and the
    sources or stateful tasks before it has to be in one query. Where new tasks are a query of their own, they cannot
    read part of that from another one.
    """
    graph, together = Graph(dataflow), set[TaskId]()
    stateless = {
        task.id
        for task in dataflow.tasks
        if registry[task.type].state is State.NONE and registry[task.type].role is not Role.SOURCE
    }
    for task in dataflow.tasks:
        ports = task.ports or registry[task.type].ports
        if task.id in new and task.id in stateless and len(ports.inputs) > 1:
            before = _before(graph, task.id, stateless)
            together |= set() if before <= set(new) else before
    return frozenset(together)


def _before(graph: Graph, task: TaskId, stateless: Collection[TaskId]) -> set[TaskId]:
    before, waiting = set[TaskId](), [task]
    while waiting:
        for stream in graph.feeds[waiting.pop()]:
            if not stream.feedback and stream.source in stateless and stream.source not in before:
                before.add(stream.source)
                waiting.append(stream.source)
    return before
