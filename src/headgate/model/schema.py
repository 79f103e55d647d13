"""The columns that a stream's rows have, as far as they are known before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from headgate.errors import BadValue
from headgate.model.sql_type import columns_of_type, quoted, sql_type

__all__ = ["MOST_COLUMNS", "Column", "Schema"]

_NAMED = re.compile(r"\s*(\w+|`[^`]*`)(\s+\w|\s*[:,])")
"""How a text begins that was meant to name columns, rather than to be a type."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; its type is Spark SQL's, or ``None`` if it is unknown before running."""

    name: str
    type: str | None = None


MOST_COLUMNS = 1_000
"""Spark's time for a plan grows with its columns, and all that share a fragment wait for it."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream, in order. Names are compared without regard to case, as Spark does."""

    columns: tuple[Column, ...]

    @classmethod
    def parse(cls, text: str) -> Schema:
        """Read ``"id string, v double"``, or a single type for rows of one column called ``value``.

        >>> Schema.parse("id string, v long")
        Schema(columns=(Column(name='id', type='string'), Column(name='v', type='bigint')))
        >>> print(Schema.parse("string"))
        value string
        >>> Schema.parse("id string, ID long")
        Traceback (most recent call last):
            ...
        headgate.errors.BadValue: column 'ID' is there twice
        """
        try:
            columns = columns_of_type(text)
        except BadValue as no_columns:
            try:
                columns = (("value", sql_type(text)),)
            except BadValue as no_type:
                raise (no_columns if _NAMED.match(text) else no_type) from None
        if len(columns) > MOST_COLUMNS:
            raise BadValue(f"{len(columns):,} columns are too many", f"at most {MOST_COLUMNS:,}")
        schema = cls(tuple(Column(name, kind) for name, kind in columns))
        seen: set[str] = set()
        for column in schema.columns:
            if column.name.casefold() in seen:
                raise BadValue(f"column '{column.name}' is there twice", "each column once, in whatever case")
            seen.add(column.name.casefold())
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __str__(self) -> str:
        return ", ".join(f"{quoted(column.name)} {column.type or '?'}" for column in self.columns)

    def find(self, name: str) -> Column | None:
        """The column of that name, in whatever case."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)

    def with_column(self, column: Column) -> Schema:
        """This schema with a column replaced in place, or added at the end.

        >>> print(Schema.parse("a int, b int").with_column(Column("A", "string")).with_column(Column("c")))
        A string, b int, c ?
        """
        folded = column.name.casefold()
        if self.find(column.name) is None:
            return Schema((*self.columns, column))
        return Schema(tuple(column if old.name.casefold() == folded else old for old in self.columns))

    def without(self, names: Iterable[str]) -> Schema:
        """This schema without some columns, named in whatever case."""
        gone = {name.casefold() for name in names}
        return Schema(tuple(column for column in self.columns if column.name.casefold() not in gone))

    def joined(self, right: Schema, keys: Iterable[str]) -> Schema:
        """The columns of rows joined on equal keys: where both have one, the right one's name begins with ``right_``.

        >>> print(Schema.parse("k int, a int").joined(Schema.parse("K int, a string, b int"), ["k"]))
        k int, a int, right_a string, b int
        """
        added = right.without(keys).columns
        return Schema(
            (*self.columns, *(Column(f"right_{c.name}" if self.find(c.name) else c.name, c.type) for c in added))
        )
