"""Step four of a check: the columns. Schemas are followed along the streams, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from headgate.documents.check.report import Report, TaskInCheck, failed
from headgate.documents.check.tasks import Tasks
from headgate.documents.located import Path
from headgate.errors import shorten
from headgate.model.expression import columns_of
from headgate.model.graph import topological_order
from headgate.model.names import PortName, TaskId
from headgate.model.schema import Schema
from headgate.model.stream import ByKey, ByPredicate, Stream
from headgate.model.task import Gather, Port
from headgate.model.task_type import Inputs

__all__ = ["check_columns"]


class ColumnFault(NamedTuple):
    """A fault to be reported; ``wanted`` is a column and the names among which it was looked for."""

    condition: str
    path: Path
    task: TaskId
    message: str
    expected: str | None = None
    wanted: tuple[str, Sequence[str]] | None = None


Known = dict[tuple[TaskId, PortName], Schema | None]


def check_columns(tasks: Tasks, report: Report) -> None:
    """Follow the schemas from the sources on and report every column that is read and not there."""
    for fault in _find(tasks.known):
        near = report.nearest(*fault.wanted) if fault.wanted else None
        report.fault(fault.condition, fault.path, fault.message, fault.task, fault.expected, near)


def _find(tasks: Mapping[TaskId, TaskInCheck]) -> Iterator[ColumnFault]:
    order = topological_order({task.id: [s.source for _, s in task.feeds if not s.feedback] for task in tasks.values()})
    known: Known = {}
    for task_id in order:
        task = tasks[task_id]
        schemas: dict[str, list[Schema | None]] = {}
        for index, stream in task.feeds:
            schema = None if stream.feedback else known.get((stream.source, stream.source_port))
            schemas.setdefault(stream.target_port, []).append(schema)
            yield from _routing(task, index, stream, schema)
        for port in task.ports.inputs if task.ports else ():
            yield from _entering(task, port, schemas.get(port.name, []))
        yield from _work(task, schemas, known)


def _routing(task: TaskInCheck, index: int, stream: Stream, schema: Schema | None) -> Iterator[ColumnFault]:
    if schema is None:
        return
    routing = stream.routing
    read = (
        columns_of(routing.where)
        if isinstance(routing, ByPredicate)
        else routing.columns
        if isinstance(routing, ByKey)
        else ()
    )
    option = "where" if isinstance(routing, ByPredicate) else "key"
    for name in read:
        if schema.find(name) is None:
            path = [*task.path, "inputs", index, option]
            yield _unknown(path, task.id, f"{option} of the stream from '{stream.source}'", name, schema)


def _entering(task: TaskInCheck, port: Port, entering: list[Schema | None]) -> Iterator[ColumnFault]:
    """Interleaved streams have the same columns; a declared schema is met by each of them."""
    some = [schema for schema in entering if schema is not None]
    if port.gather is Gather.INTERLEAVE:
        for other in some[1:]:
            if {n.casefold() for n in other.names} != {n.casefold() for n in some[0].names}:
                message = (
                    f"the streams that interleave in port '{port.name}' have other columns: ({some[0]}) and ({other})"
                )
                yield ColumnFault(
                    "COLUMNS_DO_NOT_FIT", [*task.path, "inputs"], task.id, message, "the same columns in each"
                )
                break
    for schema in some if port.schema else ():
        for wanted in port.schema.columns if port.schema else ():
            column = schema.find(wanted.name)
            path = [*task.path, "ports"]
            if column is None:
                yield _unknown(path, task.id, f"port '{port.name}'", wanted.name, schema)
            elif wanted.type and column.type and wanted.type != column.type:
                message = (
                    f"port '{port.name}' wants column '{wanted.name}' as {wanted.type}, and it comes as {column.type}"
                )
                yield ColumnFault("COLUMNS_DO_NOT_FIT", path, task.id, message, "the same type at both ends")


def _work(task: TaskInCheck, schemas: Mapping[str, list[Schema | None]], known: Known) -> Iterator[ColumnFault]:
    first: Mapping[str, Schema | None] | None = None
    for position, (index, options) in enumerate(task.configs):
        base = [*task.path, "alternates", index, "config"] if task.has_alternates else [*task.path, "config"]
        inputs = Inputs(schemas)
        try:
            outputs = dict(options.outputs(inputs))
        except Exception as error:
            message = failed(task.alternates[position].type, error)
            yield ColumnFault("TASK_TYPE_FAILED", base, task.id, message, "a word to its author")
            continue
        for unknown in inputs.unknown:
            yield _unknown([*base, unknown.option], task.id, unknown.option, unknown.column, unknown.schema)
        if first is None:
            first = outputs
            continue
        for port, schema in outputs.items():
            lead = first.get(port)
            missing = [c for c in lead.names if schema.find(c) is None] if lead and schema else []
            if missing:
                message = f"alternate '{task.alternates[position].name}' does not make {_listed(missing)}"
                message += f", which '{task.alternates[0].name}' makes"
                yield ColumnFault("COLUMNS_DO_NOT_FIT", base, task.id, message, "the same columns from every alternate")
    for out in task.ports.outputs if task.ports else ():
        known[task.id, out.name] = out.schema or (first or {}).get(out.name)


def _unknown(path: Path, task: TaskId, what: str, column: str, schema: Schema) -> ColumnFault:
    message = f"{what} reads column {shorten(column)}, which is not there"
    expected = f"one of {_listed(schema.names)}"
    return ColumnFault("COLUMNS_DO_NOT_FIT", path, task, message, expected, (column, schema.names))


def _listed(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
