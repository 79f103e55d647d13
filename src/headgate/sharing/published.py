"""Named streams: what dataflows publish, and how others read it. Pure.

Who reads a stream gets the tasks that make it, as tasks of its own: equal tasks run once, so nothing is computed twice,
and all that holds for shared tasks holds for it: its start, its state, its past, and that it outlives the publisher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from headgate.errors import InputError, unknown
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import DataflowName, TaskId
from headgate.model.share import Share, scope_of
from headgate.model.task import Task

__all__ = ["inlined", "with_streams"]

READ_STREAM = "read_stream"


@dataclass(frozen=True, slots=True)
class Published:
    """A named stream: what the task of a dataflow puts out."""

    dataflow: Dataflow
    task: TaskId


def with_streams(dataflow: Dataflow, others: Callable[[], Iterable[Dataflow]]) -> Dataflow:
    """A dataflow with the tasks that make the streams which it reads, of the others that are there, as written.

    Raises :class:`InputError` for a stream that it may not read, and for one of its own that another one publishes too.
    """
    names = {task.publish for task in dataflow.tasks if task.publish}
    if not names and not any(task.type == READ_STREAM for task in dataflow.tasks):
        return dataflow
    published = _published_by(one for one in others() if one.name != dataflow.name)
    for name in sorted(names & published.keys()):
        message = f"dataflow '{published[name].dataflow.name}' publishes a stream '{name}' already"
        raise InputError("STREAM_TAKEN", f"{message}; give that of '{dataflow.name}' another name")
    return inlined(dataflow, published)


def _published_by(dataflows: Iterable[Dataflow]) -> dict[str, Published]:
    """The streams that dataflows publish, by name."""
    return {task.publish: Published(flow, task.id) for flow in dataflows for task in flow.tasks if task.publish}


def inlined(dataflow: Dataflow, published: Mapping[str, Published], above: tuple[str, ...] = ()) -> Dataflow:
    """The dataflow with the tasks that make the streams which it reads; raises for a stream that it may not read.

    >>> from headgate.documents import parse
    >>> one = "{name: one, tasks: [{id: r, type: rate}, {id: w, type: write_console, inputs: [r]}]}"
    >>> two = "tasks: [{id: s, type: read_stream, config: {stream: x}}, {id: w, type: write_console, inputs: [s]}]"
    >>> made = parse(one.replace("type: rate", "type: rate, publish: x"), "yaml").dataflow
    >>> [task.type for task in inlined(parse(two, "yaml").dataflow, _published_by([made])).tasks]
    ['rate', 'write_console']
    """
    reads = [task for task in dataflow.tasks if task.type == READ_STREAM and not task.is_dynamic]
    tasks, streams = [*dataflow.tasks], [*dataflow.streams]
    for task in reads:
        name = str(task.config["stream"])
        if name in above:
            circle = " -> ".join((*above, name))
            raise InputError("STREAM_CIRCLE", f"the streams {circle} are made of each other; publish one of them anew")
        stream = _stream_of(name, dataflow, task, published)
        part = _part(stream, task, inlined(stream.dataflow, published, (*above, name)))
        at = tasks.index(task)
        tasks[at : at + 1] = part.tasks
        streams += part.streams
    return replace(dataflow, tasks=tuple(tasks), streams=tuple(streams)) if reads else dataflow


def _stream_of(name: str, dataflow: Dataflow, task: Task, published: Mapping[str, Published]) -> Published:
    if name not in published:
        message = f"task '{task.id}' of dataflow '{dataflow.name}': nobody publishes a stream '{name}'"
        raise unknown("UNKNOWN_STREAM", message, name, published)
    stream = published[name]
    made = next(one for one in stream.dataflow.tasks if one.id == stream.task)
    scope = stream.dataflow.scope(made)
    if scope and scope != scope_of(Share.OWNER, dataflow.owner, dataflow.name):
        message = f"stream '{name}' of dataflow '{stream.dataflow.name}' is not shared with '{dataflow.owner}'"
        remedy = f"have its owner, '{stream.dataflow.owner}', change share of its task '{made.id}'"
        raise InputError("STREAM_PRIVATE", f"{message}; {remedy}")
    return stream


def _part(stream: Published, reader: Task, made: Dataflow) -> Dataflow:
    """The tasks that make a stream, under names that belong to the task which reads it."""
    graph, wanted, waiting = Graph(made), {stream.task}, [stream.task]
    while waiting:
        fresh = [feed.source for feed in graph.feeds[waiting.pop()] if feed.source not in wanted]
        wanted.update(fresh)
        waiting += fresh
    ids = {task: reader.id if task == stream.task else TaskId(f"{reader.id}/{task}") for task in wanted}
    tasks = tuple(_copied(task, ids[task.id], made, reader, stream) for task in made.tasks if task.id in wanted)
    streams = (s for s in made.streams if s.source in wanted and s.target in wanted)
    feeds = tuple(replace(s, source=ids[s.source], target=ids[s.target]) for s in streams)
    return Dataflow(DataflowName("part"), tasks, feeds)


def _copied(task: Task, name: TaskId, made: Dataflow, reader: Task, stream: Published) -> Task:
    scope = made.scope(task)
    publish = reader.publish if task.id == stream.task else ""
    return replace(task, id=name, scope=scope, share=None if scope else Share.ANYONE, publish=publish)
