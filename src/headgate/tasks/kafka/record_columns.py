"""Rows as records: keys, values and headers, in bytes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from headgate.tasks.heavy import orjson, pa, pc

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
    return keys, values, named


def _bytes(column: pa.Array) -> list[Bytes]:
    """Texts and bytes as they are, anything else as JSON has it."""
    if pa.types.is_binary(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_string(column.type):
        return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
    return [None if value is None else _json(value).strip(b'"') for value in column.to_pylist()]


def _objects(batch: pa.RecordBatch) -> list[Bytes]:
    """Rows as JSON objects, without fields that are null."""
    if batch.num_columns and len(batch):
        texts = [_json_texts(column) for column in batch.columns]
        if all(text is not None for text in texts):
            return _joined(batch.schema.names, texts)
    names = batch.schema.names
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return [_json({n: v for n, v in zip(names, row, strict=True) if v is not None}) for row in rows]


def _joined(names: Sequence[str], texts: Sequence[Any]) -> list[Bytes]:
    """Objects of columns that are JSON already, put together a column at a time."""
    pieces = [
        pc.fill_null(pc.binary_join_element_wise(f",{_json(name).decode()}:", text, ""), "")
        for name, text in zip(names, texts, strict=True)
    ]
    objects = pc.binary_join_element_wise("{", *pieces, "}", "")
    # A first field is preceded by a comma, as the others are.
    plain = pc.replace_substring(objects, "{,", "{", max_replacements=1)
    return plain.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]


def _json_texts(column: pa.Array) -> Any:
    """The values of a column as JSON; ``None`` where that needs a look at each."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_string(kind):
        escaped = pc.any(pc.match_substring_regex(column, SPECIAL)).as_py()
        return None if escaped else pc.binary_join_element_wise('"', column, '"', "")
    if pa.types.is_floating(kind) and pc.all(pc.is_finite(column)).as_py() is not False:
        texts = column.cast(pa.string())
        whole = pc.invert(pc.match_substring_regex(texts, "[.e]"))
        return pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    return None


SPECIAL = r'["\\\x00-\x1f]'
"""Characters that have to be escaped in JSON."""


def _json(value: Any) -> bytes:
    return orjson.dumps(value, default=_other, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)


def _other(value: Any) -> object:
    """What JSON has no word for, as Spark writes it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
