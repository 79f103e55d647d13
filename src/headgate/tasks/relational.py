"""Task types that treat each row by itself: parse, filter, shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from headgate.model.schema import Column, Schema
from headgate.model.sql_type import sql_type
from headgate.model.task_type import IN, OUT, ColumnName, Expression, Inputs, SchemaText, TaskConfig, TaskType

__all__ = [
    "TYPES",
    "Cast",
    "Derive",
    "Drop",
    "Explode",
    "Filter",
    "ParseCsv",
    "ParseJson",
    "RangeFilter",
    "Rename",
    "Sample",
    "Select",
    "Tokenise",
    "Union",
    "Unpivot",
]

TypeName = Annotated[str, AfterValidator(sql_type)]


class Filter(TaskConfig):
    """Pass the rows for which a SQL predicate holds."""

    example: ClassVar[Mapping[str, Any]] = {"where": "temperature between -12.5 and 43.1"}

    where: Expression = Field(description="The predicate, in Spark SQL; rows for which it is null do not pass.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_expression("where", self.where)
        return {OUT: inputs.rows()}


class RangeFilter(TaskConfig):
    """Pass the rows whose values all lie in given ranges, both ends included; or blank the values that do not."""

    example: ClassVar[Mapping[str, Any]] = {"ranges": {"temperature": [-12.5, 43.1], "humidity": [10.7, 95.2]}}

    ranges: dict[ColumnName, tuple[float, float]] = Field(
        min_length=1, description="Lowest and highest value by column."
    )
    outside: Literal["drop", "null"] = Field(
        "drop", description="Whether a value out of range drops its row, or becomes null and the row passes."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("ranges", self.ranges)
        return {OUT: inputs.rows()}


class Select(TaskConfig):
    """Keep some columns, in the given order."""

    example: ClassVar[Mapping[str, Any]] = {"columns": ["sensor", "temperature"]}

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns to keep.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        rows = inputs.rows()
        kept = [rows.find(name) if rows else None for name in self.columns]
        return {
            OUT: Schema(
                tuple(Column(name, old.type if old else None) for name, old in zip(self.columns, kept, strict=True))
            )
        }


class Drop(TaskConfig):
    """Leave out some columns."""

    example: ClassVar[Mapping[str, Any]] = {"columns": ["raw"]}

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns to leave out.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        dropped = {name.casefold() for name in self.columns}
        return {OUT: Schema(tuple(column for column in rows.columns if column.name.casefold() not in dropped))}


class Derive(TaskConfig):
    """Add or replace columns by SQL expressions over the columns that come in."""

    example: ClassVar[Mapping[str, Any]] = {"columns": {"fahrenheit": "temperature * 9 / 5 + 32"}}

    columns: dict[ColumnName, Expression] = Field(min_length=1, description="The expression for each new column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        rows = inputs.rows()
        for expression in self.columns.values():
            inputs.check_expression("columns", expression)
        for name in self.columns:
            rows = rows.with_column(Column(name)) if rows else None
        return {OUT: rows}


class Rename(TaskConfig):
    """Give columns other names."""

    example: ClassVar[Mapping[str, Any]] = {"columns": {"v": "temperature"}}

    columns: dict[ColumnName, ColumnName] = Field(min_length=1, description="The new name by the old one.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        names = {old.casefold(): new for old, new in self.columns.items()}
        return {OUT: Schema(tuple(Column(names.get(c.name.casefold(), c.name), c.type) for c in rows.columns))}


class Cast(TaskConfig):
    """Turn columns into other types; what cannot be turned becomes null."""

    example: ClassVar[Mapping[str, Any]] = {"columns": {"temperature": "double"}}

    columns: dict[ColumnName, TypeName] = Field(min_length=1, description="The Spark SQL type by column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        rows = inputs.rows()
        for name, kind in self.columns.items():
            rows = rows.with_column(Column(name, kind)) if rows else None
        return {OUT: rows}


class Explode(TaskConfig):
    """Make one row of each element of an array or map column."""

    example: ClassVar[Mapping[str, Any]] = {"column": "readings", "into": "reading"}

    column: ColumnName = Field(description="The array column.")
    into: ColumnName | None = Field(
        None, description="The name of the element's column; that of the array if left out."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        kept = tuple(column for column in rows.columns if column.name.casefold() != self.column.casefold())
        return {OUT: Schema(kept).with_column(Column(self.into or self.column))}


class Tokenise(TaskConfig):
    """Split a text into words, one row each."""

    example: ClassVar[Mapping[str, Any]] = {"column": "text"}

    column: ColumnName = Field("value", description="The text column.")
    into: ColumnName = Field("word", description="The name of the word's column.")
    pattern: str = Field(
        r"\W+", min_length=1, max_length=512, description="Regular expression of what lies between words."
    )
    lower: bool = Field(True, description="Whether to turn words into lower case.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "string")) if rows else None}


class Sample(TaskConfig):
    """Pass a random share of the rows, the same ones each time for one seed."""

    example: ClassVar[Mapping[str, Any]] = {"share": 0.1}

    share: float = Field(gt=0, le=1, description="The share that passes.")
    seed: int = Field(0, ge=0, lt=2**63, description="Another seed picks other rows.")


class Union(TaskConfig):
    """Interleave several streams of equal columns into one."""

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: inputs.rows(IN)}


class Unpivot(TaskConfig):
    """Make one row of each of some columns: the column's name and its value, with the other columns beside."""

    example: ClassVar[Mapping[str, Any]] = {"columns": ["temperature", "humidity"]}

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns, all of one type.")
    field: ColumnName = Field("field", description="The name of the column for a column's name.")
    value: ColumnName = Field("value", description="The name of the column for its value.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        gone = {name.casefold() for name in self.columns}
        kept = Schema(tuple(column for column in rows.columns if column.name.casefold() not in gone))
        first = rows.find(self.columns[0])
        made = Column(self.value, None if first is None else first.type)
        return {OUT: kept.with_column(Column(self.field, "string")).with_column(made)}


class ParseJson(TaskConfig):
    """Parse a JSON text into columns; what is not JSON becomes nulls, or an error of its row."""

    example: ClassVar[Mapping[str, Any]] = {"columns": "sensor string, temperature double"}

    column: ColumnName = Field("value", description="The column that holds the text.")
    columns: SchemaText = Field(description="The fields to take out, as columns.")
    keep: bool = Field(False, description="Whether the other columns stay.")
    strict: bool = Field(False, description="Whether a text that does not fit is an error, which on_error deals with.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: _parsed(inputs, self.column, self.columns, self.keep)}


class ParseCsv(TaskConfig):
    """Parse a line of comma-separated values into columns; what does not fit becomes nulls, or an error of its row."""

    example: ClassVar[Mapping[str, Any]] = {"columns": "sensor string, temperature double"}

    column: ColumnName = Field("value", description="The column that holds the line.")
    columns: SchemaText = Field(description="The columns, in order.")
    separator: str = Field(",", min_length=1, max_length=1, description="What stands between values.")
    keep: bool = Field(False, description="Whether the other columns stay.")
    strict: bool = Field(False, description="Whether a text that does not fit is an error, which on_error deals with.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: _parsed(inputs, self.column, self.columns, self.keep)}


def _parsed(inputs: Inputs, column: str, columns: str, keep: bool) -> Schema | None:
    inputs.check_columns("column", [column])
    fields = Schema.parse(columns)
    if not keep:
        return fields
    rows = inputs.rows()
    for new in fields.columns:
        rows = rows.with_column(new) if rows else None
    return rows


TYPES = (
    TaskType("filter", Filter),
    TaskType("range_filter", RangeFilter),
    TaskType("select", Select),
    TaskType("drop", Drop),
    TaskType("derive", Derive),
    TaskType("rename", Rename),
    TaskType("cast", Cast),
    TaskType("explode", Explode),
    TaskType("unpivot", Unpivot),
    TaskType("tokenise", Tokenise),
    TaskType("sample", Sample),
    TaskType("union", Union),
    TaskType("parse_json", ParseJson),
    TaskType("parse_csv", ParseCsv),
)
