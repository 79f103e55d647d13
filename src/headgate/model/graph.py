"""The graph of a dataflow: neighbours, topological order and cycles.

Everything here costs time linear in tasks plus streams and recurses nowhere, so a chain of 100,000 tasks is fine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.stream import Stream
from headgate.model.task import Task

__all__ = ["Graph", "cycles", "loops", "topological_order"]


Node = TypeVar("Node", bound=str)


class Graph:
    """A dataflow's tasks by id, with the streams that enter and leave each."""

    __slots__ = ("consumers", "feeds", "tasks")

    def __init__(self, dataflow: Dataflow) -> None:
        self.tasks: Mapping[TaskId, Task] = {task.id: task for task in dataflow.tasks}
        self.feeds: Mapping[TaskId, list[Stream]] = {task.id: [] for task in dataflow.tasks}
        self.consumers: Mapping[TaskId, list[Stream]] = {task.id: [] for task in dataflow.tasks}
        for stream in dataflow.streams:
            self.feeds[stream.target].append(stream)
            self.consumers[stream.source].append(stream)

    def order(self) -> list[TaskId]:
        """The tasks, each after those that feed it; feedback streams do not count."""
        return topological_order({task: _parents(feeds) for task, feeds in self.feeds.items()})

    def depth_first(self) -> list[TaskId]:
        """The tasks in depth-first order from the sources, so that neighbours stand together (DYN, Alg. 1)."""
        order = self.order()
        position = {task: place for place, task in enumerate(order)}
        seen: dict[TaskId, None] = {}
        waiting = list(reversed(self.sources()))
        while waiting:
            task = waiting.pop()
            if task not in seen:
                seen[task] = None
                readers = {stream.target for stream in self.consumers[task] if not stream.feedback}
                waiting += sorted(readers, key=lambda each: -position[each])
        return list(dict.fromkeys([*seen, *order]))

    def sources(self) -> list[TaskId]:
        """The tasks that no stream enters."""
        return [task for task, feeds in self.feeds.items() if not feeds]

    def sinks(self) -> list[TaskId]:
        """The tasks that no stream leaves, other than to close a loop."""
        return [task for task, reads in self.consumers.items() if all(stream.feedback for stream in reads)]


def _parents(feeds: Iterable[Stream]) -> list[TaskId]:
    return [stream.source for stream in feeds if not stream.feedback]


def topological_order(parents: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """Order tasks so that each comes after its parents; those that are listed in such an order stay in it.

    Raises ``ValueError`` when there is a cycle.

    >>> topological_order({"c": ["a", "b"], "b": ["a"], "a": []})
    ['a', 'b', 'c']
    """
    if _in_order(parents):
        return list(parents)
    try:
        return list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        raise ValueError("a cycle: " + " -> ".join(error.args[1])) from None


def _in_order(parents: Mapping[Node, Iterable[Node]]) -> bool:
    """Whether each task is listed after its parents, as most authors do; much faster to check than to sort."""
    seen: set[Node] = set()
    for task, sources in parents.items():
        for source in sources:
            if source not in seen:
                return False
        seen.add(task)
    return True


def cycles(parents: Mapping[TaskId, Iterable[TaskId]]) -> list[list[TaskId]]:
    """Return one cycle for each knot of tasks that feed each other, from a task along the streams back to it.

    >>> cycles({"a": ["c"], "b": ["a"], "c": ["b"], "d": ["c", "d"]})
    [['a', 'b', 'c', 'a'], ['d', 'd']]
    """
    if _in_order(parents):
        return []
    try:
        TopologicalSorter(parents).prepare()
    except CycleError:
        pass
    else:
        return []
    cycles_of = []
    for knot in loops(parents):
        members = set(knot)
        try:
            TopologicalSorter({node: [p for p in parents[node] if p in members] for node in knot}).prepare()
        except CycleError as error:
            cycle = list(error.args[1])[:-1]
            position = {node: index for index, node in enumerate(knot)}
            start = min(range(len(cycle)), key=lambda i: position[cycle[i]])
            cycle = cycle[start:] + cycle[:start]
            cycles_of.append([*cycle, cycle[0]])
    return cycles_of


def loops(parents: Mapping[TaskId, Iterable[TaskId]]) -> list[Sequence[TaskId]]:
    """Return the strongly connected components that hold a cycle, in the order of their first tasks."""
    import igraph

    names = list(parents)
    index = {name: i for i, name in enumerate(names)}
    edges = [(index[parent], index[child]) for child, sources in parents.items() for parent in sources]
    self_fed = {child for parent, child in edges if parent == child}
    components = igraph.Graph(n=len(names), edges=edges, directed=True).connected_components(mode="strong")
    knots = [sorted(part) for part in components if len(part) > 1 or part[0] in self_fed]
    return [[names[i] for i in part] for part in sorted(knots)]
