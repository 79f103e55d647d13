"""Signing a dataflow, once: the signature of every task, and no two equivalent tasks, as SHARE demands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headgate.errors import Notice
from headgate.gc_paused import paused
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.sharing.signature import sign

__all__ = ["SignedDataflow", "deduplicate"]

MANY_TASKS = 1_000
"""From so many on, Python's cycle collector is paused while they are signed."""


@dataclass(frozen=True, slots=True)
class SignedDataflow:
    """A dataflow without equivalent tasks, and the signatures of its tasks.

    Made once for a submission, when it is read; all that follows takes the signatures from here.
    """

    dataflow: Dataflow
    signatures: Mapping[TaskId, Signature]
    """Each task after those that feed it."""

    stands_for: Mapping[TaskId, TaskId] = field(default_factory=dict)
    """Which task stands for each that was left out."""

    @property
    def name(self) -> DataflowName:
        return self.dataflow.name

    @property
    def notices(self) -> tuple[Notice, ...]:
        """A sentence for each task that was left out: it never happens silently."""
        return tuple(
            Notice(
                "DUPLICATE_TASK",
                f"does the same as task '{kept}' and is left out; what read it reads '{kept}'",
                task=dropped,
            )
            for dropped, kept in self.stands_for.items()
        )


def deduplicate(dataflow: Dataflow | SignedDataflow) -> SignedDataflow:
    """Sign a dataflow, unless it is signed already, and keep the first of each set of equivalent tasks.

    Tasks that read one that is left out read the first instead.

    A stream from the kept task stands for each stream from a dropped one, so a task that interleaved two equivalent
    streams still gets every row twice.

    >>> from headgate.documents import parse
    >>> text = '''tasks: [{id: a, type: rate}, {id: b, type: rate},
    ...   {id: c, type: write_console, inputs: [a]}, {id: d, type: write_memory, config: {name: d}, inputs: [b]}]'''
    >>> done = deduplicate(parse(text, "yaml").dataflow)
    >>> [task.id for task in done.dataflow.tasks], [str(stream) for stream in done.dataflow.streams]
    (['a', 'c', 'd'], ['a:out -> c:in', 'a:out -> d:in'])
    """
    if isinstance(dataflow, SignedDataflow):
        return dataflow
    if len(dataflow.tasks) < MANY_TASKS:
        signatures = sign(dataflow)
    else:
        with paused():
            signatures = sign(dataflow)
    if len(set(signatures.values())) == len(dataflow.tasks):
        return SignedDataflow(dataflow, signatures)
    first: dict[Signature, TaskId] = {}
    for task in dataflow.tasks:
        first.setdefault(signatures[task.id], task.id)
    kept = set(first.values())
    stands_for = {task.id: first[signatures[task.id]] for task in dataflow.tasks if task.id not in kept}
    streams = [
        replace(stream, source=stands_for.get(stream.source, stream.source))
        for stream in dataflow.streams
        if stream.target in kept
    ]
    published = {stands_for[task.id]: task.publish for task in dataflow.tasks if task.id in stands_for and task.publish}
    tasks = (
        task if task.publish or task.id not in published else replace(task, publish=published[task.id])
        for task in dataflow.tasks
        if task.id in kept
    )
    smaller = replace(dataflow, tasks=tuple(tasks), streams=tuple(streams))
    return SignedDataflow(
        smaller, {task: signature for task, signature in signatures.items() if task in kept}, stands_for
    )
