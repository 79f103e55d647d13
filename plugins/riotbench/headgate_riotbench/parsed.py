"""What the parsers of this package share: their options, and how texts become rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, PositiveInt, model_validator

from headgate.model.schema import Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, SchemaText, TaskConfig
from headgate.model.work import BatchResult
from headgate.tasks.batch import column_of, replaced
from headgate.tasks.heavy import np, pa
from headgate_riotbench.records import Failed, typed

__all__ = ["ParserConfig", "as_bytes", "reason_of", "texts_of", "typed_columns", "without_failed"]


class ParserConfig(TaskConfig):
    """What all parsers have: the text, the columns that are made of it, and what else stays."""

    column: ColumnName = Field("value", description="The column that holds the text.")
    columns: SchemaText = Field(
        description="The fields to take out, as columns: string, double, float, int, bigint, boolean, timestamp."
    )
    required: tuple[ColumnName, ...] = Field((), description="Fields that a record must have.")
    longest: PositiveInt = Field(1_000_000, description="The most bytes that a record may have.")
    keep: bool = Field(False, description="Whether the other columns stay; the text itself does not.")

    @model_validator(mode="after")
    def _required_are_columns(self) -> ParserConfig:
        names = {column.name for column in self.made().columns}
        missing = [name for name in self.required if name not in names]
        if missing:
            raise ValueError(f"required names '{missing[0]}', which is not among the columns")
        return self

    def made(self) -> Schema:
        """The columns that are made of the text."""
        return Schema.parse(self.columns)

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        rows = inputs.rows()
        if not self.keep or rows is None:
            return {OUT: None if self.keep else self.made()}
        kept = Schema(tuple(c for c in rows.columns if c.name.casefold() != self.column.casefold()))
        for new in self.made().columns:
            kept = kept.with_column(new)
        return {OUT: kept}


def texts_of(batch: pa.RecordBatch, column: str) -> list[bytes | None]:
    return as_bytes(column_of(batch, column))


def as_bytes(texts: pa.Array) -> list[bytes | None]:
    """Texts as bytes; the parser decides whether they are UTF-8."""
    return texts.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]


def reason_of(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]!r}"
    return " ".join(str(error).split())[:200]


def typed_columns(
    rows: Sequence[Sequence[Any]], fields: Sequence[tuple[str, pa.DataType]], failed: Failed
) -> list[tuple[str, pa.Array]]:
    by_field = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    return [(name, typed(name, values, kind, failed)) for (name, kind), values in zip(fields, by_field, strict=True)]


def without_failed(
    batch: pa.RecordBatch, columns: list[tuple[str, pa.Array]], failed: Failed, options: ParserConfig
) -> BatchResult:
    """The new rows of those that did not fail."""
    arrays = replaced(batch, columns, [options.column]) if options.keep else [array for _, array in columns]
    if not failed:
        return BatchResult(arrays)
    good = np.setdiff1d(np.arange(len(batch)), np.fromiter(failed, np.int64, len(failed)))
    kept = pa.array(good)
    return BatchResult([array.take(kept) for array in arrays], good, sorted(failed.items()))
