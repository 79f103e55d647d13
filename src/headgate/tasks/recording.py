"""Recorded rows as an Arrow table: what the replayer plays.

Files are read as ``read_files`` reads them, with two differences: columns of a CSV file with a header are known by
their names, and a line that is no record becomes a row of nulls, so that rows keep their places.
"""

from __future__ import annotations

import csv
import json
from functools import lru_cache

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.tasks.formats.files import opened, read_file
from headgate.tasks.formats.lines import json_lines
from headgate.tasks.sources import Replay

__all__ = ["recorded"]


@lru_cache(maxsize=4)
def recorded(task: str, columns: str) -> pa.Table:
    """The rows of a replay task, with its columns; both are given as JSON, the form in which workers get them."""
    options = Replay.model_validate_json(task)
    wanted = to_arrow_schema(StructType.fromJson(json.loads(columns)), timezone="UTC")
    schema = _in_file(options.path, wanted) if options.header else wanted
    parts = list(read_file(options.path, options.format, schema, header=options.header))
    broken = [line.line for part in parts for line in part.broken]
    batches = [_with_nulls(options.path, schema, broken)] if broken else [part.rows for part in parts]
    table = pa.Table.from_batches(batches, schema)
    names = set(schema.names)
    return pa.table([table[f.name] if f.name in names else pa.nulls(len(table), f.type) for f in wanted], schema=wanted)


def _in_file(path: str, wanted: pa.Schema) -> pa.Schema:
    """The columns of a CSV file, in its order; those that are not wanted are texts."""
    with opened(path) as file:
        names = next(csv.reader([file.readline().decode(errors="replace").removeprefix("\ufeff")]), [])
    known = {field.name: field.type for field in wanted}
    return pa.schema(
        [(name if name in known else f"__{at}", known.get(name, pa.string())) for at, name in enumerate(names)]
    )


def _with_nulls(path: str, schema: pa.Schema, broken: list[int]) -> pa.RecordBatch:
    """The rows of JSON lines, of which some are no record."""
    with opened(path) as file:
        lines = file.read().split(b"\n")
    for at in broken:
        lines[at] = b"{}"
    rows, _ = json_lines(b"\n".join(lines), schema)
    return rows
