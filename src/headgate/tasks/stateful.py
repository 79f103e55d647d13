"""Task types that remember: per key, in event-time windows, and joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from headgate.errors import BadValue, shorten
from headgate.model.schema import Column, Schema
from headgate.model.span import seconds_of
from headgate.model.task_type import IN, OUT, STEP, ColumnName, Expression, Inputs, State, TaskConfig, TaskType, joining

__all__ = ["TYPES", "Count", "Dedup", "Difference", "Join", "Kalman", "MovingAverage", "Running", "Window"]


def _checked_span(text: str) -> str:
    if seconds_of(text) is None:
        raise BadValue(f"{shorten(text)} is not a span of time", "such as 500ms, 10s, 5min, 1h, 1d")
    return text


Span = Annotated[str, AfterValidator(_checked_span)]
"""A span of time: a number with ms, s, min, h or d."""


class KeyedConfig(TaskConfig):
    """A task that remembers something for each key, and tells something of it for a row: nothing, or a result.

    The result becomes columns of the row. Of one column it is the column's value, of several an object that has them.
    """

    keeps: ClassVar[bool] = False
    """Whether columns keep the value that they have where there is no result."""

    key: tuple[ColumnName, ...] = Field(min_length=1, description="The columns whose values make the key.")

    @property
    def sparse(self) -> bool:
        """Whether rows for which there is no result do not pass."""
        return False

    def reads(self) -> Mapping[str, Sequence[str]]:
        """The columns that it reads beside the key, by the option that names them."""
        return {}

    def added(self) -> Mapping[str, str]:
        """The columns that its result becomes, and their SQL types."""
        return {}

    def dropped(self) -> Sequence[str]:
        """Columns of the row that are not passed on."""
        return ()

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("key", self.key)
        for option, columns in self.reads().items():
            inputs.check_columns(option, columns)
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        gone = {name.casefold() for name in self.dropped()}
        made = Schema(tuple(column for column in rows.columns if column.name.casefold() not in gone))
        for name, kind in self.added().items():
            made = made.with_column(Column(name, kind))
        return {OUT: made}


class KeyedColumn(KeyedConfig):
    """A keyed task that reads one column."""

    column: ColumnName = Field(description="The column to look at.")

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"column": [self.column]}


class Count(KeyedConfig):
    """Count the rows of each key so far."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["word"]}

    into: ColumnName = Field("count", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "bigint"}


class MovingAverage(KeyedColumn):
    """Average the last values of each key."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "column": "temperature", "size": 5}

    column: ColumnName = Field(description="The column to average.")
    size: PositiveInt = Field(10, le=100_000, description="How many values to average over.")
    into: ColumnName = Field("average", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


class Running(KeyedColumn):
    """Tell of the values of each key so far how many there are, their sum, mean, least or greatest.

    It remembers four numbers for each key. A row whose value is null passes with what there was before it.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "key": ["category"],
        "column": "price",
        "columns": {"average": "mean", "sold": "count"},
    }

    column: ColumnName = Field(description="The column of the values.")
    columns: dict[ColumnName, Literal["count", "sum", "mean", "min", "max"]] = Field(
        min_length=1, description="What each new column tells; but for a count, null until there is a value."
    )

    def added(self) -> Mapping[str, str]:
        return {name: "bigint" if of == "count" else "double" for name, of in self.columns.items()}


class Difference(KeyedColumn):
    """Subtract from each value the one that came some rows before it for the same key."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "column": "temperature"}

    column: ColumnName = Field(description="The column to subtract in.")
    lag: PositiveInt = Field(1, le=100_000, description="How many rows before.")
    into: ColumnName = Field("difference", description="The name of the new column; null until enough rows came.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


class Kalman(KeyedColumn):
    """Smooth the values of each key by a one-dimensional Kalman filter.

    The defaults are RIoTBench's.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "column": "temperature"}

    column: ColumnName = Field(description="The column to smooth.")
    process_noise: PositiveFloat = Field(0.125, description="Variance of the true value's change from row to row.")
    sensor_noise: PositiveFloat = Field(0.32, description="Variance of the measurement.")
    first_error: NonNegativeFloat = Field(30.0, description="Variance of the first estimate.")
    into: ColumnName = Field("smoothed", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


class Dedup(KeyedConfig):
    """Pass the first row of each key and drop its repetitions."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["message_id"]}

    @property
    def sparse(self) -> bool:
        return True


class Window(TaskConfig):
    """Aggregate the rows of each window of event time, by key.

    The window's bounds are added as ``window_start`` and ``window_end``. A window is told of when the watermark has
    passed it; rows that come later than ``late_by`` are left out.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "time": "t",
        "size": "5min",
        "key": ["sensor"],
        "columns": {"mean": "avg(temperature)", "n": "count(*)"},
    }

    time: ColumnName = Field(description="The column of event time, a timestamp.")
    kind: Literal["tumbling", "sliding", "session"] = Field(
        "tumbling", description="Side by side, overlapping, or by gaps."
    )
    size: Span = Field(description="The window's length; for sessions the gap that ends one.")
    slide: Span | None = Field(None, description="How far sliding windows start apart.")
    key: tuple[ColumnName, ...] = Field((), description="Aggregate by these columns; over all rows if left out.")
    columns: dict[ColumnName, Expression] = Field(
        min_length=1, description="An aggregate expression for each new column."
    )
    late_by: Span = Field("0s", description="How long to wait for late rows.")

    @model_validator(mode="after")
    def _slide_fits(self) -> Window:
        if (self.slide is not None) != (self.kind == "sliding"):
            raise ValueError("slide and kind: sliding come together or not at all")
        if self.time.casefold() in {name.casefold() for name in self.key}:
            told = f"'{self.time}' is the event time and cannot be a key as well"
            raise ValueError(f"{told}; add it as a column, such as last: max({self.time})")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("time", [self.time])
        inputs.check_columns("key", self.key)
        for expression in self.columns.values():
            inputs.check_expression("columns", expression)
        rows = inputs.rows()
        bounds = (Column("window_start", "timestamp"), Column("window_end", "timestamp"))
        keys = tuple(Column(name, found.type if rows and (found := rows.find(name)) else None) for name in self.key)
        return {OUT: Schema((*bounds, *keys, *map(Column, self.columns)))}


class Join(TaskConfig):
    """Join two streams on equal keys, within a span of event time.

    The first input listed is the left side, the second the right. Columns that both have get ``right_`` before the
    right one's name, except the keys.
    """

    example: ClassVar[Mapping[str, Any]] = {"on": ["order"], "time": ["ordered_at", "paid_at"], "within": "10min"}

    on: tuple[ColumnName, ...] = Field(min_length=1, description="The key columns, which both sides have.")
    kind: Literal["inner", "left"] = Field(
        "inner", description="Whether left rows without a partner are passed on too."
    )
    time: tuple[ColumnName, ColumnName] = Field(description="The event-time columns of the left and the right side.")
    within: Span = Field(description="How far apart in event time partners may be.")
    late_by: Span = Field("0s", description="How long to wait for late rows.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        for side in (0, 1):
            inputs.check_columns("on", self.on, IN, side)
            inputs.check_columns("time", [self.time[side]], IN, side)
        left, right = inputs.rows(IN, 0), inputs.rows(IN, 1)
        if left is None or right is None:
            return {OUT: None}
        keys = {name.casefold() for name in self.on}
        added = (c for c in right.columns if c.name.casefold() not in keys)
        named = (Column(f"right_{c.name}" if left.find(c.name) else c.name, c.type) for c in added)
        return {OUT: Schema((*left.columns, *named))}


TYPES = (
    TaskType("count", Count, STEP, State.KEYED),
    TaskType("moving_average", MovingAverage, STEP, State.KEYED),
    TaskType("running", Running, STEP, State.KEYED),
    TaskType("difference", Difference, STEP, State.KEYED),
    TaskType("kalman", Kalman, STEP, State.KEYED),
    TaskType("dedup", Dedup, STEP, State.KEYED),
    TaskType("window", Window, STEP, State.NATIVE),
    TaskType("join", Join, joining(2), State.NATIVE),
)
