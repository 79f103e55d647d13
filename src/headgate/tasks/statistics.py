"""Keyed task types that gather and estimate: RIoTBench's statistics, the reunion of a message's fields, top values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, PositiveInt, model_validator

from headgate.model.schema import Schema
from headgate.model.task_type import STEP, ColumnName, SchemaText, State, TaskType
from headgate.tasks.stateful import KeyedColumn, KeyedConfig

__all__ = [
    "TYPES",
    "Accumulate",
    "BlockAverage",
    "Distinct",
    "DistinctSketch",
    "Interpolate",
    "JoinFields",
    "SecondMoment",
    "SlidingRegression",
    "TopK",
]


class BlockAverage(KeyedColumn):
    """Average each block of so many values of a key, and pass on the row that completes it."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor", "field"], "column": "value", "size": 10}

    column: ColumnName = Field(description="The column to average.")
    size: PositiveInt = Field(10, le=100_000, description="How many values make a block.")
    every: bool = Field(
        False, description="Whether all rows pass, with the mean of the last whole block, null until there is one."
    )
    into: ColumnName = Field("average", description="The name of the new column.")

    @property
    def sparse(self) -> bool:
        return not self.every

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


class Interpolate(KeyedConfig):
    """Fill what is missing with the mean of the last values of its key, as far as there are some.

    Values that were filled in do not count among them.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "columns": ["temperature", "humidity"]}
    keeps: ClassVar[bool] = True

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns to fill; they become doubles.")
    size: PositiveInt = Field(5, le=10_000, description="Over how many values to average.")

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"columns": self.columns}

    def added(self) -> Mapping[str, str]:
        return dict.fromkeys(self.columns, "double")


class JoinFields(KeyedConfig):
    """Reunite the fields of a message, which come as rows of their own: one row when all have come.

    The reverse of ``unpivot``. The row that completes a message is passed on, with a column for each field in the place
    of the two for the field's name and value. A field that comes twice has its last value. Of a message that never
    becomes whole, what has come is kept.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["message"], "columns": "temperature double, humidity double"}

    columns: SchemaText = Field(description="The fields, as columns: doubles, strings, bigints, booleans.")
    field: ColumnName = Field("field", description="The column of the field's name.")
    value: ColumnName = Field("value", description="The column of the field's value.")

    @model_validator(mode="after")
    def _plain_types(self) -> JoinFields:
        for column in Schema.parse(self.columns).columns:
            if column.type not in ("double", "string", "bigint", "boolean"):
                raise ValueError(
                    f"field '{column.name}' is {column.type}: a field is double, string, bigint or boolean"
                )
        return self

    @property
    def sparse(self) -> bool:
        return True

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"field": [self.field], "value": [self.value]}

    def added(self) -> Mapping[str, str]:
        return {column.name: str(column.type) for column in Schema.parse(self.columns).columns}

    def dropped(self) -> Sequence[str]:
        return (self.field, self.value)


class Accumulate(KeyedConfig):
    """Collect so many rows of a key and hand their values over together, with the row that completes them.

    Each of the columns becomes an array of numbers, oldest first; times become seconds since 1970.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "columns": ["time", "temperature"], "size": 20}

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns to collect: numbers or times.")
    size: PositiveInt = Field(20, le=100_000, description="How many rows make a batch.")

    @property
    def sparse(self) -> bool:
        return True

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"columns": self.columns}

    def added(self) -> Mapping[str, str]:
        return dict.fromkeys(self.columns, "array<double>")


class Distinct(KeyedColumn):
    """Count the distinct values of each key so far, exactly. It remembers every one of them."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["field"], "column": "sensor"}

    column: ColumnName = Field(description="The column whose values are counted.")
    into: ColumnName = Field("distinct", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


class DistinctSketch(KeyedColumn):
    """Estimate the number of distinct values of each key so far, by a HyperLogLog sketch of fixed size.

    The standard error is 1.04 over the square root of the number of registers, 2 to the power of ``bits``. (RIoTBench
    has the older LogLog, which reads the same registers with a larger error.)
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["field"], "column": "sensor"}

    column: ColumnName = Field(description="The column whose values are counted.")
    bits: int = Field(10, ge=4, le=16, description="There are 2 to the power of this many registers, a byte each.")
    into: ColumnName = Field("distinct", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


class SecondMoment(KeyedColumn):
    """Estimate the second moment of each key's values: the sum over distinct values of their count squared.

    By the sampling of Alon, Matias and Szegedy: some places of the stream are drawn, all equally likely, and from each
    on the value there is counted, c; n (2 c - 1) over the places, on average, is the estimate.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor", "field"], "column": "value"}

    column: ColumnName = Field(description="The column whose values are counted.")
    places: PositiveInt = Field(10, le=10_000, description="How many places of the stream are tracked at most.")
    seed: int = Field(0, ge=0, lt=2**63, description="Another seed draws other places.")
    into: ColumnName = Field("moment", description="The name of the new column.")

    def added(self) -> Mapping[str, str]:
        return {self.into: "double"}


class SlidingRegression(KeyedColumn):
    """Fit a line to the last values of each key, and tell the next ones that it predicts.

    Rows pass from the moment on when there are enough values to fit.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor", "field"], "column": "smoothed"}

    column: ColumnName = Field(description="The column of values.")
    train: int = Field(10, ge=2, le=100_000, description="How many values to fit.")
    ahead: PositiveInt = Field(10, le=10_000, description="How many values to predict.")
    into: ColumnName = Field("predictions", description="The name of the new column, an array.")

    @property
    def sparse(self) -> bool:
        return True

    def added(self) -> Mapping[str, str]:
        return {self.into: "array<double>"}


class TopK(KeyedColumn):
    """Pass the rows that are among the highest of their key so far, with their rank when they came."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["district"], "column": "dust", "size": 3}

    column: ColumnName = Field(description="The column to compare by; of equal values the first counts.")
    size: PositiveInt = Field(10, le=100_000, description="How many are the highest.")
    into: ColumnName = Field("rank", description="The name of the new column; the highest has rank 1.")

    @property
    def sparse(self) -> bool:
        return True

    def added(self) -> Mapping[str, str]:
        return {self.into: "bigint"}


TYPES = tuple(
    TaskType(name, config, STEP, State.KEYED)
    for name, config in (
        ("block_average", BlockAverage),
        ("interpolate", Interpolate),
        ("join_fields", JoinFields),
        ("accumulate", Accumulate),
        ("distinct", Distinct),
        ("distinct_sketch", DistinctSketch),
        ("second_moment", SecondMoment),
        ("sliding_regression", SlidingRegression),
        ("top_k", TopK),
    )
)
