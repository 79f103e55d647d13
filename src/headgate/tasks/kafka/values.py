"""The values of records as Arrow rows, one row a record; and which records have none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.tasks.database.values import rows_of
from headgate.tasks.formats.lines import Parse, csv_lines, json_lines
from headgate.tasks.row_errors import UnreadableSourceError, error_text

__all__ = ["Decode", "Decoded", "ReadValue", "decoder"]

Value = bytes | None


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of some values, in order, and the places of values that have none, with why."""

    rows: pa.RecordBatch
    broken: tuple[tuple[int, str], ...] = ()


Decode = Callable[[Sequence[Value]], Decoded]
ReadValue = Callable[[bytes], Any]
"""From a value to its fields by name; raises whatever its library does for one that cannot be read."""


def decoder(form: str, schema: pa.Schema, read: ReadValue | None = None) -> Decode:
    """What reads values of a format; ``read`` reads a single one, where only its schema says how.

    >>> read = decoder("json", pa.schema([("a", pa.int64())]))
    >>> decoded = read([b'{"a": 1}', b"[]", None, b'{"a": 2}'])
    >>> decoded.rows.column(0).to_pylist(), decoded.broken
    ([1, None, 2], ((1, 'not a JSON object'),))
    """
    if read is not None:
        return lambda values: _each(values, schema, read)
    if form in ("bytes", "text"):
        return lambda values: _as_they_are(values, schema)
    return lambda values: _lines(values, schema, form)


def _as_they_are(values: Sequence[Value], schema: pa.Schema) -> Decoded:
    column = pa.array(values, pa.binary())
    kind = schema.field(0).type
    if kind != column.type:
        column = pa.compute.cast(column, options=pa.compute.CastOptions(kind, allow_invalid_utf8=True))
    return Decoded(pa.RecordBatch.from_arrays([column], schema=schema))


def _each(values: Sequence[Value], schema: pa.Schema, read: ReadValue) -> Decoded:
    """Values that are read one after the other; a field that a column is named after may be written in another case."""
    wanted = [name.casefold() for name in schema.names]
    read_rows: list[list[Any]] = []
    places: list[int] = []
    broken: dict[int, str] = {}
    for place, value in enumerate(values):
        try:
            fields = {} if value is None else {name.casefold(): one for name, one in read(value).items()}
        except UnreadableSourceError:
            raise
        except Exception as error:  # what a library raises for bytes that are no value is anybody's guess
            broken[place] = error_text(error)
            continue
        read_rows.append([fields.get(name) for name in wanted])
        places.append(place)
    rows, unfit = rows_of(read_rows, schema)
    broken |= {places[at]: reason for at, reason in unfit}
    return Decoded(rows, tuple(sorted(broken.items())))


EMPTY = {"json": b"{}", "csv": b","}
"""What stands for a record without a value, which deletes the one before it: a row of nulls."""


def _lines(values: Sequence[Value], schema: pa.Schema, form: str) -> Decoded:
    """Values as lines of one text, so that they are parsed together."""
    broken: dict[int, str] = {}
    lines = [EMPTY[form] if value is None else value for value in values]
    if form == "json":
        for place, line in enumerate(lines):
            if line[:1] != b"{" and line.lstrip()[:1] != b"{":
                broken[place], lines[place] = "not a JSON object", b""
    else:
        for place, line in enumerate(lines):
            if not line.strip():
                broken[place] = "empty"
    text = b"\n".join(lines)
    if text.count(b"\n") != len(lines) - 1:
        if form == "csv":
            return _one_by_one(values, schema, form)
        text = b"\n".join([line.replace(b"\n", b" ") for line in lines])
    parse: Parse = json_lines if form == "json" else csv_lines
    rows, unread = parse(text, schema)
    broken |= {one.line: one.reason for one in unread}
    if len(rows) + len(broken) != len(values):
        return _one_by_one(values, schema, form)
    return Decoded(rows, tuple(sorted(broken.items())))


def _one_by_one(values: Sequence[Value], schema: pa.Schema, form: str) -> Decoded:
    """Values that do not stand in a line each."""
    parse: Parse = json_lines if form == "json" else csv_lines
    some: list[Any] = []
    broken: list[tuple[int, str]] = []
    for place, value in enumerate(values):
        rows, unread = parse(EMPTY[form] if value is None else value, schema)
        if len(rows) == 1 and not unread:
            some.append(rows)
        else:
            broken.append((place, unread[0].reason if unread else f"{len(rows)} rows, not one"))
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    return Decoded(pa.concat_batches(some) if some else empty, tuple(broken))
