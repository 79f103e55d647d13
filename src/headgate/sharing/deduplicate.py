"""No two equivalent tasks in one dataflow: SHARE demands it of whatever is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headgate.errors import Notice
from headgate.gc_paused import paused
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature, TaskId
from headgate.sharing.signature import sign

__all__ = ["Deduplicated", "deduplicate"]


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """A dataflow without equivalent tasks, its signatures, and which task stands for each that was left out."""

    dataflow: Dataflow
    signatures: Mapping[TaskId, Signature]
    stands_for: Mapping[TaskId, TaskId]

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


def deduplicate(dataflow: Dataflow) -> Deduplicated:
    """Keep the first of each set of equivalent tasks; those that read another one read it instead.

    A stream from the kept task stands for each stream from a dropped one, so a task that interleaved two equivalent
    streams still gets every row twice.

    >>> from headgate.documents import parse
    >>> text = '''tasks: [{id: a, type: rate}, {id: b, type: rate},
    ...   {id: c, type: write_console, inputs: [a]}, {id: d, type: write_memory, config: {name: d}, inputs: [b]}]'''
    >>> done = deduplicate(parse(text, "yaml").dataflow)
    >>> [task.id for task in done.dataflow.tasks], [str(stream) for stream in done.dataflow.streams]
    (['a', 'c', 'd'], ['a:out -> c:in', 'a:out -> d:in'])
    """
    with paused():
        signatures = sign(dataflow)
    first: dict[Signature, TaskId] = {}
    for task in dataflow.tasks:
        first.setdefault(signatures[task.id], task.id)
    if len(first) == len(dataflow.tasks):
        return Deduplicated(dataflow, signatures, {})
    kept = set(first.values())
    stands_for = {task.id: first[signatures[task.id]] for task in dataflow.tasks if task.id not in kept}
    streams = [
        replace(stream, source=stands_for.get(stream.source, stream.source))
        for stream in dataflow.streams
        if stream.target in kept
    ]
    smaller = replace(dataflow, tasks=tuple(task for task in dataflow.tasks if task.id in kept), streams=tuple(streams))
    return Deduplicated(
        smaller, {task: signature for task, signature in signatures.items() if task in kept}, stands_for
    )
