"""From a stored document back to its dataflow, without checking it again.

Only for documents that :func:`~headgate.documents.document.to_document` has made of a checked dataflow: whatever else
stands in them raises ``KeyError`` or worse. It takes a small part of the time that checking takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from headgate.model.config import Config
from headgate.model.dataflow import DEFAULT_OWNER, Dataflow
from headgate.model.names import DataflowName, Owner, PortName, TaskId
from headgate.model.on_error import OnError
from headgate.model.schema import Schema
from headgate.model.service_level import ServiceLevel
from headgate.model.share import Share
from headgate.model.span import seconds_of
from headgate.model.start import Start
from headgate.model.stream import DUPLICATE, ByKey, ByPredicate, Routing, Stream
from headgate.model.task import Alternate, Gather, Port, Ports, Task
from headgate.tasks.registry import Registry

__all__ = ["from_document", "ports_of"]

_NO_CONFIG = Config()
_IN, _OUT = PortName("in"), PortName("out")
_USUAL = ServiceLevel()
_MONEY = ("budget_per_h", "break_even_at_best_per_h", "break_even_at_worst_per_h")


def from_document(document: Mapping[str, Any], registry: Registry) -> Dataflow:
    """The dataflow of which a document was made.

    >>> from headgate.documents import parse
    >>> from headgate.documents.document import to_document
    >>> from headgate.tasks.registry import default_registry
    >>> text = "tasks: [{id: r, type: rate}, {id: w, type: write_console, inputs: [r]}]"
    >>> flow = parse(text, "yaml").dataflow
    >>> from_document(to_document(flow), default_registry()) == flow
    True
    """
    tasks, streams = [], list[Stream]()
    for each in document["tasks"]:
        task = _task(each)
        tasks.append(task)
        if "inputs" in each:
            streams += _streams(task, each["inputs"], registry)
    return Dataflow(
        DataflowName(document["name"]),
        tuple(tasks),
        tuple(streams),
        Owner(document.get("owner", DEFAULT_OWNER)),
        document.get("description", ""),
        _service_level(document.get("service_level")),
        Share(document["share"]) if "share" in document else Share.ANYONE,
        Start.parse(document["start"]) if "start" in document else None,
    )


def _task(each: Mapping[str, Any]) -> Task:
    ways = each.get("alternates") or (each,)
    budget = each.get("time_budget")
    return Task(
        TaskId(each["id"]),
        tuple([_alternate(way, way is each) for way in ways]),
        _ports(each["ports"]) if "ports" in each else None,
        Share(each["share"]) if "share" in each else None,
        OnError(each["on_error"]) if "on_error" in each else OnError.FAIL,
        None if budget is None else round(seconds_of(budget) or 0.0, 3),
        each.get("publish", ""),
    )


def _alternate(way: Mapping[str, Any], only: bool) -> Alternate:
    kind, config = way["type"], way.get("config")
    name = kind if only else way.get("name", kind)
    known = Config.of_canonical(config) if config else _NO_CONFIG
    return Alternate(name, kind, known, way.get("value", 1.0), way.get("cost_s"), way.get("selectivity"))


def _ports(ports: Mapping[str, Any]) -> Ports:
    sides = (tuple(_port(port) for port in ports.get(side, ())) for side in ("inputs", "outputs"))
    return Ports(*sides)


def _port(port: Mapping[str, Any] | str) -> Port:
    if isinstance(port, str):
        return Port(PortName(port))
    schema = Schema.parse(port["columns"]) if "columns" in port else None
    gather = Gather(port.get("gather", Gather.INTERLEAVE))
    return Port(PortName(port["name"]), schema, gather, 2 if gather is Gather.JOIN else 1)


def _streams(task: Task, inputs: Sequence[Mapping[str, Any] | str], registry: Registry) -> list[Stream]:
    if len(inputs) == 1:  # a port that joins has two streams or more
        only = inputs[0]
        return [_stream(task.id, {"from": only} if isinstance(only, str) else only)]
    joined = {port.name: 0 for port in ports_of(task, registry).inputs if port.gather is Gather.JOIN}
    streams = []
    for feed in inputs:
        stream = _stream(task.id, {"from": feed} if isinstance(feed, str) else feed)
        if stream.target_port in joined:
            side = joined[stream.target_port]
            joined[stream.target_port] = side + 1
            stream = replace(stream, side=side)
        streams.append(stream)
    return streams


def ports_of(task: Task, registry: Registry) -> Ports:
    """The ports of a task: those that its author named, or its type's."""
    if task.ports is not None:
        return task.ports
    kinds = [registry[alternate.type] for alternate in task.alternates]
    return next((kind.ports for kind in kinds if not kind.ports_declared), kinds[0].ports)


def _stream(target: TaskId, feed: Mapping[str, Any]) -> Stream:
    source, _, port = feed["from"].partition(":")
    routing: Routing = DUPLICATE
    if "where" in feed:
        routing = ByPredicate(feed["where"])
    elif "key" in feed:
        routing = ByKey(tuple(feed["key"]))
    ends = TaskId(source), PortName(port) if port else _OUT, target, PortName(feed.get("to", _IN))
    return Stream(*ends, routing, None, feed.get("feedback", False))


def _service_level(level: Mapping[str, Any] | None) -> ServiceLevel:
    if level is None:
        return _USUAL
    fields: dict[str, Any] = {name: Decimal(str(value)) if name in _MONEY else value for name, value in level.items()}
    return ServiceLevel(**fields)
