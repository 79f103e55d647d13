"""Task types that parse a text into columns: JSON and comma-separated values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from headgate.model.schema import Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, SchemaText, TaskConfig, TaskType
from headgate.model.work import RowExpression, RowWise
from headgate.tasks.sql_text import escaped, quoted, with_columns

__all__ = ["TYPES", "ParseCsv", "ParseJson"]


class ParseJson(TaskConfig):
    """Parse a JSON text into columns; what is not JSON becomes nulls, or an error of its row."""

    example: ClassVar[Mapping[str, Any]] = {"columns": "sensor string, temperature double"}

    column: ColumnName = Field("value", description="The column that holds the text.")
    columns: SchemaText = Field(description="The fields to take out, as columns.")
    keep: bool = Field(False, description="Whether the other columns stay.")
    strict: bool = Field(False, description="Whether a text that does not fit is an error, which on_error deals with.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: _parsed_columns(inputs, self.column, self.columns, self.keep)}


def _parse_json(options: ParseJson, names: Sequence[str]) -> RowWise:
    mode = ", map('mode', 'FAILFAST')" if options.strict else ""
    return _parsed(names, options.columns, options.keep, f"from_json({quoted(options.column)}, {{ddl}}{mode})")


class ParseCsv(TaskConfig):
    """Parse a line of comma-separated values into columns; what does not fit becomes nulls, or an error of its row."""

    example: ClassVar[Mapping[str, Any]] = {"columns": "sensor string, temperature double"}

    column: ColumnName = Field("value", description="The column that holds the line.")
    columns: SchemaText = Field(description="The columns, in order.")
    separator: str = Field(",", min_length=1, max_length=1, description="What stands between values.")
    keep: bool = Field(False, description="Whether the other columns stay.")
    strict: bool = Field(False, description="Whether a text that does not fit is an error, which on_error deals with.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: _parsed_columns(inputs, self.column, self.columns, self.keep)}


def _parse_csv(options: ParseCsv, names: Sequence[str]) -> RowWise:
    separator = options.separator.replace("\\", "\\\\").replace("'", "\\'")
    mode = ", 'mode', 'FAILFAST'" if options.strict else ""
    call = f"from_csv({quoted(options.column)}, {{ddl}}, map('sep', '{separator}'{mode}))"
    return _parsed(names, options.columns, options.keep, call)


def _parsed_columns(inputs: Inputs, column: str, columns: str, keep: bool) -> Schema | None:
    inputs.check_columns("column", [column])
    fields = Schema.parse(columns)
    if not keep:
        return fields
    rows = inputs.rows()
    for new in fields.columns:
        rows = rows.with_column(new) if rows else None
    return rows


def _parsed(names: Sequence[str], columns: str, keep: bool, call: str) -> RowWise:
    fields = Schema.parse(columns).columns
    ddl = ", ".join(f"{quoted(field.name)} {field.type}" for field in fields).replace("\\", "\\\\").replace("'", "\\'")
    blank = ", ".join(f"'{escaped(field.name)}', cast(null as {field.type})" for field in fields)
    # What is not there to be parsed becomes a row of nulls, like what cannot be parsed.
    text = "'" + ddl + "'"
    row = f"coalesce({call.replace('{ddl}', text)}, named_struct({blank}))"
    if not keep:
        return RowWise(tuple(field.name for field in fields), row=row)
    return with_columns(names, {field.name: f"{row}.{quoted(field.name)}" for field in fields})


TYPES = (
    TaskType("parse_json", ParseJson, work=RowExpression(_parse_json)),
    TaskType("parse_csv", ParseCsv, work=RowExpression(_parse_csv)),
)
