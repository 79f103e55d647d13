"""Keyed task types that gather rows: reunite the fields of a message, collect batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field, PositiveInt, model_validator

from headgate.model.schema import Schema
from headgate.model.task_type import ColumnName, SchemaText
from headgate.model.work import Index
from headgate.tasks.keyed_base import KeyedConfig, Row, Step, Stepped, as_json, keyed

__all__ = ["TYPES", "Accumulate", "JoinFields"]


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


def join_fields(options: JoinFields, index: Index) -> Step:
    """The step of a join_fields task; it remembers what has come of a message.

    >>> step = join_fields(JoinFields(key=("id",), columns="a double, b double"), ["field", "value"].index)
    >>> state, nothing = step(None, ["a", 1])
    >>> step(state, ["b", 2])
    (None, '{"a":1.0,"b":2.0}')
    """
    kinds = options.added()
    field, value = index(options.field), index(options.value)

    def step(state: Any, row: Row) -> Stepped:
        name = row[field]
        if name not in kinds:
            return state, None
        come = {**(state or {}), name: _as(kinds[name], row[value])}
        return (come, None) if len(come) < len(kinds) else (None, as_json(come))

    return step


def _as(kind: str, value: Any) -> Any:
    if value is None:
        return None
    return {"double": float, "bigint": int, "boolean": bool, "string": str}[kind](value)


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


def accumulate(options: Accumulate, index: Index) -> Step:
    """The step of an accumulate task; it remembers the rows of the batch.

    >>> step = accumulate(Accumulate(key=("k",), columns=("v",), size=2), ["v"].index)
    >>> step(step(None, [1])[0], [2])[1]
    '[1.0,2.0]'
    """
    places = [index(name) for name in options.columns]
    names, size = options.columns, options.size

    def step(state: Any, row: Row) -> Stepped:
        rows = (*(state or ()), tuple(_number(row[at]) for at in places))
        if len(rows) < size:
            return rows, None
        if len(names) == 1:
            return (), as_json([value for (value,) in rows])
        return (), as_json(dict(zip(names, zip(*rows, strict=True), strict=True)))

    return step


def _number(value: Any) -> float | None:
    if value is None:
        return None
    return value.timestamp() if isinstance(value, datetime) else float(value)


TYPES = (
    keyed("join_fields", JoinFields, join_fields, "headgate-riotbench"),
    keyed("accumulate", Accumulate, accumulate, "headgate-riotbench"),
)
