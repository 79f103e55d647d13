"""A dataflow as arrays: tasks in topological order, alternates in columns, streams as pairs of places."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.errors import Fault, InputError, InvalidDataflow, unknown
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph, topological_order
from headgate.model.names import TaskId

__all__ = ["Bools", "Floats", "Ints", "Shape"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The arrays of a dataflow.

    ``cost``, ``selectivity`` and ``value`` have a row for each task and a column for each alternate; tasks with fewer
    alternates repeat their last one. Streams are sorted by the task that they leave.
    """

    names: tuple[TaskId, ...]
    alternates: tuple[tuple[str, ...], ...]
    cost_s: Floats
    selectivity: Floats
    value: Floats
    stream_source: Ints
    stream_target: Ints
    stream_share: Floats
    """Share of the messages that go down the stream; 1 except where a predicate is known to hold for fewer."""

    stream_returns: Bools
    """Whether the stream is feedback: what it carries arrives in the next interval."""

    sources: tuple[int, ...]
    outputs: tuple[int, ...]
    fragments: Ints
    """The first task of each fragment, and the number of tasks. Each task is one by itself unless said otherwise."""

    members: tuple[tuple[int, ...], ...]
    """The tasks of each dataflow; of one, all."""

    first_stream: Ints = field(init=False)
    """The place of the first stream that leaves each task, and the number of streams."""

    structure: tuple[Any, ...] = field(init=False)
    """What :mod:`headgate.capacity.serve` reads: streams, fragments, and the outputs of each dataflow."""

    def __post_init__(self) -> None:
        first = np.searchsorted(self.stream_source, np.arange(self.tasks + 1)).astype(np.int64)
        object.__setattr__(self, "first_stream", first)
        outputs = [self.outputs_of(owner) for owner in range(self.owners)]
        owned = np.cumsum([0, *map(len, outputs)], dtype=np.int64), np.concatenate(outputs).astype(np.int64)
        streams = (first, self.stream_target, self.stream_share, self.stream_returns)
        object.__setattr__(self, "structure", (*streams, self.fragments, *owned))

    def cost_of(self, active: Ints) -> Floats:
        """Core-seconds of a message, by task, with given alternates."""
        return np.asarray(self.cost_s[np.arange(self.tasks), active])

    def out_of(self, active: Ints) -> Floats:
        """Selectivity by task, with given alternates."""
        return np.asarray(self.selectivity[np.arange(self.tasks), active])

    @property
    def tasks(self) -> int:
        return len(self.names)

    @property
    def owners(self) -> int:
        """How many dataflows there are."""
        return len(self.members)

    def outputs_of(self, owner: int) -> list[int]:
        """The outputs of one dataflow: those of its tasks that none of its tasks reads, other than to close a loop."""
        mine = set(self.members[owner])
        ends = zip(self.stream_source.tolist(), self.stream_target.tolist(), self.stream_returns.tolist(), strict=True)
        read = {source for source, target, returns in ends if not returns and target in mine}
        return sorted(mine - read)

    def flow(self, active: Ints) -> tuple[Any, ...]:
        """The arrays that :mod:`headgate.capacity.serve` reads, with given alternates."""
        return (self.cost_of(active), self.out_of(active), *self.structure)

    def place(self, task: str) -> int:
        return self.names.index(TaskId(task))

    def check_rates(self, given: Collection[str], such_as: str) -> None:
        """Raise :class:`InputError` unless there is a rate for every source, and for nothing else."""
        names = [str(self.names[place]) for place in self.sources]
        for name in given:
            if name not in names:
                raise unknown("UNKNOWN_SOURCE", f"a rate is given for '{name[:60]}', which is no source", name, names)
        missing = [name for name in names if name not in given]
        if missing:
            message = f"no rate is given for source {', '.join(map(repr, missing[:12]))}"
            raise InputError("NO_RATE", f"{message}; give one such as --rate {missing[0]}={such_as}")

    @classmethod
    def of(
        cls,
        dataflow: Dataflow,
        costs: Mapping[tuple[str, str], tuple[float, float]] | None = None,
        shares: Mapping[tuple[str, str], float] | None = None,
        fragments: Sequence[Collection[str]] = (),
        owners: Sequence[Collection[str]] = (),
    ) -> Shape:
        """From a dataflow; ``costs`` gives (cost_s, selectivity) by (task, alternate) before what the dataflow says.

        Tasks without a known cost are faults, all reported at once; an unknown selectivity is 1. ``fragments`` are
        tasks that wait together, and ``owners`` the tasks of each dataflow where several are merged.
        """
        graph = Graph(dataflow)
        order, first = _grouped(graph, fragments)
        index = {task: place for place, task in enumerate(order)}
        width = max(len(graph.tasks[task].alternates) for task in order)
        cost, selectivity, value = (np.ones((len(order), width)) for _ in range(3))
        faults = []
        for place, name in enumerate(order):
            task = graph.tasks[name]
            for column in range(width):
                way = task.alternates[min(column, len(task.alternates) - 1)]
                known = (costs or {}).get((name, way.name))
                cost_s, chosen = known or (way.cost_s, way.selectivity)
                if cost_s is None and column < len(task.alternates):
                    message = f"alternate '{way.name}' has no cost_s, so that nothing is known of the work it makes"
                    wanted = "cost_s, the core-seconds per message, beside its type"
                    faults.append(Fault("NO_COST", message, task=name, expected=wanted))
                cost[place, column] = 0.0 if cost_s is None else cost_s
                selectivity[place, column] = 1.0 if chosen is None else chosen
                value[place, column] = task.relative_values[min(column, len(task.alternates) - 1)]
        if faults:
            raise InvalidDataflow(faults)
        streams = sorted(dataflow.streams, key=lambda stream: (index[stream.source], index[stream.target]))
        shared = shares or {}
        return cls(
            tuple(order),
            tuple(tuple(way.name for way in graph.tasks[name].alternates) for name in order),
            cost,
            selectivity,
            value,
            np.array([index[stream.source] for stream in streams], dtype=np.int64),
            np.array([index[stream.target] for stream in streams], dtype=np.int64),
            np.array([shared.get((stream.source, stream.target), 1.0) for stream in streams], dtype=np.float64),
            np.array([stream.feedback for stream in streams], dtype=np.bool_),
            tuple(index[task] for task in graph.sources()),
            tuple(sorted(index[task] for task in graph.sinks())),
            first,
            tuple(tuple(sorted(index[TaskId(task)] for task in tasks)) for tasks in owners or [order]),
        )

    def rates(self, external: Mapping[str, float], active: Ints | None = None) -> Floats:
        """Messages per second into each task when all of them keep up; feedback is left out.

        >>> from headgate import parse
        >>> tasks = "tasks: [{id: a, type: opaque, cost_s: 1, selectivity: 3}, {id: b, type: opaque, inputs: [a]}]"
        >>> Shape.of(parse(tasks, "yaml").dataflow, {("b", "opaque"): (0.5, 1.0)}).rates({"a": 2.0})
        array([2., 6.])
        """
        out = self.out_of(np.zeros(self.tasks, dtype=np.int64) if active is None else active)
        return self.achievable(np.array([external.get(name, 0.0) for name in self.names]), out, feedback=False)

    def achievable(self, external: Floats, out: Floats, feedback: bool = True) -> Floats:
        """Input of each task if none is a bottleneck: ``external`` is by task, or by task and interval."""
        rates = external.copy()
        streams = zip(self.stream_source, self.stream_target, self.stream_share, self.stream_returns, strict=True)
        for source, target, share, returns in streams:
            if feedback or not returns:
                rates[target] += rates[source] * out[source] * share
        return rates


def _grouped(graph: Graph, fragments: Sequence[Collection[str]]) -> tuple[list[TaskId], Ints]:
    """The tasks in an order in which those of a fragment stand together, and the first of each fragment."""
    order = graph.order()
    if not fragments:
        return order, np.arange(len(order) + 1, dtype=np.int64)
    of = {TaskId(task): TaskId(str(place)) for place, tasks in enumerate(fragments) for task in tasks}
    if sorted(of) != sorted(order) or len(of) < sum(map(len, fragments)):
        odd = sorted({*of} ^ {*order}) or sorted(of)
        raise InputError("BAD_FRAGMENTS", f"every task belongs to one fragment; look at {', '.join(odd[:12])}")
    feeds: dict[TaskId, set[TaskId]] = {of[task]: set() for task in order}
    for task in order:
        feeds[of[task]] |= {of[each.source] for each in graph.feeds[task] if not each.feedback} - {of[task]}
    ranked = topological_order({fragment: sorted(before) for fragment, before in feeds.items()})
    rank = {fragment: number for number, fragment in enumerate(ranked)}
    order.sort(key=lambda task: rank[of[task]])
    first = np.searchsorted([rank[of[task]] for task in order], np.arange(len(ranked) + 1))
    return order, first.astype(np.int64)
