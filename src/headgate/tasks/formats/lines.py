"""Bytes of a file as Arrow rows: JSON lines, comma-separated values and lines of text.

Arrow's own readers do it, many times as fast as anything that handles lines one by one. They are strict. What they
refuse is read line by line (:mod:`headgate.tasks.formats.values`), some megabytes at a time.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from headgate.tasks.formats.values import from_json, from_text

__all__ = ["BrokenLine", "Parse", "csv_lines", "json_lines", "text_lines"]

REFUSED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError)

MISFIT = "changed from"
"""What Arrow says of JSON whose values are of another type than the column's."""

SMALL = 16_384
"""Bytes that are read line by line if Arrow refuses them; more of them are cut up first."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

TRUE, FALSE = ["true", "TRUE", "True"], ["false", "FALSE", "False"]


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line that is no record."""

    line: int
    """Counted from 0, from the first of the bytes."""

    text: str
    reason: str


Parsed = tuple[pa.RecordBatch, Sequence[BrokenLine]]

Parse = Callable[[bytes, pa.Schema], Parsed]
"""From whole lines, and the columns that are wanted, to rows and the lines that are none."""


def text_lines(lines: bytes, schema: pa.Schema) -> Parsed:
    """Each line is a row, also one that is not UTF-8: whoever reads it may know better.

    >>> text_lines(b"a\\n\\nb\\r\\n", pa.schema([("value", pa.string())]))[0].column(0).to_pylist()
    ['a', '', 'b']
    """
    plain = lines.removeprefix(BYTE_ORDER_MARK)
    if b"\r" in plain:
        plain = plain.replace(b"\r\n", b"\n")
    values = pc.split_pattern(pa.array([plain], pa.binary()), b"\n").values
    values = values[: len(values) - plain.endswith(b"\n")] if plain else values[:0]
    texts = pc.cast(values, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))
    return pa.RecordBatch.from_arrays([texts], schema=schema), ()


def json_lines(lines: bytes, schema: pa.Schema) -> Parsed:
    """Each line is an object with the columns as fields, or a list of such objects.

    >>> rows, broken = json_lines(b'{"a": 1}\\n{"a\\n{"a": "x"}\\n', pa.schema([("a", pa.int64())]))
    >>> rows.column(0).to_pylist(), broken[0].line, broken[0].reason
    ([1, None], 1, 'unexpected end of data: line 1 column 4 (char 3)')
    """
    plain = lines.removeprefix(BYTE_ORDER_MARK)
    try:
        return _json_at_once(plain, schema), ()
    except REFUSED as error:
        if MISFIT in str(error):
            return _piecewise(plain, schema, _json_at_once, _json_one_by_one)
    # Mostly a few lines are broken; without them Arrow takes the others.
    some, broken = plain.split(b"\n"), list(_broken_lines(plain))
    for one in broken:
        some[one.line] = b""
    rows, others = _piecewise(b"\n".join(some), schema, _json_at_once, _json_one_by_one)
    return rows, sorted([*broken, *others], key=lambda one: one.line)


def _json_at_once(lines: bytes, schema: pa.Schema) -> pa.RecordBatch:
    if not lines.strip():
        return _empty(schema)
    if not _is_utf8(lines):  # Arrow would not notice
        raise pa.ArrowInvalid("not UTF-8")
    asked = pa.schema([(field.name, _asked(field.type)) for field in schema])
    table = pyarrow.json.read_json(
        pa.BufferReader(lines),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=asked, unexpected_field_behavior="ignore"),
    )
    if len(table) > lines.count(b"\n") + (not lines.endswith(b"\n")):
        raise pa.ArrowInvalid("several objects in a line")
    return _cast(table, schema)


def _asked(kind: pa.DataType) -> pa.DataType:
    """What Arrow is asked for in the place of a type that it does not read, or not as Spark does."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us")  # Arrow heeds a zone in the text, and takes UTC if there is none
    if pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _asked_inside(field.type)) for field in kind])
    return _asked_inside(kind)


def _asked_inside(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_binary(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_map(kind):
        raise pa.ArrowNotImplementedError("read line by line")
    inside = [kind.value_type] if pa.types.is_list(kind) else list(kind) if pa.types.is_struct(kind) else []
    for one in inside:
        _asked_inside(one.type if isinstance(one, pa.Field) else one)
    return kind


def _json_one_by_one(lines: bytes, schema: pa.Schema) -> Parsed:
    broken = list(_broken_lines(lines))
    left_out = {one.line for one in broken}
    objects: list[dict[str, Any]] = []
    for at, line in enumerate(lines.split(b"\n")):
        if line.strip() and at not in left_out:
            value = _value(line)
            objects += value if isinstance(value, list) else [value]
    return _batch([[each.get(name) for each in objects] for name in schema.names], schema, from_json), broken


def _broken_lines(lines: bytes) -> Iterator[BrokenLine]:
    for at, line in enumerate(lines.split(b"\n")):
        reason = _fault_of(line)
        if reason is not None:
            yield BrokenLine(at, line.decode(errors="replace"), reason)


def _fault_of(line: bytes) -> str | None:
    """Why a line is no object, and no list of objects."""
    try:
        value = _value(line) if line.strip() else []
    except (ValueError, RecursionError) as error:
        return str(error)
    is_read = isinstance(value, dict) or (isinstance(value, list) and all(isinstance(each, dict) for each in value))
    return None if is_read else "not a JSON object"


def _value(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if b"NaN" in line or b"Infinity" in line or "infinity" in str(error):  # Spark reads them
            return json.loads(line)
        raise


def csv_lines(lines: bytes, schema: pa.Schema) -> Parsed:
    """Each line is a row; values are in the order of the columns. What is missing is null, what is too much is ignored.

    >>> csv_lines(b'1,a\\nx,"b,c"\\n3\\n', pa.schema([("i", pa.int64()), ("s", pa.string())]))[0].to_pylist()
    [{'i': 1, 's': 'a'}, {'i': None, 's': 'b,c'}, {'i': 3, 's': None}]
    """
    return _piecewise(_utf8(lines), schema, _csv_at_once, _csv_one_by_one)


def _csv_one_by_one(lines: bytes, schema: pa.Schema) -> Parsed:
    try:
        table = _csv_table(lines, schema, dict.fromkeys(schema.names, pa.string()))
        return _batch([column.to_pylist() for column in table.columns], schema, from_text), ()
    except REFUSED:  # lines with fewer values, or with more
        pass
    wide = len(schema)
    texts = [line for line in lines.decode().splitlines() if line.strip()]
    rows = [[value or None for value in row] + [None] * wide for row in csv.reader(texts, escapechar="\\")]
    return _batch([[row[at] for row in rows] for at in range(wide)], schema, from_text), ()


def _csv_at_once(lines: bytes, schema: pa.Schema) -> pa.RecordBatch:
    if not lines.strip():
        return _empty(schema)
    kinds = {f.name: pa.timestamp("us") if pa.types.is_timestamp(f.type) else f.type for f in schema}
    return _cast(_csv_table(lines, schema, kinds), schema)


def _csv_table(lines: bytes, schema: pa.Schema, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    return pyarrow.csv.read_csv(
        pa.BufferReader(lines),
        read_options=pyarrow.csv.ReadOptions(column_names=schema.names, use_threads=False, block_size=len(lines) + 1),
        parse_options=pyarrow.csv.ParseOptions(escape_char="\\"),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=kinds,
            null_values=[""],
            true_values=TRUE,
            false_values=FALSE,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _piecewise(
    lines: bytes, schema: pa.Schema, at_once: Callable[[bytes, pa.Schema], pa.RecordBatch], one_by_one: Parse
) -> Parsed:
    """Lines by Arrow's reader; those around what it refuses, one by one."""
    try:
        return at_once(lines, schema), ()
    except REFUSED:
        if len(lines) < SMALL or lines.count(b"\n") < 2:
            return one_by_one(lines, schema)
    batches, broken, first = [], [], 0
    for piece in _pieces(lines):
        rows, others = _piecewise(piece, schema, at_once, one_by_one)
        batches.append(rows)
        broken += [replace(other, line=first + other.line) for other in others]
        first += piece.count(b"\n")
    return pa.concat_batches(batches), broken


def _pieces(lines: bytes) -> Iterator[bytes]:
    """Whole lines, in some pieces."""
    begin = 0
    while begin < len(lines):
        end = lines.find(b"\n", begin + len(lines) // 16) + 1 or len(lines)
        yield lines[begin:end]
        begin = end


def _batch(
    columns: Sequence[Sequence[Any]], schema: pa.Schema, convert: Callable[[pa.DataType], Callable[[Any], Any]]
) -> pa.RecordBatch:
    """Values as rows, converted one by one."""
    arrays = []
    for values, field in zip(columns, schema, strict=True):
        make = convert(field.type)
        arrays.append(pa.array([make(value) for value in values], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [table.column(f.name).combine_chunks().cast(f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _utf8(lines: bytes) -> bytes:
    """The same bytes, with what is not UTF-8 replaced."""
    plain = lines.removeprefix(BYTE_ORDER_MARK)
    return plain if _is_utf8(plain) else plain.decode(errors="replace").encode()


def _is_utf8(lines: bytes) -> bool:
    try:
        return lines.isascii() or bool(lines.decode())
    except UnicodeDecodeError:
        return False
