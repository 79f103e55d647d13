"""Task types: what a task may be, which options it takes, which ports it has and which columns it makes.

A task type is one :class:`TaskConfig` subclass (the options, checked by pydantic) in a :class:`TaskType`. Packages add
their own through the entry-point group ``headgate.task_types``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from headgate.errors import BadValue, nearest
from headgate.model.config import Config
from headgate.model.expression import check_query, check_query_of_rows, columns_of, spliced
from headgate.model.names import PortName
from headgate.model.schema import MOST_COLUMNS, Column, Schema
from headgate.model.sql.bounds import bounded
from headgate.model.sql.permitted import check_permitted
from headgate.model.start import Start, StartKind
from headgate.model.task import Gather, Port, Ports
from headgate.model.touching import Touched, marked
from headgate.model.work import BatchWork, ChainWork, FrameWork, KeyedWork, RowExpression, SinkWork, SourceWork, Work

__all__ = [
    "IN",
    "OUT",
    "SINK",
    "SOURCE",
    "STEP",
    "ColumnName",
    "Expression",
    "Inputs",
    "JsonObject",
    "Query",
    "QueryOfRows",
    "Role",
    "SchemaText",
    "SourceStart",
    "State",
    "TaskConfig",
    "TaskType",
    "UnknownColumn",
]

IN, OUT = PortName("in"), PortName("out")

SOURCE = Ports(outputs=(Port(OUT),))
STEP = Ports(inputs=(Port(IN),), outputs=(Port(OUT),))
SINK = Ports(inputs=(Port(IN),))


class Role(StrEnum):
    """Where in a dataflow a task of this type stands."""

    SOURCE = "source"
    STEP = "step"
    SINK = "sink"


class State(StrEnum):
    """What a task remembers between rows."""

    NONE = "none"
    """Nothing: each row is treated by itself."""

    KEYED = "keyed"
    """Something for each key, kept by a keyed host."""

    NATIVE = "native"
    """Event-time windows or joins, kept by a Spark streaming query of their own."""


def _checked_expression(text: str) -> str:
    columns_of(text)
    check_permitted(text)
    if (checking := bounded(text)) != text:
        spliced(checking, str)
    return text


def _checked_query(text: str) -> str:
    check_query(text)
    return text


def _checked_query_of_rows(text: str) -> str:
    check_query_of_rows(text)
    check_permitted(text)
    bounded(text)
    return text


def _checked_start(text: str) -> str:
    start = Start.parse(text)
    if start.kind is StartKind.WITH:
        raise BadValue("a source begins with no other dataflow", "earliest, now, a time or an age")
    return str(start)


def _checked_schema(text: str) -> str:
    Schema.parse(text)
    return text


Expression = Annotated[str, AfterValidator(_checked_expression)]
"""A Spark SQL expression over the columns of the task's input."""

Query = Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_checked_query)]
"""A SELECT in SQL, for a database."""

QueryOfRows = Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_checked_query_of_rows)]
"""A SELECT in Spark SQL over streams, by the names of their ports."""

SchemaText = Annotated[str, AfterValidator(_checked_schema)]
"""Columns as in SQL's CREATE TABLE: ``id string, v double``."""


def _checked_json(value: dict[str, Any]) -> dict[str, Any]:
    Config(value)
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(_checked_json)]
"""A mapping of anything that JSON can carry."""

SourceStart = Annotated[str, AfterValidator(_checked_start)]
"""From where one source reads, where its dataflow's ``start`` is not to hold for it."""

ColumnName = Annotated[str, Field(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class UnknownColumn:
    """An option that reads a column which the input does not have."""

    option: str
    column: str
    schema: Schema

    @property
    def nearest(self) -> str | None:
        return nearest(self.column, self.schema.names)


@dataclass(slots=True)
class Inputs:
    """What enters a task: a schema per port and side, ``None`` where it is not known; collects what does not fit."""

    schemas: Mapping[str, Sequence[Schema | None]]
    unknown: list[UnknownColumn] = field(default_factory=list)

    def rows(self, port: str = IN, side: int = 0) -> Schema | None:
        """The schema of the rows that enter a port (of one side of it, where it joins)."""
        entering = self.schemas.get(port, ())
        return entering[side] if side < len(entering) else None

    def type_of(self, name: str) -> str | None:
        """The type of a column that enters, if it is known."""
        rows = self.rows()
        column = None if rows is None else rows.find(name)
        return None if column is None else column.type

    def passed_on(self, *added: Column, dropped: Iterable[str] = ()) -> Mapping[str, Schema | None]:
        """The output of a task that passes rows on with some columns added or replaced, and without others."""
        rows = None if (entering := self.rows()) is None else entering.without(dropped)
        for column in added:
            rows = rows.with_column(column) if rows else None
        return {OUT: rows}

    def check_columns(self, option: str, names: Iterable[str], port: str = IN, side: int = 0) -> None:
        """Note every name that is no column of what enters ``port``; says nothing where the schema is unknown."""
        schema = self.rows(port, side)
        if schema is not None:
            self.unknown += [UnknownColumn(option, name, schema) for name in names if schema.find(name) is None]

    def check_expression(self, option: str, expression: str, port: str = IN, side: int = 0) -> None:
        """Note every column that a SQL expression reads and the input lacks."""
        self.check_columns(option, columns_of(expression), port, side)


class TaskConfig(BaseModel):
    """The options of a task type; subclass it, one field per option, each with a description.

    ``outputs`` returns the schema of each output port and records missing columns; the default passes on what
    comes in for a task with one input, and knows nothing otherwise.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",  # or infinity would become null before anybody could complain
        validate_default=False,
    )

    example: ClassVar[Mapping[str, Any]] = {}
    """Options that make a valid task, shown by ``headgate tasks NAME``."""

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        columns = getattr(self, "columns", None)
        if isinstance(columns, Mapping | list | tuple) and len(columns) > MOST_COLUMNS:
            raise BadValue(f"{len(columns):,} columns are too many", f"at most {MOST_COLUMNS:,}")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: inputs.rows()}

    def touches(self) -> Iterator[Touched]:
        """What the task touches outside of Spark; by default what is marked (:mod:`headgate.model.touching`)."""
        return marked(self)


TYPICAL_COST_S: Mapping[type[Work], float] = {
    RowExpression: 1e-6,
    BatchWork: 5e-6,
    FrameWork: 5e-6,
    KeyedWork: 2e-5,
    ChainWork: 4e-6,
    SourceWork: 3e-6,
    SinkWork: 3e-6,
}
"""Core-seconds of a row by kind of work, where nothing else is known: orders of magnitude, from small rows."""


@dataclass(frozen=True, slots=True)
class TaskType:
    """A registered kind of task. Its summary is the first line of its options' docstring.

    >>> from headgate.tasks import BUILT_IN
    >>> print(next(kind for kind in BUILT_IN if kind.name == "filter").summary)
    Pass the rows for which a SQL predicate holds.
    """

    name: str
    config: type[TaskConfig]
    ports: Ports = STEP
    state: State = State.NONE
    ports_declared: bool = False
    """Whether the dataflow's author may name the ports; ``ports`` is then what holds if none are named."""

    package: str = "headgate"
    batchwise: bool = False
    """Whether it processes a micro-batch as a whole, so that it cannot continue without a row that makes it raise."""

    work: Work | None = None
    """What it does (:mod:`headgate.model.work`). Without it, tasks of the type are checked and simulated, not run."""

    cost_s: float | None = None
    """Core-seconds of a row, roughly, where it was not measured; if left out, the kind of work says it."""

    @property
    def typical_cost_s(self) -> float | None:
        """Core-seconds of a row where nothing else is known; none where the type does no work."""
        if self.cost_s is not None or self.work is None:
            return self.cost_s
        return TYPICAL_COST_S[type(self.work)]

    @property
    def by_row(self) -> bool:
        """Whether it treats each row by itself, and can leave out one for which it raises."""
        if isinstance(self.work, SourceWork):
            return self.work.by_row
        return self.role is Role.STEP and self.state is not State.NATIVE and not self.batchwise

    @property
    def summary(self) -> str:
        return (self.config.__doc__ or "").strip().partition("\n")[0]

    @property
    def stateful(self) -> bool:
        return self.state is not State.NONE

    @property
    def role(self) -> Role:
        if not self.ports.inputs:
            return Role.SOURCE
        return Role.STEP if self.ports.outputs else Role.SINK


def joining(sides: int) -> Ports:
    """Ports of a task that joins that many streams."""
    return Ports(inputs=(Port(IN, gather=Gather.JOIN, streams_min=sides, streams_max=sides),), outputs=(Port(OUT),))
