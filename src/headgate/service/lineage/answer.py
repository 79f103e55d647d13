"""What is asked about lineage: where a column comes from, and who would be hurt if it went."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headgate.errors import InputError, unknown
from headgate.model.table import Table, TableColumn
from headgate.model.task_type import Role
from headgate.service.lineage.lineage import ColumnPlace, DataflowLineage, dataflow_lineage
from headgate.sharing.running import RunningSet
from headgate.tasks.registry import Registry

__all__ = ["ColumnLineage", "HurtColumn", "LineageAnswer", "lineage_answer", "lineage_tables", "named_dataflow"]


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """A column: its type, the columns of sources of which it is made, and what decides about its rows."""

    task: str
    column: str
    type: str | None
    sources: tuple[str, ...]
    """``task.column`` of sources."""

    paths: tuple[tuple[str, ...], ...]
    """Each from a source on, by the tasks that made something else of it."""

    decided_by: tuple[str, ...]
    """``task option (task.column)``: filters, keys and routing on the way."""


@dataclass(frozen=True, slots=True)
class HurtColumn:
    """What would go, or not work any more, if a column went."""

    dataflow: str
    owner: str
    task: str
    """Empty for who may not see that dataflow's document."""

    column: str
    how: str
    """``reads it in OPTION``, ``makes this of it`` or ``delivers it``."""


@dataclass(frozen=True, slots=True)
class LineageAnswer:
    """The columns that were asked for and, if it was one, who would be hurt without it."""

    of: str
    columns: tuple[ColumnLineage, ...]
    hurt: tuple[HurtColumn, ...]
    unknown: tuple[str, ...]
    """Tasks that do not say which columns they make: what comes behind them is not known."""


def lineage_answer(
    running: RunningSet, of: str, registry: Registry, may_inspect: Callable[[str], bool]
) -> LineageAnswer:
    """Answer for ``dataflow`` (all columns of its sinks), ``dataflow.task`` or ``dataflow.task.column``."""
    name, task, column = _split(running, of)
    dataflow = running.find(name).dataflow
    lineage = dataflow_lineage(dataflow, registry)
    sinks = [one.id for one in dataflow.tasks if _role(registry, one.type) is Role.SINK]
    places = [place for one in ([task] if task else sinks) for place in lineage.of_task(one)]
    if column:
        there = [place for place in places if place.column.casefold() == column.casefold()]
        if not there:
            known = [place.column for place in places]
            raise unknown("UNKNOWN_COLUMN", f"task '{name}.{task}' has no column '{column}'", column, known)
        places = there
    silent = tuple(str(one.id) for one in dataflow.tasks if not lineage.of_task(one.id))
    hurt = tuple(dict.fromkeys(_hurt(running, name, places[0], registry, may_inspect))) if column else ()
    return LineageAnswer(of, tuple(_column(lineage, place) for place in places), hurt, silent)


def named_dataflow(running: RunningSet, of: str) -> str:
    """The dataflow that a name begins with; raises :class:`~headgate.errors.InputError` if there is none."""
    return _split(running, of)[0]


def _split(running: RunningSet, of: str) -> tuple[str, str, str]:
    """Dataflow, task and column of a name; all three may have dots, so the longest dataflow that runs counts."""
    parts = of.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in running:
            rest = parts[count:]
            tasks = {str(task) for task in running.find(name).signatures}
            for size in range(len(rest), 0, -1):
                if ".".join(rest[:size]) in tasks:
                    return name, ".".join(rest[:size]), ".".join(rest[size:])
            if not rest:
                return name, "", ""
            raise unknown("UNKNOWN_TASK", f"dataflow '{name}' has no task '{rest[0]}'", rest[0], tasks)
    if not of:
        raise InputError("UNKNOWN_DATAFLOW", "name a dataflow, dataflow.task or dataflow.task.column")
    raise unknown("UNKNOWN_DATAFLOW", f"no dataflow '{parts[0]}' is submitted", parts[0], running.submitted)


def _role(registry: Registry, kind: str) -> Role | None:
    known = registry.get(kind)
    return None if known is None else known.role


def _column(lineage: DataflowLineage, place: ColumnPlace) -> ColumnLineage:
    return ColumnLineage(
        place.task,
        place.column,
        lineage.types.get(place),
        tuple(sorted(_said(one) for one in lineage.origins(place))),
        tuple(tuple(map(_said, path)) for path in lineage.paths(place)),
        tuple(sorted({f"{task} {option} ({_said(one)})" for task, option, one in lineage.deciders(place)})),
    )


def _said(place: ColumnPlace) -> str:
    return f"{place.task}.{place.column}" if place.port == "out" else f"{place.task}:{place.port}.{place.column}"


def _hurt(
    running: RunningSet, name: str, place: ColumnPlace, registry: Registry, may_inspect: Callable[[str], bool]
) -> Iterator[HurtColumn]:
    """All dataflows that use the same running task, and what each does with the column."""
    signature = {str(task): one for task, one in running.find(name).signatures.items()}[place.task]
    for user, own in sorted(running.users(signature).items()):
        dataflow = running.find(user).dataflow
        lineage = dataflow_lineage(dataflow, registry)
        start = ColumnPlace(str(own), place.column, place.port)
        owner, sinks = str(dataflow.owner), {one.id for one in dataflow.tasks if _role(registry, one.type) is Role.SINK}
        is_open = may_inspect(owner)
        for one in sorted(lineage.after(start)):
            for task, option in lineage.reads.get(one, ()):
                yield _masked(HurtColumn(user, owner, task, one.column, f"reads it in {option}"), is_open)
            if one.task in sinks:
                yield _masked(HurtColumn(user, owner, one.task, one.column, "delivers it"), is_open)
            elif one != start and one.column != place.column:
                yield _masked(HurtColumn(user, owner, one.task, one.column, "makes this of it"), is_open)


def _masked(hurt: HurtColumn, is_open: bool) -> HurtColumn:
    return hurt if is_open else HurtColumn(hurt.dataflow, hurt.owner, "", "", hurt.how.partition(" in ")[0])


_COLUMNS = (
    TableColumn("task", "task"),
    TableColumn("column", "column"),
    TableColumn("type", "type"),
    TableColumn("sources", "comes from"),
    TableColumn("made", "by way of"),
    TableColumn("decided_by", "rows decided by"),
)
_HURT = tuple(
    TableColumn(*pair)
    for pair in (
        ("dataflow", "dataflow"),
        ("owner", "owner"),
        ("task", "task"),
        ("column", "column"),
        ("how", "without it"),
    )
)


def lineage_tables(answer: dict[str, object]) -> list[Table]:
    """The answer for people."""
    columns = tuple(
        {
            **one,
            "sources": one["sources"] or None,
            "made": sorted({step for path in one["paths"] for step in path[1:-1]}) or None,
            "decided_by": one["decided_by"] or None,
        }
        for one in answer["columns"]  # type: ignore[attr-defined]
    )
    silent = answer["unknown"]
    notes = [f"Not known: which columns {', '.join(silent)} make."] if silent else []  # type: ignore[arg-type]
    tables = [Table(f"Columns of {answer['of']}", _COLUMNS, columns, tuple(notes))]
    hurt = answer["hurt"]
    if hurt:
        rows = tuple(dict(one) for one in hurt)  # type: ignore[attr-defined]
        tables.append(Table(f"If {answer['of']} went", _HURT, rows))
    return tables
