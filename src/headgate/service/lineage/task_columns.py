"""Which columns of its input each output column of a task is made of, and which columns it reads besides.

Task types say which columns they make. So they are asked again with one column of their input changed: with another
type, which columns pass it on; without it, which options miss it. Only expressions are read as SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.errors import BadValue, HeadgateError
from headgate.model.expression import columns_of
from headgate.model.schema import Column, Schema
from headgate.model.task_type import Inputs, TaskConfig, TaskType
from headgate.model.work import RowExpression

__all__ = ["InputColumn", "TaskColumns", "task_columns"]

PROBE = "struct<headgate_probe: int>"
"""A type that no task makes by itself."""

KEYS = ("key", "on")
"""Options that say which rows belong together, and make no column."""

Schemas = Mapping[str, Sequence[Schema | None]]


class InputColumn(NamedTuple):
    """A column of what enters a task."""

    port: str
    side: int
    name: str


@dataclass(frozen=True, slots=True)
class TaskColumns:
    """The columns of a task."""

    outputs: Mapping[str, Schema | None] = field(default_factory=dict)
    made_of: Mapping[tuple[str, str], frozenset[InputColumn]] = field(default_factory=dict)
    """By output port and column."""

    reads: Mapping[InputColumn, tuple[str, ...]] = field(default_factory=dict)
    """The options that read a column."""

    passed: frozenset[tuple[str, str]] = frozenset()
    """The output columns that are passed on as they are."""

    @property
    def deciding(self) -> Mapping[InputColumn, tuple[str, ...]]:
        """The options that make no column of what they read, such as a filter's condition or a window's key."""
        making = {
            (one, option)
            for output, of in self.made_of.items()
            if output not in self.passed
            for one in of
            for option in self.reads.get(one, ())
            if option not in KEYS
        }
        left = {c: tuple(o for o in options if (c, o) not in making) for c, options in self.reads.items()}
        return {column: options for column, options in left.items() if options}


def task_columns(kind: TaskType, options: TaskConfig, schemas: Schemas) -> TaskColumns:
    """Ask a task what it does with each column."""
    outputs = _outputs(options, schemas)[0]
    passed: dict[tuple[str, str], set[InputColumn]] = {}
    reads: dict[InputColumn, tuple[str, ...]] = {}
    for column in _columns(schemas):
        for port, schema in _outputs(options, _changed(schemas, column, PROBE))[0].items():
            for one in () if schema is None else schema.columns:
                if one.type is not None and PROBE in one.type:
                    passed.setdefault((port, one.name), set()).add(column)
        missed = _outputs(options, _changed(schemas, column, None))[1]
        if missed:
            reads[column] = tuple(dict.fromkeys(missed))
    made = {
        (port, one.name): frozenset(passed.get((port, one.name)) or _made(kind, options, one.name, schemas, reads))
        for port, schema in outputs.items()
        for one in (() if schema is None else schema.columns)
    }
    return TaskColumns(outputs, made, reads, frozenset(passed))


def _columns(schemas: Schemas) -> Iterator[InputColumn]:
    for port, entering in schemas.items():
        for side, schema in enumerate(entering):
            for column in () if schema is None else schema.columns:
                yield InputColumn(port, side, column.name)


def _outputs(options: TaskConfig, schemas: Schemas) -> tuple[Mapping[str, Schema | None], list[str]]:
    """The output schemas, and the options that miss a column."""
    inputs = Inputs(schemas)
    try:
        outputs = dict(options.outputs(inputs))
    except Exception:  # a task type of some package; it said nothing of this column
        return {}, []
    return outputs, [one.option for one in inputs.unknown]


def _changed(schemas: Schemas, column: InputColumn, kind: str | None) -> Schemas:
    """The schemas with a column of another type, or without it."""

    def changed(port: str, side: int, schema: Schema | None) -> Schema | None:
        if schema is None or (port, side) != (column.port, column.side):
            return schema
        if kind is None:
            return schema.without([column.name])
        return schema.with_column(Column(column.name, kind))

    return {
        port: [changed(port, side, schema) for side, schema in enumerate(entering)]
        for port, entering in schemas.items()
    }


def _made(
    kind: TaskType, options: TaskConfig, name: str, schemas: Schemas, reads: Mapping[InputColumn, tuple[str, ...]]
) -> set[InputColumn]:
    """Of which columns a new column is made: those of its expression, or else all that the task reads."""
    there = {column.name.casefold(): column for column in _columns(schemas)}
    text = _expression(kind, options, name, schemas)
    if text is not None:
        try:
            return {there[one.casefold()] for one in columns_of(text) if one.casefold() in there}
        except (BadValue, HeadgateError, ValueError):
            pass
    named = {option for option, value in _fields(options).items() if isinstance(value, Mapping)}
    likely = {one for one, by in reads.items() if any(option not in named and option not in KEYS for option in by)}
    return likely or set(reads)


def _expression(kind: TaskType, options: TaskConfig, name: str, schemas: Schemas) -> str | None:
    """The expression of a column, where the task has one for it."""
    entering = [schema for sides in schemas.values() for schema in sides if schema is not None]
    if isinstance(kind.work, RowExpression) and len(entering) == 1:
        row = kind.work.sql(options, entering[0].names)
        for column, text in row.columns or ():
            if column.casefold() == name.casefold():
                return text
    for value in _fields(options).values():
        expression = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(expression, str):
            return expression
    return None


def _fields(options: TaskConfig) -> Mapping[str, object]:
    return {name: getattr(options, name) for name in type(options).model_fields}
