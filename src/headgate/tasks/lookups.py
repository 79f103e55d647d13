"""Task types that look rows up elsewhere: in a set of ids, in a table of a file, in a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from headgate.model.expression import check_query
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, SchemaText, TaskConfig, TaskType

__all__ = ["TYPES", "Annotate", "BloomFilter", "JoinTable", "QueryTable"]


class BloomFilter(TaskConfig):
    """Pass the rows whose id may be in a set, by a Bloom filter over the ids of a file.

    No row of the set is lost; of the others a share passes, which is about ``false_positives``. The file has an id a
    line, and is read again when it has changed.
    """

    example: ClassVar[Mapping[str, Any]] = {"column": "source", "ids": "data/sensor_ids.txt"}

    column: ColumnName = Field(description="The column of the id.")
    ids: str = Field(min_length=1, description="Path of the file of ids.")
    false_positives: float = Field(0.01, gt=0, lt=1, description="The share of other ids that may pass.")
    nulls: tuple[ColumnName, ...] = Field(
        (), description="If given, all rows pass, and these columns are null where the id is not in the set."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("column", [self.column])
        inputs.check_columns("nulls", self.nulls)
        return {OUT: inputs.rows()}


class _FileTable(TaskConfig):
    path: str = Field(min_length=1, description="Path of the file; it is read again when it has changed.")
    columns: SchemaText = Field(description="The columns of the file, in order, the key among them.")


class Annotate(_FileTable):
    """Add what a table in a file has under the row's key.

    Each line of the file is a key and its attributes: ``key:one,two``, as in RIoTBench, or with another ``separator``
    behind the key. The first of ``columns`` is the key. Rows whose key is not there have nulls, or do not pass.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "key": "source",
        "path": "data/places.txt",
        "columns": "source string, place string, kind string",
    }

    key: ColumnName = Field(description="The column of the input that holds the key, a text.")
    separator: str = Field(":", min_length=1, max_length=1, description="What stands between key and attributes.")
    unknown: Literal["null", "drop"] = Field("null", description="What becomes of rows whose key is not there.")

    def added(self) -> Schema:
        """The attributes: every column of the table but the key."""
        return Schema(Schema.parse(self.columns).columns[1:])

    @model_validator(mode="after")
    def _has_attributes(self) -> Annotate:
        if not self.added().columns:
            raise ValueError("columns names the key alone: name the attributes too")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("key", [self.key])
        rows = inputs.rows()
        for column in self.added().columns:
            rows = rows.with_column(column) if rows else None
        return {OUT: rows}


class JoinTable(_FileTable):
    """Join a stream with a table that stands in a file, on equal keys: Spark's broadcast join.

    A row meets every row of the table that has its key. Columns that both have get ``right_`` before the table's name
    for them, except the keys.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "on": ["district"],
        "path": "data/districts.csv",
        "format": "csv",
        "columns": "district string, inhabitants bigint",
    }

    on: tuple[ColumnName, ...] = Field(min_length=1, description="The key columns, which both sides have.")
    format: Literal["csv", "json", "parquet"] = Field("csv", description="How the file is written.")
    header: bool = Field(False, description="Whether a csv file starts with a line of column names.")
    kind: Literal["inner", "left"] = Field("inner", description="Whether rows without a partner are passed on too.")

    @model_validator(mode="after")
    def _keys_are_columns(self) -> JoinTable:
        table = Schema.parse(self.columns)
        missing = [name for name in self.on if table.find(name) is None]
        if missing:
            raise ValueError(f"on names '{missing[0]}', which is not among the columns")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("on", self.on)
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        keys = {name.casefold() for name in self.on}
        added = [column for column in Schema.parse(self.columns).columns if column.name.casefold() not in keys]
        named = [Column(f"right_{c.name}" if rows.find(c.name) else c.name, c.type) for c in added]
        return {OUT: Schema((*rows.columns, *named))}


def _checked_query(text: str) -> str:
    check_query(text)
    return text


class QueryTable(TaskConfig):
    """Ask a SQL database for each row, with the row's columns as parameters; one row comes of each that is found.

    ``:name`` in the query stands for the row's column of that name. Looks up one key, or a range of rows between two.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "url": "sqlite:///trips.db",
        "query": "select distance, fare from trips where id >= :first and id < :last order by id",
        "columns": "distance double, fare double",
    }

    url: str = Field(min_length=1, description="SQLAlchemy URL of the database; SQLite and PostgreSQL are tested.")
    query: Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_checked_query)] = Field(
        description="A SELECT, with :name for the row's column of that name."
    )
    columns: SchemaText = Field(description="The columns that the query returns, in order.")
    keep: tuple[ColumnName, ...] = Field((), description="Columns of the row that go along with what is found.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("keep", self.keep)
        rows = inputs.rows()
        made = Schema(tuple(Column(name, _type_in(rows, name)) for name in self.keep))
        for column in Schema.parse(self.columns).columns:
            made = made.with_column(column)
        return {OUT: made}


def _type_in(rows: Schema | None, name: str) -> str | None:
    found = rows.find(name) if rows is not None else None
    return None if found is None else found.type


TYPES = (
    TaskType("bloom_filter", BloomFilter),
    TaskType("annotate", Annotate),
    TaskType("join_table", JoinTable),
    TaskType("query_table", QueryTable),
)
