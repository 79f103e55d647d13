"""Rows out of PostgreSQL in bulk: COPY of comma-separated values, which Arrow reads without an object for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv
import sqlalchemy as sa

__all__ = ["copied_rows", "sent"]

CHUNK = 2_000_000
"""Bytes that are read at once."""


def copied_rows(connection: Any, query: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a query for columns that are :func:`sent`, within the transaction of a connection."""
    literal = str(query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True}))
    literal = literal.replace("%%", "%")  # no parameters are left to mark
    with connection.connection.cursor() as cursor, cursor.copy(f"copy ({literal}) to stdout (format csv)") as copy:
        gathered: list[bytes] = []
        size = 0
        for row in copy:
            gathered.append(bytes(row))
            size += len(gathered[-1])
            if size >= CHUNK:
                yield _parsed(b"".join(gathered), schema)
                gathered, size = [], 0
        if gathered:
            yield _parsed(b"".join(gathered), schema)


def sent(column: Any, kind: pa.DataType) -> Any:
    """A column in the form in which it is sent."""
    if pa.types.is_timestamp(kind):
        return sa.cast(sa.extract("epoch", column) * 1_000_000, sa.BigInteger)
    if pa.types.is_binary(kind):
        return sa.func.encode(column, sa.literal("hex", sa.Text))
    known: list[tuple[Any, Any]] = [
        (pa.types.is_boolean, sa.Boolean()),
        (pa.types.is_integer, sa.BigInteger()),
        (pa.types.is_floating, sa.Double()),
        (pa.types.is_decimal, sa.Numeric(getattr(kind, "precision", None), getattr(kind, "scale", None))),
        (pa.types.is_date, sa.Date()),
    ]
    return sa.cast(column, next((of for test, of in known if test(kind)), sa.Text()))


def _parsed(text: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of comma-separated values as PostgreSQL writes them: null is nothing, an empty text has its quotes."""
    types = {field.name: _arriving(field.type) for field in schema}
    table = pyarrow.csv.read_csv(
        pa.BufferReader(text),
        pyarrow.csv.ReadOptions(column_names=schema.names, block_size=len(text) + 1, use_threads=False),
        pyarrow.csv.ParseOptions(newlines_in_values=True),
        pyarrow.csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    columns = [_final(table.column(field.name).combine_chunks(), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _arriving(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.string() if pa.types.is_binary(kind) else kind


def _final(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):
        return pa.array([None if text is None else bytes.fromhex(text) for text in column.to_pylist()], kind)
    return column if column.type == kind else column.cast(kind)
