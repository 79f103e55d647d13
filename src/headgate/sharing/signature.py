"""Signatures: equal for two tasks exactly when the tasks are equivalent.

SHARE calls two tasks equivalent when their types and configs are equal and their ancestor graphs are isomorphic under
that equality. A signature is a digest of what a task does and, through its parents' signatures, of everything before
it, so that equivalence of any two tasks of any two dataflows is a comparison of two short texts. Computing all
signatures of a dataflow takes time linear in its size.

What counts: the type, canonical config and relative value of each alternate (in whatever order), ports that the author
declared, what becomes of rows for which it raises and its time budget where they are given (or one dataflow would get
the other's policy), the circle within which the task may be shared unless that is everyone, and per input stream the
parent's signature and port, the routing, the input port, the side where it joins, and whether it is feedback. What does
not: task ids, names of alternates, the dataflow's name, owner and service level, known costs and selectivities (they
describe a task, they do not change what it does), the order of interleaved parents.

**Loops.** A signature cannot wait for the signatures of a loop it is part of. For the tasks of a loop, feedback parents
first count as blank; then signatures are computed again with those of the last round standing for the feedback parents,
until a round distinguishes no more tasks than the one before. Equal signatures then mean equal unrolled loops. A round
costs time linear in the loop, and there are at most two more rounds than feedback streams in it, since what is new in a
round can only have come in by one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from json.encoder import encode_basestring as _quoted

from headgate.model.config import canonical_text
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph, loops, topological_order
from headgate.model.names import Signature, TaskId
from headgate.model.on_error import OnError
from headgate.model.share import Share
from headgate.model.stream import ByKey, ByPredicate, Duplicate, Stream
from headgate.model.task import Port, Ports, Task

__all__ = ["sign", "sign_task"]

DIGEST_BYTES = 20
_FAIL = OnError.FAIL


def sign(dataflow: Dataflow) -> Mapping[TaskId, Signature]:
    """Compute the signature of every task.

    >>> from headgate.documents import parse
    >>> text = "tasks: [{{id: a, type: rate}}, {{id: {0}, type: filter, config: {{where: {1}}}, inputs: [a]}}]"
    >>> one, two, other = (
    ...     sign(parse(text.format(*t), "yaml").dataflow)
    ...     for t in [("b", "value > 1"), ("c", "value > 1"), ("b", "value > 2")]
    ... )
    >>> one["b"] == two["c"], one["b"] == other["b"]
    (True, False)
    """
    listed = _sign_listed(dataflow)
    if listed is not None:
        return listed
    graph = Graph(dataflow)
    contents = {task.id: _content(task, dataflow.scope(task)) for task in dataflow.tasks}
    signatures: dict[TaskId, Signature] = {}
    for group in _groups(dataflow, graph):
        task = group[0]
        if len(group) > 1 or any(stream.source == task for stream in graph.feeds[task]):
            signatures |= _sign_loop(group, graph, contents, signatures)
        else:
            signatures[task] = _digest(contents[task], [_feed(s, signatures[s.source]) for s in graph.feeds[task]])
    return signatures


def _sign_listed(dataflow: Dataflow) -> dict[TaskId, Signature] | None:
    """The signatures of a dataflow whose tasks are listed each after those that feed it, as nearly all are.

    Streams are listed by the task that they enter, so that one pass over both does. ``None`` for any other dataflow.
    """
    signatures: dict[TaskId, Signature] = {}
    streams, with_anyone = dataflow.streams, dataflow.share is Share.ANYONE
    at, last = 0, len(streams)
    for task in dataflow.tasks:
        name, feeds = task.id, []
        while at < last and (stream := streams[at]).target == name:
            parent = signatures.get(stream.source)
            if parent is None or stream.feedback:
                return None
            feeds.append(_feed(stream, parent))
            at += 1
        scope = "" if with_anyone and task.share is None and not task.scope else dataflow.scope(task)
        signatures[name] = _digest(_content(task, scope), feeds)
    return signatures


def sign_task(task: Task, scope: str, feeds: Iterable[tuple[Stream, Signature]]) -> Signature:
    """The signature of one task that is in no loop, given those of the tasks that feed it."""
    return _digest(_content(task, scope), [_feed(stream, parent) for stream, parent in feeds])


def _groups(dataflow: Dataflow, graph: Graph) -> Iterable[Sequence[TaskId]]:
    """The tasks in an order in which all parents come first; the tasks of a loop come together."""
    if not any(stream.feedback for stream in dataflow.streams):
        return ([task] for task in graph.order())
    parents = {task: [stream.source for stream in feeds] for task, feeds in graph.feeds.items()}
    members = {loop[0]: loop for loop in loops(parents)}
    leader = {task: first for first, loop in members.items() for task in loop}
    between: dict[TaskId, list[TaskId]] = {leader.get(task, task): [] for task in parents}
    for task, sources in parents.items():
        group = leader.get(task, task)
        between[group] += [leader.get(source, source) for source in sources if leader.get(source, source) != group]
    return (members.get(group, [group]) for group in topological_order(between))


def _sign_loop(
    loop: Sequence[TaskId], graph: Graph, contents: Mapping[TaskId, str], signatures: Mapping[TaskId, Signature]
) -> dict[TaskId, Signature]:
    inside = set(loop)
    forward = {task: [s.source for s in graph.feeds[task] if not s.feedback and s.source in inside] for task in loop}
    order = topological_order(forward)
    last: dict[TaskId, Signature] = {}
    kinds_before = 0
    while True:
        labels: dict[TaskId, Signature] = {}
        for task in order:
            feeds = []
            for stream in graph.feeds[task]:
                known = last if stream.feedback else labels
                feeds.append(
                    _feed(
                        stream, known.get(stream.source, "") if stream.source in inside else signatures[stream.source]
                    )
                )
            labels[task] = _digest(contents[task], feeds)
        kinds = sorted(set(labels.values()))
        if len(kinds) == kinds_before:
            whole = _digest("loop", kinds)
            return {task: _digest(label, [whole]) for task, label in labels.items()}
        kinds_before, last = len(kinds), labels


def _content(task: Task, scope: str) -> str:
    """What the task itself does, whoever feeds it, and for whom it may do it."""
    ways = task.alternates
    work = f"{ways[0].type}\n{ways[0].config.text}" if len(ways) == 1 and task.ports is None else _work(task)
    if task.on_error is not _FAIL or task.time_budget_s is not None:
        work = f"{task.on_error.value} {task.time_budget_s}\n{work}"
    return f"{scope}\n{work}" if scope else work


def _work(task: Task) -> str:
    ways = sorted(
        canonical_text([alternate.type, alternate.config.text, round(value, 12)])
        for alternate, value in zip(task.alternates, task.relative_values, strict=True)
    )
    return canonical_text([ways, _ports(task.ports)])


def _ports(ports: Ports | None) -> list[list[list[str]]] | None:
    if ports is None:
        return None
    return [[_port(port) for port in side] for side in (ports.inputs, ports.outputs)]


def _port(port: Port) -> list[str]:
    return [port.name, str(port.schema or ""), port.gather.value]


def _feed(stream: Stream, parent: str) -> str:
    routing = stream.routing
    if isinstance(routing, Duplicate):
        # Nearly every stream: the same text as below, in a small part of the time.
        if stream.target_port == "in" and stream.source_port == "out" and stream.side is None and not stream.feedback:
            return f'["in",-1,"out","{parent}",false,[]]'
        side, closes = -1 if stream.side is None else stream.side, "true" if stream.feedback else "false"
        ports = _quoted(stream.target_port), _quoted(stream.source_port)
        return f'[{ports[0]},{side},{ports[1]},"{parent}",{closes},[]]'
    route: list[str] = []
    if isinstance(routing, ByPredicate):
        route = ["where", routing.where]
    elif isinstance(routing, ByKey):
        route = ["key", *routing.columns]
    side = -1 if stream.side is None else stream.side
    return canonical_text([stream.target_port, side, stream.source_port, parent, stream.feedback, route])


def _digest(content: str, feeds: Sequence[str]) -> Signature:
    text = f"{content}\n\n{feeds[0]}" if len(feeds) == 1 else "\n\n".join([content, *sorted(feeds)])
    return Signature(blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest())
