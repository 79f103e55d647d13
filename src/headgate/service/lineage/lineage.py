"""The lineage of the columns of a dataflow, from its sources to its sinks, and of all dataflows that share a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from headgate.errors import unknown
from headgate.model.dataflow import Dataflow
from headgate.model.expression import columns_of
from headgate.model.graph import topological_order
from headgate.model.names import TaskId
from headgate.model.schema import Schema
from headgate.model.stream import ByKey, ByPredicate, Stream
from headgate.model.task_type import Role
from headgate.service.lineage.task_columns import InputColumn, TaskColumns, task_columns
from headgate.tasks.registry import Registry

__all__ = ["ColumnPlace", "DataflowLineage", "LineageStep", "dataflow_lineage"]


@dataclass(frozen=True, slots=True, order=True)
class ColumnPlace:
    """A column of the rows that a task puts out or, of a sink, takes in."""

    task: str
    column: str
    port: str = "out"


@dataclass(frozen=True, slots=True)
class LineageStep:
    """A column that is made of others, or whose rows others decide about."""

    of: frozenset[ColumnPlace] = frozenset()
    decided_by: frozenset[tuple[str, str, ColumnPlace]] = frozenset()
    """Task, option and the column that it reads."""


@dataclass(frozen=True, slots=True)
class DataflowLineage:
    """The columns of all tasks of a dataflow."""

    dataflow: Dataflow
    columns: Mapping[ColumnPlace, LineageStep] = field(default_factory=dict)
    reads: Mapping[ColumnPlace, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The tasks and options that read a column."""

    types: Mapping[ColumnPlace, str | None] = field(default_factory=dict)

    def of_task(self, task: str) -> list[ColumnPlace]:
        """The columns of a task, in their order; raises :class:`~headgate.errors.InputError` for an unknown task."""
        known = [str(one.id) for one in self.dataflow.tasks]
        if task not in known:
            message = f"dataflow '{self.dataflow.name}' has no task '{task}'"
            raise unknown("UNKNOWN_TASK", message, task, known)
        return [place for place in self.columns if place.task == task]

    def paths(self, place: ColumnPlace, most: int = 32) -> list[tuple[ColumnPlace, ...]]:
        """The ways from sources to a column, each from the source on; a task that only passes it on is left out."""
        paths: list[tuple[ColumnPlace, ...]] = []
        waiting: list[tuple[ColumnPlace, ...]] = [(place,)]
        while waiting and len(paths) < most:
            path = waiting.pop()
            before = sorted(self.columns.get(path[0], LineageStep()).of)
            if not before:
                paths.append(path)
            for one in before:
                passes = len(before) == 1 and one.column == path[0].column and self.columns[one].of
                waiting.append((one, *path[1:]) if passes and len(path) > 1 else (one, *path))
        return sorted(dict.fromkeys(paths))

    def origins(self, place: ColumnPlace) -> set[ColumnPlace]:
        """The columns of sources of which a column is made."""
        return {one for one in self._before(place) if not self.columns.get(one, LineageStep()).of}

    def deciders(self, place: ColumnPlace) -> set[tuple[str, str, ColumnPlace]]:
        """What decides which rows come, and in what groups: filters, keys, routing."""
        return {one for before in self._before(place) for one in self.columns.get(before, LineageStep()).decided_by}

    def after(self, place: ColumnPlace) -> set[ColumnPlace]:
        """The columns that are made of a column, itself included."""
        made: dict[ColumnPlace, list[ColumnPlace]] = {}
        for target, step in self.columns.items():
            for source in step.of:
                made.setdefault(source, []).append(target)
        return _reached(place, made)

    def _before(self, place: ColumnPlace) -> set[ColumnPlace]:
        return _reached(place, {target: sorted(step.of) for target, step in self.columns.items()})


def _reached(place: ColumnPlace, steps: Mapping[ColumnPlace, list[ColumnPlace]]) -> set[ColumnPlace]:
    seen, waiting = {place}, [place]
    while waiting:
        for one in steps.get(waiting.pop(), ()):
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return seen


def dataflow_lineage(dataflow: Dataflow, registry: Registry) -> DataflowLineage:
    """Follow the columns of a dataflow; where a task does not say which it makes, what follows is unknown."""
    made = _Maker(dataflow, registry)
    for task in made.order:
        made.add(task)
    reads = {place: tuple(options) for place, options in made.reads.items()}
    return DataflowLineage(dataflow, made.columns, reads, made.types)


class _Maker:
    def __init__(self, dataflow: Dataflow, registry: Registry) -> None:
        self._tasks = {task.id: task for task in dataflow.tasks}
        self._registry = registry
        self._feeds: dict[TaskId, list[Stream]] = {task: [] for task in self._tasks}
        for stream in dataflow.streams:
            if not stream.feedback:
                self._feeds[stream.target].append(stream)
        self.order = topological_order({task: [s.source for s in feeds] for task, feeds in self._feeds.items()})
        self._schemas: dict[tuple[TaskId, str], Schema | None] = {}
        self.columns: dict[ColumnPlace, LineageStep] = {}
        self.reads: dict[ColumnPlace, list[tuple[str, str]]] = {}
        self.types: dict[ColumnPlace, str | None] = {}

    def add(self, task: TaskId) -> None:
        """Take a task whose inputs are known."""
        feeds, entering = self._feeds[task], dict[str, list[Schema | None]]()
        for stream in feeds:
            schema = self._schemas.get((stream.source, stream.source_port))
            entering.setdefault(str(stream.target_port), []).append(schema)
        does = self._asked(task, entering)
        decided = {*self._routing(task, feeds), *self._options(task, feeds, does)}
        for port, schema in does.outputs.items():
            self._schemas[task, port] = schema
            for column in () if schema is None else schema.columns:
                of = {p for one in does.made_of[port, column.name] for p in self._places(feeds, one)}
                self._put(ColumnPlace(str(task), column.name, port), column.type, of, decided)
        if self._is_sink(task):
            for column in next((s.columns for sides in entering.values() for s in sides if s is not None), ()):
                of = {p for port in entering for p in self._places(feeds, InputColumn(port, 0, column.name))}
                self._put(ColumnPlace(str(task), column.name), column.type, of, decided)

    def _put(
        self, place: ColumnPlace, kind: str | None, of: set[ColumnPlace], decided: set[tuple[str, str, ColumnPlace]]
    ) -> None:
        self.columns[place] = LineageStep(frozenset(of), frozenset(decided))
        self.types[place] = kind

    def _asked(self, task: TaskId, entering: Mapping[str, list[Schema | None]]) -> TaskColumns:
        one = self._tasks[task].alternates[0]
        kind = self._registry.get(one.type)
        if kind is None:
            return TaskColumns()
        try:
            return task_columns(kind, kind.config(**one.config.as_dict()), entering)
        except ValidationError:  # a dataflow of an older version of the type
            return TaskColumns()

    def _is_sink(self, task: TaskId) -> bool:
        kind = self._registry.get(self._tasks[task].alternates[0].type)
        return kind is not None and kind.role is Role.SINK

    def _places(self, feeds: list[Stream], column: InputColumn) -> Iterator[ColumnPlace]:
        """Where a column of an input comes from: streams that interleave all bring it, sides of a join do not."""
        entering = [stream for stream in feeds if stream.target_port == column.port]
        for number, stream in enumerate(entering):
            schema = self._schemas.get((stream.source, stream.source_port))
            there = None if schema is None else schema.find(column.name)
            if there is not None and (stream.side is None or number == column.side):
                yield ColumnPlace(str(stream.source), there.name, str(stream.source_port))

    def _routing(self, task: TaskId, feeds: list[Stream]) -> Iterator[tuple[str, str, ColumnPlace]]:
        for stream in feeds:
            routing = stream.routing
            option = "where" if isinstance(routing, ByPredicate) else "key"
            named = columns_of(routing.where) if isinstance(routing, ByPredicate) else ()
            named = routing.columns if isinstance(routing, ByKey) else named
            schema = self._schemas.get((stream.source, stream.source_port))
            for name in named:
                column = None if schema is None else schema.find(name)
                if column is not None:
                    place = ColumnPlace(str(stream.source), column.name, str(stream.source_port))
                    self.reads.setdefault(place, []).append((str(task), option))
                    yield str(task), option, place

    def _options(self, task: TaskId, feeds: list[Stream], does: TaskColumns) -> Iterator[tuple[str, str, ColumnPlace]]:
        """What options read and make no column of."""
        for column, options in does.reads.items():
            for place in self._places(feeds, column):
                for option in options:
                    self.reads.setdefault(place, []).append((str(task), option))
                    if option in does.deciding.get(column, ()):
                        yield str(task), option, place
