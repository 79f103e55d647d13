"""Rows as records: keys, values and headers, in bytes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from headgate.tasks.heavy import orjson, pa

__all__ = ["record_columns"]

Bytes = bytes | None


def record_columns(
    batch: pa.RecordBatch, key: str | None, value: str | None, headers: Sequence[str]
) -> tuple[list[Bytes], list[Bytes], list[list[tuple[str, Bytes]]]]:
    """The keys, values and headers of the rows of a batch.

    >>> rows = pa.record_batch({"k": ["a", None], "n": [1, 2]})
    >>> record_columns(rows, "k", None, ["n"])
    ([b'a', None], [b'{"k":"a","n":1}', b'{"n":2}'], [[('n', b'1')], [('n', b'2')]])
    """
    none: list[Bytes] = [None] * len(batch)
    keys = none if key is None else _bytes(batch.column(key))
    values = _objects(batch) if value is None else _bytes(batch.column(value))
    columns = [_bytes(batch.column(name)) for name in headers]
    named = [list(zip(headers, row, strict=True)) for row in zip(*columns, strict=True)]
    return keys, values, named or [[] for _ in range(len(batch))]


def _bytes(column: pa.Array) -> list[Bytes]:
    """Texts and bytes as they are, anything else as JSON has it."""
    if pa.types.is_binary(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_string(column.type):
        return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
    return [None if value is None else _json(value).strip(b'"') for value in column.to_pylist()]


def _objects(batch: pa.RecordBatch) -> list[Bytes]:
    """Rows as JSON objects, without fields that are null."""
    names = batch.schema.names
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return [_json({n: v for n, v in zip(names, row, strict=True) if v is not None}) for row in rows]


def _json(value: Any) -> bytes:
    return orjson.dumps(value, default=_other, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)


def _other(value: Any) -> object:
    """What JSON has no word for, as Spark writes it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
