"""Many dataflows as one graph in which no task stands twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.sharing.deduplicate import deduplicate

__all__ = ["Merged", "merge"]


@dataclass(frozen=True, slots=True)
class Merged:
    """The graph that runs for several dataflows, and who uses which of its tasks."""

    graph: Dataflow
    users: Mapping[TaskId, tuple[DataflowName, ...]]
    submitted: int
    """How many tasks the dataflows have in all, each without its own duplicates."""

    @property
    def saved(self) -> int:
        """How many tasks need not run because another dataflow runs them."""
        return self.submitted - len(self.graph.tasks)


def merge(dataflows: Iterable[Dataflow]) -> Merged:
    """Merge dataflows: equivalent tasks become one, every sink stays (SHARE, Alg. 1, for a whole set at once).

    A task is called after the first dataflow that has it, ``dataflow.task``. Raises :class:`InputError` for two
    dataflows of one name.
    """
    names: set[DataflowName] = set()
    merged: dict[Signature, TaskId] = {}
    users: dict[TaskId, tuple[DataflowName, ...]] = {}
    tasks, streams, submitted = [], [], 0
    for dataflow in dataflows:
        if dataflow.name in names:
            message = f"two dataflows are called '{dataflow.name}'; give one of them another name"
            raise InputError("NAME_TAKEN", message, {"dataflow": dataflow.name})
        names.add(dataflow.name)
        signed = deduplicate(dataflow)
        submitted += len(signed.dataflow.tasks)
        added = set()
        for task in signed.dataflow.tasks:
            signature = signed.signatures[task.id]
            if signature not in merged:
                merged[signature] = TaskId(f"{dataflow.name}.{task.id}")
                tasks.append(replace(task, id=merged[signature], share=None, scope=dataflow.scope(task)))
                added.add(task.id)
            users[merged[signature]] = (*users.get(merged[signature], ()), dataflow.name)
        for stream in signed.dataflow.streams:
            if stream.target in added:
                ends = merged[signed.signatures[stream.source]], merged[signed.signatures[stream.target]]
                streams.append(replace(stream, source=ends[0], target=ends[1]))
    return Merged(Dataflow(DataflowName("merged"), tuple(tasks), tuple(streams)), users, submitted)
