"""Reading files: a part of one, chunk by chunk, as Arrow rows; local paths and URLs, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.tasks.file_paths import file_system, is_url
from headgate.tasks.formats.lines import BrokenLine, Parse, csv_lines, json_lines, text_lines

__all__ = ["FileRows", "bytes_per_row", "can_be_cut", "is_compressed", "read_file"]

CHUNK = 2_000_000
"""Bytes that are parsed at once."""

HEAD = 65_536
"""Bytes of a file that show how long its rows are."""

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
RATIO = 5.0
"""How much longer rows are than their compressed bytes, for estimates."""

PARSERS: dict[str, Parse] = {"json": json_lines, "csv": csv_lines, "text": text_lines}


@dataclass(frozen=True, slots=True)
class FileRows:
    """Some rows of a file, and lines that are none; lines are counted from 0, from the file's first."""

    rows: pa.RecordBatch
    broken: tuple[BrokenLine, ...] = ()


def can_be_cut(form: str, path: str = "") -> bool:
    """Whether part of a file can be read."""
    return form != "parquet" and not is_compressed(path)


def is_compressed(path: str) -> bool:
    return path.endswith(tuple(COMPRESSED))


def read_file(
    path: str, form: str, schema: pa.Schema, *, header: bool = False, first: int = 0, last: int | None = None
) -> Iterator[FileRows]:
    """The rows of a file that begin between two places, in order."""
    if form == "parquet":
        yield from (FileRows(batch) for batch in _parquet(path, schema))
        return
    before: int | None = None
    with opened(path) as file:
        for place, chunk in _chunks(file, first, last):
            rows, broken = PARSERS[form](_body(chunk) if header and place == 0 else chunk, schema)
            if broken:
                before = _lines_before(path, place) if before is None else before
                broken = [replace(one, line=before + one.line) for one in broken]
            if before is not None:
                before += chunk.count(b"\n")
            yield FileRows(rows, tuple(broken))


def opened(path: str) -> Any:
    """A file to read bytes from, decompressed."""
    if is_url(path):
        system, place = file_system(path)
        return system.open(place, "rb", compression="infer")
    return pa.input_stream(path, compression="detect") if is_compressed(path) else open(path, "rb")  # noqa: PTH123


def _chunks(file: Any, first: int, last: int | None) -> Iterator[tuple[int, bytes]]:
    """Whole lines, and the place where they begin."""
    at = first
    if first:
        file.seek(first - 1)
        at = first - 1 + len(file.readline())
    while last is None or at < last:
        chunk: bytes = file.read(CHUNK if last is None else min(CHUNK, last - at))
        if not chunk:
            return
        if not chunk.endswith(b"\n"):
            chunk += file.readline()
        yield at, chunk
        at += len(chunk)


def _body(chunk: bytes) -> bytes:
    """A file's first chunk without the line of names; a blank line is left in its place."""
    end = chunk.find(b"\n")
    return chunk[end:] if end >= 0 else b""


def _lines_before(path: str, place: int) -> int:
    """How many lines end before a place of a file."""
    with opened(path) as file:
        count, at = 0, 0
        while at < place:
            chunk = file.read(min(CHUNK, place - at))
            if not chunk:
                break
            count, at = count + chunk.count(b"\n"), at + len(chunk)
        return count


def _parquet(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The wanted columns of a Parquet file, whatever the case of their names; null where there is none."""
    with _plain(path) as source:
        file = pq.ParquetFile(source)
        there = {name.casefold(): name for name in file.schema_arrow.names}
        wanted = [there.get(name.casefold()) for name in schema.names]
        for batch in file.iter_batches(columns=[name for name in wanted if name is not None]):
            columns = [
                pa.nulls(len(batch), field.type) if name is None else _as(batch.column(name), field.type)
                for name, field in zip(wanted, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(path: str) -> Any:
    if is_url(path):
        system, place = file_system(path)
        return system.open(place, "rb")
    return pa.OSFile(path)


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def bytes_per_row(path: str, form: str) -> float | None:
    """How many bytes of a file a row takes, from the file's beginning; ``None`` if that does not show."""
    with suppress(OSError, pa.ArrowException):
        if form == "parquet":
            with _plain(path) as source:
                about = pq.read_metadata(source)
                return source.size() / about.num_rows if about.num_rows else None
        with opened(path) as file:
            head = file.read(HEAD)
        lines = head.count(b"\n") + (0 < len(head) < HEAD and not head.endswith(b"\n"))
        if lines:
            return float(len(head) / lines / (RATIO if is_compressed(path) else 1.0))
    return None
