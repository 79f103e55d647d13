"""The options of task types over event time: windows and joins of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from headgate.errors import BadValue, shorten
from headgate.model.schema import Column, Schema
from headgate.model.span import seconds_of
from headgate.model.task_type import IN, OUT, ColumnName, Expression, Inputs, TaskConfig

__all__ = ["EventTimeWindow", "Join"]


def _checked_span(text: str) -> str:
    if seconds_of(text) is None:
        raise BadValue(f"{shorten(text)} is not a span of time", "such as 500ms, 10s, 5min, 1h, 1d")
    return text


Span = Annotated[str, AfterValidator(_checked_span)]
"""A span of time: a number with ms, s, min, h or d."""

MAX_OVERLAP = 1_000
"""So many sliding windows may have one row."""


class EventTimeWindow(TaskConfig):
    """Aggregate the rows of each window of event time, by key.

    The window's bounds are added as ``window_start`` and ``window_end``. A window is passed on when the watermark has
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
    def _slide_fits(self) -> EventTimeWindow:
        if (self.slide is not None) != (self.kind == "sliding"):
            raise ValueError("slide and kind: sliding come together or not at all")
        if self.slide is not None and (seconds_of(self.size) or 0) > MAX_OVERLAP * (seconds_of(self.slide) or 1):
            raise ValueError(f"a row belongs to more than {MAX_OVERLAP:,} windows; make slide longer, or size shorter")
        if self.time.casefold() in {name.casefold() for name in self.key}:
            reason = f"'{self.time}' is the event time and cannot be a key as well"
            raise ValueError(f"{reason}; add it as a column, such as last: max({self.time})")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("time", [self.time])
        inputs.check_columns("key", self.key)
        for expression in self.columns.values():
            inputs.check_expression("columns", expression)
        bounds = (Column("window_start", "timestamp"), Column("window_end", "timestamp"))
        keys = (Column(name, inputs.type_of(name)) for name in self.key)
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
        return {OUT: None if left is None or right is None else left.joined(right, self.on)}
