"""Rows into PostgreSQL in bulk: COPY of comma-separated values, which Arrow writes without a Python object for each."""

from __future__ import annotations

import json
from typing import Any

from headgate.tasks.heavy import pa

__all__ = ["copy_rows"]


def copy_rows(connection: Any, table: str, rows: pa.Table) -> None:
    """Add rows to a table, within the transaction of a connection of SQLAlchemy over psycopg."""
    if not len(rows):
        return
    quote = connection.dialect.identifier_preparer.quote
    columns = ", ".join(quote(name) for name in rows.schema.names)
    statement = f"copy {quote(table)} ({columns}) from stdin with (format csv)"
    with connection.connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(csv_of(rows))


def csv_of(rows: pa.Table) -> pa.Buffer:
    """Rows as PostgreSQL reads them: nothing is null, texts are quoted, bytes are hexadecimal, the rest is JSON.

    >>> csv_of(pa.table({"a": [1, None], "b": ["x", ""], "c": [b"\\x01", None], "d": [[1], None]})).to_pybytes()
    b'1,"x","\\\\x01","[1]"\\n,"",,\\n'
    """
    plain = pa.table({name: _plain(rows.column(name)) for name in rows.schema.names})
    sink = pa.BufferOutputStream()
    from pyarrow import csv

    csv.write_csv(plain, sink, csv.WriteOptions(include_header=False))
    return sink.getvalue()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_binary(kind):
        values = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
        return pa.chunked_array([pa.array(values, pa.string())])
    if pa.types.is_nested(kind):
        texts = [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return column
