"""Recorded rows as an Arrow table: what the replayer plays.

A file is read whole by Arrow's own readers. Where they refuse, because a record is corrupt or a time is written in
another way, the file is read line by line instead: what cannot be understood becomes null, as it does when Spark reads.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.tasks.sources import Replay

__all__ = ["recorded"]


@lru_cache(maxsize=4)
def recorded(task: str, columns: str) -> pa.Table:
    """The rows of a replay task, with its columns; both are given as JSON, the form in which workers get them."""
    options = Replay.model_validate_json(task)
    if options.format == "text":
        return pa.table({"value": pa.array(_lines(options.path), pa.string())})
    schema = to_arrow_schema(StructType.fromJson(json.loads(columns)), timezone="UTC")
    if options.format == "parquet":
        return pyarrow.parquet.read_table(options.path).select(schema.names).cast(schema)
    try:
        return _read_whole(options, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, KeyError):
        return _read_by_line(options, schema)


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()


def _read_whole(options: Replay, schema: pa.Schema) -> pa.Table:
    # Times without a zone are in UTC, as in the rest of the engine; Arrow wants a zone in the text if the type has one.
    kinds = [pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type for field in schema]
    plain = pa.schema(list(zip(schema.names, kinds, strict=True)))
    if options.format == "json":
        parsing = pyarrow.json.ParseOptions(explicit_schema=plain, unexpected_field_behavior="ignore")
        table = pyarrow.json.read_json(options.path, parse_options=parsing)
    else:
        names = None if options.header else schema.names
        table = pyarrow.csv.read_csv(
            options.path,
            read_options=pyarrow.csv.ReadOptions(column_names=names),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=plain, include_columns=schema.names, include_missing_columns=True
            ),
        )
    return table.select(schema.names).cast(schema)


def _read_by_line(options: Replay, schema: pa.Schema) -> pa.Table:
    records = list(_json_records(options, schema) if options.format == "json" else _csv_records(options, schema))
    columns = [[record[position] for record in records] for position in range(len(schema))]
    arrays = [pa.array([_value(v, f.type) for v in column], f.type) for column, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _json_records(options: Replay, schema: pa.Schema) -> Iterator[Sequence[Any]]:
    for line in _lines(options.path):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        record = value if isinstance(value, dict) else {}
        if line.strip():
            yield [record.get(name) for name in schema.names]


def _csv_records(options: Replay, schema: pa.Schema) -> Iterator[Sequence[Any]]:
    rows = csv.reader(_lines(options.path))
    names = next(rows, []) if options.header else schema.names
    for row in rows:
        record = {name: text for name, text in zip(names, row, strict=False) if text != ""}
        if row:
            yield [record.get(name) for name in schema.names]


def _value(value: Any, kind: pa.DataType) -> Any:
    """A value as its column wants it; ``None`` if it is nothing of the kind."""
    try:
        if isinstance(value, str) and pa.types.is_timestamp(kind):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if isinstance(value, str) and not pa.types.is_string(kind):
            value = _from_text(value.strip(), kind)
        return pa.scalar(value, kind).as_py()
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        return None


def _from_text(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else None
    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        return Decimal(text)
    if pa.types.is_date(kind):
        return date.fromisoformat(text)
    return text
