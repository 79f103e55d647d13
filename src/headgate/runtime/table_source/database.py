"""SQL tables as sources: what comes after a value of the column that grows.

A database may make rows visible in another order than that of their numbers: a transaction takes a number, another
takes the next one and is committed first. What is taken as read must never get a row in its midst. SQLite has one
writer at a time. In PostgreSQL a source waits as CREATE INDEX CONCURRENTLY does, and blocks nobody: a transaction holds
a lock on the table from before its first row takes a number until it has ended, so once all that held one when a number
was seen are gone, nothing comes below that number.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from headgate.model.schema import Schema
from headgate.runtime.io.position_source import PART_ROWS
from headgate.runtime.table_source.driver import BrokenRow, GrowingTable, Look, Position, TableRows
from headgate.runtime.table_source.postgres_rows import copied_rows, sent
from headgate.tasks.database.connection import database, is_postgresql
from headgate.tasks.database.read import ReadTable
from headgate.tasks.database.values import rows_of
from headgate.tasks.row_errors import SourceAwayError, UnreadableSourceError

__all__ = ["PostgresTable", "SqlTable", "sql_table"]

COUNTED = 1_000_000
"""Rows that wait are counted up to so many."""

AT_ONCE = 20_000
"""Rows that are handed over together."""

SAID_AFTER_S = 5.0
"""How long writers may keep rows waiting before that is said."""

Part = tuple[Any, Any]
"""The value after which it begins, and the one with which it ends."""


def sql_table(options: ReadTable) -> GrowingTable:
    """The table of a task."""
    return PostgresTable(options) if is_postgresql(database(options.url)) else SqlTable(options)


@dataclass(slots=True)
class SqlTable:
    """A table of any database that SQLAlchemy knows. Positions have the value of the last row under ``by``."""

    options: ReadTable
    _table: Any = field(init=False)
    _by: Any = field(init=False)

    def __post_init__(self) -> None:
        schema, _, name = self.options.table.rpartition(".")
        names = Schema.parse(self.options.columns).names
        self._table = sa.table(name, *(sa.column(one) for one in names), schema=schema or None)
        self._by = next(one for one in self._table.c if one.name.casefold() == self.options.by.casefold())

    def first(self) -> Position:
        start = self.options.start
        if start == "earliest":
            return {"by": None}
        with self._asking() as connection:
            return {"by": self._newest(connection) if start == "now" else start}

    def look(self, at: Position, rows: int) -> Look:
        with self._asking() as connection:
            highest, waits = self._settled(connection)
            if highest is None:
                return Look(at, 0, 0, waits)
            count, last = self._count(connection, at["by"], highest, COUNTED)
            if not count:
                return Look(at, 0, 0, waits)
            taken = count
            if count > rows:  # those that equal the last one come with it
                _, last = self._count(connection, at["by"], highest, rows)
                taken, _ = self._count(connection, at["by"], last, COUNTED)
            return Look({"by": last}, taken, count - taken, waits)

    def parts(self, start: Position, end: Position, most: int) -> Sequence[Part]:
        low, high = start["by"], end["by"]
        with self._asking() as connection:
            count, _ = self._count(connection, low, high, COUNTED)
            number = min(most, math.ceil(count / PART_ROWS))
            size = math.ceil(count / max(number, 1))
            cuts = [self._count(connection, low, high, size * n)[1] for n in range(1, number)]
        return [span for span in pairwise([low, *cuts, high]) if span[0] != span[1]]

    def read(self, part: Part, schema: pa.Schema) -> Iterator[TableRows]:
        with self._asking() as connection:
            columns = [self._selected(field) for field in schema]
            query = sa.select(*columns).where(self._between(*part)).order_by(self._by)
            for some in connection.execution_options(yield_per=AT_ONCE).execute(query).partitions():
                yield _converted(self.options.table, [tuple(row) for row in some], schema)

    # what the database says

    def _settled(self, connection: Any) -> tuple[Any, str | None]:
        """The highest value below which nothing is still to come, and why it is not the highest that there is."""
        return self._newest(connection), None

    def _newest(self, connection: Any) -> Any:
        return connection.execute(sa.select(self._as_json(sa.func.max(self._by)))).scalar()

    def _count(self, connection: Any, low: Any, high: Any, most: int) -> tuple[int, Any]:
        """How many rows are between two values, counted up to some number, and the value of the last one counted."""
        some = sa.select(self._by).where(self._between(low, high)).order_by(self._by).limit(most).subquery()
        last = self._as_json(sa.func.max(some.c[self._by.name]))
        count, value = connection.execute(sa.select(sa.func.count(), last).select_from(some)).one()
        return int(count), value

    def _between(self, low: Any, high: Any) -> Any:
        """The condition for rows after a value, up to another; ``None`` is before all."""
        upper = self._by <= self._value(high)
        return upper if low is None else sa.and_(self._by > self._value(low), upper)

    def _as_json(self, value: Any) -> Any:
        """A value of the column as JSON can carry it."""
        return value

    def _value(self, stored: Any) -> Any:
        """A value that JSON has carried, as one of the column."""
        return stored

    def _selected(self, column: pa.Field) -> Any:
        """A column in the form in which :func:`rows_of` takes it."""
        return self._table.c[column.name]

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        """A connection; what it raises says whether the database is away, or does not have what is asked for."""
        try:
            with database(self.options.url).connect() as connection:
                yield connection
        except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
            raise SourceAwayError(f"the database does not answer ({_reason(error)})") from None
        except sa.exc.SQLAlchemyError as error:
            raise UnreadableSourceError(f"table {self.options.table}: {_reason(error)}") from None


LOCKS = """
select virtualtransaction from pg_locks
where locktype = 'relation' and granted and database = (select oid from pg_database where datname = current_database())
  and mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  and relation in (select to_regclass(:name) union all select relid from pg_partition_tree(to_regclass(:name)))
"""
"""The transactions that may have written to a table, or to a partition of it, and have not ended."""


@dataclass(slots=True)
class PostgresTable(SqlTable):
    """A table of PostgreSQL. Positions have values as texts; workers get rows by COPY."""

    _type: Any = None
    """The type of the column that grows."""

    _seen: Any = None
    """A highest value that was seen, ..."""

    _writers: frozenset[str] = frozenset()
    """... the transactions that may have written below it and had not ended ..."""

    _since: float = 0.0
    """... and when that was."""

    _highest: Any = field(default=None)

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        with SqlTable._asking(self) as connection:
            connection.exec_driver_sql("set local datestyle = 'ISO'")  # whatever the server's, or the user's, is
            yield connection

    def _settled(self, connection: Any) -> tuple[Any, str | None]:
        newest = self._newest(connection)  # before the writers are asked for
        writers = frozenset(connection.execute(sa.text(LOCKS), {"name": self._quoted_table}).scalars())
        if self._seen is not None and not self._writers & writers:
            self._highest, self._seen = self._seen, None
        if not writers:
            self._highest, self._seen = newest, None
        elif self._seen is None:
            self._seen, self._writers, self._since = newest, writers, time.monotonic()
        if self._seen is not None and time.monotonic() - self._since > SAID_AFTER_S:
            count = len(self._writers & writers)
            return self._highest, f"writers of '{self.options.table}' have not ended their transactions ({count})"
        return self._highest, None

    @property
    def _quoted_table(self) -> str:
        return str(database(self.options.url).dialect.identifier_preparer.format_table(self._table))

    def _as_json(self, value: Any) -> Any:
        return sa.cast(value, sa.Text)

    def _value(self, stored: Any) -> Any:
        if self._type is None:
            schema, _, name = self.options.table.rpartition(".")
            with self._asking() as connection:
                there = sa.inspect(connection).get_columns(name, schema or None)
            self._type = next(column["type"] for column in there if column["name"] == self._by.name)
        return sa.cast(sa.literal(str(stored), sa.Text), self._type)

    def _selected(self, column: pa.Field) -> Any:
        value = self._table.c[column.name]
        return value if pa.types.is_binary(column.type) else sa.cast(value, sa.Text)

    def read(self, part: Part, schema: pa.Schema) -> Iterator[TableRows]:
        import psycopg

        try:
            with self._asking() as connection:
                columns = [sent(self._table.c[field.name], field.type) for field in schema]
                query = sa.select(*columns).where(self._between(*part)).order_by(self._by)
                rows = list(copied_rows(connection, query, schema))
        except psycopg.OperationalError as error:
            raise SourceAwayError(f"the database does not answer ({_reason(error)})") from None
        except (psycopg.DataError, pa.ArrowInvalid):  # some value does not fit its column: each is looked at
            yield from SqlTable.read(self, part, schema)
            return
        except psycopg.Error as error:
            raise UnreadableSourceError(f"table {self.options.table}: {_reason(error)}") from None
        yield from map(TableRows, rows)


def _converted(table: str, values: Sequence[Sequence[Any]], schema: pa.Schema) -> TableRows:
    """Rows of values, and those of them that do not fit the columns."""
    rows, broken = rows_of(values, schema)
    letters = (BrokenRow(repr(tuple(values[place])), f"table {table}: {reason}") for place, reason in broken)
    return TableRows(rows, tuple(letters))


def _reason(error: Any) -> str:
    return " ".join(str(getattr(error, "orig", None) or error).split())[:300]
