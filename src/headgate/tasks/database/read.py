"""The task type ``read_table``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, PositiveInt, field_validator, model_validator

from headgate.errors import InputError
from headgate.model.schema import Schema
from headgate.model.task_type import OUT, SOURCE, ColumnName, Inputs, SchemaText, TaskConfig, TaskType
from headgate.model.touching import ReadPath
from headgate.model.work import RowLimit, SourceContext, SourceWork
from headgate.tasks.database.connection import absolute_url, check_database, database
from headgate.tasks.table_reader import own_time, read_stream, reader_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["READ_TABLE", "ReadTable"]

NESTED = ("array", "map", "struct", "variant", "interval")


class ReadTable(TaskConfig):
    """Read the rows of a SQL table, and those that are added, in the order of a column that only grows.

    Each new row must have a greater value in the column ``by`` than all rows that were there: a serial number, or a
    time at which rows are written. Rows without a value there are not read. A row that is changed is read again if its
    value grows; that rows are removed is not seen.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "url": "postgresql+psycopg://app@db/shop",
        "table": "orders",
        "by": "id",
        "columns": "id bigint, customer bigint, amount double, at timestamp",
    }

    url: ReadPath = Field(min_length=1, description="SQLAlchemy URL of the database; SQLite and PostgreSQL are tested.")
    table: str = Field(
        min_length=1, max_length=200, description="The table, in PostgreSQL also with its schema: shop.orders."
    )
    by: ColumnName = Field(description="The column that only grows; it should have an index.")
    columns: SchemaText = Field(description="The columns to read, by their names; JSON and the like as string.")
    start: str | int = Field(
        "earliest", description="Where to begin: earliest, now, or a value of by, after which rows are read."
    )
    rows_per_batch: PositiveInt = Field(
        1_000_000, description="At most so many rows in one micro-batch, and those that equal the last one in by."
    )

    @field_validator("columns")
    @classmethod
    def _columns_are_plain(cls, columns: str) -> str:
        for column in Schema.parse(columns).columns:
            if str(column.type).startswith(NESTED):
                raise ValueError(f"column '{column.name}' is of type {column.type}; read it as string, parse it later")
        return columns

    @model_validator(mode="after")
    def _by_is_read(self) -> ReadTable:
        if Schema.parse(self.columns).find(self.by) is None:
            raise ValueError(f"by names '{self.by}', which is not among the columns")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: Schema.parse(self.columns)}


def _read(options: ReadTable, context: SourceContext) -> DataFrame:
    return read_stream("read_table", _here(options), context, lambda: _check(options))


def _check(options: ReadTable) -> None:
    """Raise :class:`InputError` if the table is not there, or lacks a column."""
    import sqlalchemy as sa

    check_database(options.url, "SOURCE_UNREADABLE")
    schema, _, name = options.table.rpartition(".")
    try:
        inspector = sa.inspect(database(options.url))
        if not inspector.has_table(name, schema or None):
            message = f"no table '{options.table}' in the database; make it, or correct the name"
            raise InputError("SOURCE_NOT_THERE", message)
        there = {str(column["name"]) for column in inspector.get_columns(name, schema or None)}
    except sa.exc.SQLAlchemyError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError("SOURCE_UNREADABLE", f"the database cannot be asked: {reason}") from None
    for wanted in Schema.parse(options.columns).names:
        if wanted not in there:
            message = f"table '{options.table}' has no column '{wanted}'; it has {', '.join(sorted(there))}"
            raise InputError("SOURCE_UNREADABLE", message)


def _options(options: ReadTable, context: SourceContext) -> dict[str, str]:
    return reader_options("read_table", _here(options), context)


def _here(options: ReadTable) -> ReadTable:
    return options.model_copy(update={"url": absolute_url(options.url)})


READ_TABLE = TaskType(
    "read_table",
    ReadTable,
    SOURCE,
    work=SourceWork(
        _read, own_time, RowLimit.HOT, by_row=True, begins="earliest", splits=_options, reader="headgate_tables"
    ),
)
