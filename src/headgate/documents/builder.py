"""Dataflows written in Python.

>>> from headgate import Flow
>>> flow = Flow("hot-days", owner="ana")
>>> readings = flow.source("rate", rows_per_s=100)
>>> hot = flow.task("filter", id="hot", where="value > 30")
>>> readings >> hot >> flow.sink("write_console")
<write_console>
>>> dataflow = flow.build()
>>> [task.id for task in dataflow.tasks], str(dataflow.streams[0])
(['rate', 'hot', 'write_console'], 'rate:out -> hot:in')
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from headgate.documents.check import Checked, check
from headgate.documents.located import Located, Mark, MarkedDict, MarkedList
from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.service_level import ServiceLevel
from headgate.tasks.registry import Registry, default_registry

__all__ = ["Choice", "Flow", "FlowTask", "Inlet", "Outlet", "alternate"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One alternate of a task; make it with :func:`alternate`."""

    document: Mapping[str, Any]


def alternate(
    type: str,
    *,
    name: str | None = None,
    value: float = 1.0,
    cost_s: float | None = None,
    selectivity: float | None = None,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> Choice:
    """Describe one way to do a task, for :meth:`Flow.task`; options of the type are keyword arguments.

    >>> alternate("filter", name="strict", value=0.8, where="v > 3").document["name"]
    'strict'
    """
    work = {
        "name": name,
        "type": type,
        "config": {**(config or {}), **options},
        "value": value,
        "cost_s": cost_s,
        "selectivity": selectivity,
    }
    return Choice({key: part for key, part in work.items() if part is not None})


class _Source:
    """What a stream may begin at, and which of its rows go down the stream."""

    __slots__ = ()

    def where(self, predicate: str) -> Outlet:
        """Only the rows for which a SQL predicate holds."""
        return replace(_outlet(self), predicate=predicate)

    def by(self, *columns: str) -> Outlet:
        """Every row, with rows of equal key kept together and in order."""
        return replace(_outlet(self), key=columns)

    def feedback(self) -> Outlet:
        """Every row, on a stream that closes a loop."""
        return replace(_outlet(self), closes_loop=True)

    def __rshift__(self, target: FlowTask | Inlet) -> FlowTask:
        inlet = target if isinstance(target, Inlet) else Inlet(_flow_task(target))
        inlet.task._flow._connect(_outlet(self), inlet)
        return inlet.task


class FlowTask(_Source):
    """A task in a flow that is being written; ``a >> b`` connects them with a stream."""

    def __init__(self, flow: Flow, id: str, document: MarkedDict) -> None:
        self._flow = flow
        self._document = document
        self.id = id

    def __repr__(self) -> str:
        return f"<{self.id}>"

    def __rrshift__(self, sources: Iterable[FlowTask | Outlet]) -> FlowTask:
        return sources >> Inlet(self)

    def port(self, name: str) -> Outlet:
        """The output port of that name, where the task has several."""
        return Outlet(self, port_name=name)

    def into(self, port: str) -> Inlet:
        """The input port of that name, where the task has several."""
        return Inlet(self, port)


@dataclass(frozen=True, slots=True)
class Outlet(_Source):
    """Where a stream begins: a task's output, and which of its rows."""

    task: FlowTask
    port_name: str | None = None
    predicate: str | None = None
    key: tuple[str, ...] | None = None
    closes_loop: bool = False

    def _feed(self, inlet: Inlet, mark: Mark) -> MarkedDict:
        feed = MarkedDict(mark)
        feed.put("from", f"{self.task.id}:{self.port_name}" if self.port_name else self.task.id, mark)
        parts = {
            "to": inlet.port,
            "where": self.predicate,
            "key": self.key and list(self.key),
            "feedback": self.closes_loop or None,
        }
        for name, value in parts.items():
            if value is not None:
                feed.put(name, value, mark)
        return feed


@dataclass(frozen=True, slots=True)
class Inlet:
    """Where streams end: a task's input."""

    task: FlowTask
    port: str | None = None

    def __rrshift__(self, sources: Iterable[FlowTask | Outlet]) -> FlowTask:
        for source in sources:
            _outlet(source) >> self
        return self.task


class Flow:
    """A dataflow that is being written. :meth:`build` checks it whole and returns the value."""

    def __init__(
        self,
        name: str | None = None,
        *,
        owner: str | None = None,
        description: str = "",
        service_level: ServiceLevel | Mapping[str, Any] | None = None,
        share: str | None = None,
        start: str | None = None,
    ) -> None:
        self._file, mark = _caller()
        self._document = MarkedDict(mark)
        self._tasks = MarkedList(mark)
        self._ids: set[str] = set()
        if isinstance(service_level, ServiceLevel):
            service_level = {f.name: getattr(service_level, f.name) for f in fields(service_level)}
        parts = {
            "name": name,
            "owner": owner,
            "description": description,
            "service_level": service_level and dict(service_level),
            "share": share,
            "start": start,
        }
        for key, value in parts.items():
            if value:
                self._document.put(key, value, mark)
        self._document.put("tasks", self._tasks, mark)

    def task(
        self,
        type: str | None = None,
        /,
        *alternates: Choice,
        id: str | None = None,
        cost_s: float | None = None,
        selectivity: float | None = None,
        config: Mapping[str, Any] | None = None,
        ports: Mapping[str, Any] | None = None,
        on_error: str | None = None,
        time_budget: str | None = None,
        publish: str | None = None,
        **options: Any,
    ) -> FlowTask:
        """Add a task: a type with its options, or ``None`` and several :func:`alternate`.

        Without ``id`` it is called after its type, numbered where that is taken. ``share`` is the isolation class where
        it is a text, and an option of the type otherwise (``sample`` has one of that name).
        """
        _, mark = _caller()
        document = MarkedDict(mark)
        name = id if id is not None else self._free_id(type or "task")
        self._ids.add(name)
        isolation = options.pop("share") if isinstance(options.get("share"), str) else None
        work: dict[str, Any] = {
            "id": name,
            "type": type,
            "config": {**(config or {}), **options} or None,
            "cost_s": cost_s,
            "selectivity": selectivity,
            "ports": ports,
            "share": isolation,
            "on_error": on_error,
            "time_budget": time_budget,
            "publish": publish,
        }
        if alternates:
            work["alternates"] = [dict(choice.document) for choice in alternates]
        for key, value in work.items():
            if value is not None:
                document.put(key, value, mark)
        self._tasks.put(document, mark)
        return FlowTask(self, name, document)

    source = task
    """The same as :meth:`task`; reads better where rows come in."""

    sink = task
    """The same as :meth:`task`; reads better where rows are handed over."""

    def located(self) -> Located:
        """The document written so far, each task with the line of Python that added it."""
        return Located(self._document, self._file, lambda: self._document)

    def check(self, registry: Registry | None = None) -> Checked:
        """The dataflow and what its author should know; raises :class:`~headgate.errors.InvalidDataflow`."""
        return check(self.located(), registry if registry is not None else default_registry())

    def build(self, registry: Registry | None = None) -> Dataflow:
        """The dataflow as a value; raises :class:`~headgate.errors.InvalidDataflow` with every fault."""
        return self.check(registry).dataflow

    def _connect(self, outlet: Outlet, inlet: Inlet) -> None:
        if outlet.task._flow is not self:
            raise InputError(
                "TWO_FLOWS", f"{outlet.task} and {inlet.task} are of two flows; a stream joins tasks of one"
            )
        _, mark = _caller()
        document = inlet.task._document
        if "inputs" not in document:
            document.put("inputs", MarkedList(mark), mark)
        document["inputs"].put(outlet._feed(inlet, mark), mark)

    def _free_id(self, base: str) -> str:
        number, name = 1, base
        while name in self._ids:
            number += 1
            name = f"{base}_{number}"
        return name


def _outlet(value: object) -> Outlet:
    return value if isinstance(value, Outlet) else Outlet(_flow_task(value))


def _flow_task(value: object) -> FlowTask:
    if not isinstance(value, FlowTask):
        raise InputError(
            "NOT_A_TASK",
            f"a stream runs between tasks of a flow, not to or from {value!r}; make one with flow.task(...)",
        )
    return value


def _caller() -> tuple[str, Mark]:
    """File and line of the nearest frame outside this module."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, (frame.f_lineno, None)
