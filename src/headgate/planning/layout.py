"""Machines and the tasks on their cores, as counts of equal machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from headgate.model.arrays import Ints, Shape
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.planning.problem import Problem

__all__ = ["Layout", "filled"]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Groups of machines: ``count`` machines of class ``kind``, on each of which tasks have ``placed`` cores."""

    kind: Ints
    placed: Ints
    """By group and task."""

    count: Ints

    @property
    def cores(self) -> Ints:
        """Cores by task."""
        return np.asarray(self.count @ self.placed)

    @property
    def machines(self) -> int:
        return int(self.count.sum())

    def joined(self, other: Layout) -> Layout:
        return Layout(
            np.concatenate([self.kind, other.kind]),
            np.concatenate([self.placed, other.placed]),
            np.concatenate([self.count, other.count]),
        )

    def deployment(self, problem: Problem, active: Ints) -> Deployment:
        """The same as a value that can be deployed; equal machines are one object many times."""
        names, classes = problem.shape.names, problem.cloud.classes
        machines: list[Machine] = []
        for kind, placed, count in zip(self.kind, self.placed, self.count, strict=True):
            cores = {str(names[task]): int(placed[task]) for task in np.flatnonzero(placed)}
            machines += [Machine(classes[kind].name, cores)] * int(count)
        return Deployment(tuple(machines), alternates_named(problem.shape, active))

    @classmethod
    def empty(cls, tasks: int) -> Layout:
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, tasks), dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, problem: Problem, deployment: Deployment) -> Layout:
        """That of a deployment."""
        places = {str(name): place for place, name in enumerate(problem.shape.names)}
        counted: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        keys: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {}
        for machine in deployment.machines:
            key = keys.get(id(machine))
            if key is None:
                cores = tuple(sorted((places[task], count) for task, count in machine.cores.items()))
                key = keys[id(machine)] = (problem.cloud.place(machine.vm_class), cores)
            counted[key] = counted.get(key, 0) + 1
        placed = np.zeros((len(counted), problem.tasks), dtype=np.int64)
        for row, (_, cores) in enumerate(counted):
            for task, count in cores:
                placed[row, task] = count
        kinds = np.array([kind for kind, _ in counted], dtype=np.int64)
        return cls(kinds, placed, np.array(list(counted.values()), dtype=np.int64))


def alternates_named(shape: Shape, active: Ints) -> Mapping[str, str]:
    """The alternates of tasks that have a choice, by name."""
    return {
        str(name): shape.alternates[place][int(active[place])]
        for place, name in enumerate(shape.names)
        if len(shape.alternates[place]) > 1
    }


def filled(tasks: int, sequence: Ints, bins: Iterable[tuple[int, int, int]]) -> Layout:
    """Put instances into machines one after the other.

    ``sequence`` names a task for each instance; ``bins`` are (class, cores, how many), filled in that order. What
    does not fit is left out.

    >>> two = filled(2, np.array([0, 0, 0, 1, 1]), [(3, 2, 2), (0, 1, 1)])
    >>> two.kind.tolist(), two.placed.tolist(), two.count.tolist()
    ([3, 3, 0], [[2, 0], [1, 1], [0, 1]], [1, 1, 1])
    """
    layout = Layout.empty(tasks)
    begin = 0
    for kind, cores, how_many in bins:
        part = sequence[begin : begin + cores * how_many]
        begin += len(part)
        if not len(part):
            continue
        padded = np.full(-(-len(part) // cores) * cores, -1, dtype=np.int64)
        padded[: len(part)] = part
        # Whoever has cores of a machine matters, not which: equal rows are equal machines.
        rows, counts = np.unique(np.sort(padded.reshape(-1, cores), axis=1), axis=0, return_counts=True)
        placed = np.zeros((len(rows), tasks), dtype=np.int64)
        for column in rows.T:
            there = column >= 0
            np.add.at(placed, (np.flatnonzero(there), column[there]), 1)
        layout = layout.joined(Layout(np.full(len(rows), kind, dtype=np.int64), placed, counts.astype(np.int64)))
    return layout
