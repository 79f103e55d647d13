"""The data source ``headgate_files``: what Spark asks of a file source, on the driver and in workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import LongType, StructType

from headgate.model.on_error import OnError
from headgate.runtime.file_source.batches import PART_BYTES, Span, parts_of
from headgate.runtime.file_source.driver import FileBatches
from headgate.runtime.file_source.spark_log import SPARK_OFFSET, read_between
from headgate.runtime.io.broken_records import LONGEST, write_broken
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.runtime.spark_internals.worker import settle
from headgate.tasks.file_paths import away, is_url
from headgate.tasks.formats.files import can_be_cut, read_file
from headgate.tasks.row_errors import CARRIED, SourceAwayError, UnreadableSourceError
from headgate.tasks.sources import ReadFiles

__all__ = ["FileReader", "FileSource"]

ROWS = 20_000
"""Rows of small files are handed over together, so many or more at a time."""


@dataclass(frozen=True)
class _Part(InputPartition):
    """A run of files, or of parts of them."""

    batch: int
    number: int
    spans: tuple[Span, ...]


class FileReader(DataSourceStreamReader):
    """Reads the files of a task; ``options`` are those of the data source."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = ReadFiles.model_validate_json(options["task"])
        self.folder = Path(options["folder"])
        self.parts, self.began_us = int(options["parts"]), int(options["began_us"])
        self.on_error = OnError(options["on_error"])
        columns = StructType.fromJson(json.loads(options["columns"]))
        self.columns = _with_time(columns)
        self.arrow, self.target = arrow_schema(columns), arrow_schema(self.columns)
        self._batches: FileBatches | None = None

    @property
    def batches(self) -> FileBatches:
        if self._batches is None:
            self._batches = FileBatches(self.options, self.folder)
        return self._batches

    # on the driver

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0, "batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        del limit
        return self.batches.next(start)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self._parts(start, end, self.parts, PART_BYTES)

    def divided(self, start: dict[str, int], end: dict[str, int], count: int) -> Sequence[InputPartition]:
        return self._parts(start, end, count, 1)

    def _parts(self, start: dict[str, int], end: dict[str, int], most: int, least_bytes: int) -> list[InputPartition]:
        if SPARK_OFFSET in end:
            paths = read_between(self.folder / "checkpoint", start.get(SPARK_OFFSET, -1), end[SPARK_OFFSET])
            spans: Sequence[Span] = [_all_of(path, self.options.format) for path in paths]
        else:
            first = start.get("batch", 0)
            spans = [s for n in range(first, end["batch"]) for s in self.batches.plan(n + 1).spans]
        runs = parts_of(spans, most, least_bytes)
        return [_Part(end.get("batch", 0), number, run) for number, run in enumerate(runs)]

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: the next call of :meth:`latestOffset` says the same."""

    # in workers

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Part)
        gathered: list[pa.RecordBatch] = []
        broken: list[dict[str, str]] = []
        for span in partition.spans:
            for rows in self._rows(span, partition.batch, broken):
                gathered.append(rows)
                if sum(map(len, gathered)) >= ROWS:
                    yield pa.concat_batches(gathered)
                    gathered = []
        if gathered:
            yield pa.concat_batches(gathered)
        if broken:
            write_broken(self.folder, partition.batch, partition.number, broken)
        settle()

    def _rows(self, span: Span, batch: int, broken: list[dict[str, str]]) -> Iterator[pa.RecordBatch]:
        """The rows of a span, with when they came in; lines that are none are added to ``broken``."""
        came_us = max(span.modified_ns // 1_000, self.began_us)
        header = self.options.header
        try:
            # A file that was changed since it was planned, mended perhaps, is read as it is now, up to its end.
            last = None if not span.cuts or (span.is_last and _is_changed(span)) else span.last
            for some in read_file(
                span.path, self.options.format, self.arrow, header=header, first=span.first, last=last
            ):
                for line in some.broken:
                    self._note(broken, f"{span.path}:{line.line + 1}", line.text, line.reason)
                times = pa.array(np.full(len(some.rows), came_us, np.int64))
                yield pa.RecordBatch.from_arrays([*some.rows.columns, times], schema=self.target)
        except (OSError, EOFError, pa.ArrowException) as error:
            if isinstance(error, FileNotFoundError) and self.batches.is_cleared(batch):
                return  # the batch has been read; this is somebody who looks at its rows again
            if _is_passing(error, span.path):
                raise
            gone = isinstance(error, FileNotFoundError)  # nothing is gained by waiting for it
            self._note(broken, span.path, span.path, " ".join(str(error).split()), stops=not gone)
        except UnreadableSourceError:
            raise
        except Exception as error:  # each kind of storage has its own for not being there
            if not is_url(span.path):
                raise
            raise SourceAwayError(away(span.path, error)) from None

    def _note(self, broken: list[dict[str, str]], place: str, text: str, reason: str, *, stops: bool = True) -> None:
        if stops and self.on_error is OnError.FAIL:
            remedy = "mend or remove it, or give the task on_error: dead_letter or skip"
            raise UnreadableSourceError(f"{place} cannot be read ({reason}); {remedy}")
        broken.append({"record": text[:LONGEST], "error": f"{place}: {reason}"})


def _all_of(path: str, form: str) -> Span:
    status = os.stat(path)  # noqa: PTH116
    return Span(path, status.st_mtime_ns, status.st_size, 0, status.st_size, can_be_cut(form, path))


def _is_passing(error: Exception, path: str) -> bool:
    """Whether a file system is to blame that may come back, and not the file."""
    if isinstance(error, FileNotFoundError):
        return not is_url(path) and not Path(path).parent.is_dir()
    return isinstance(error, OSError) and error.errno is not None


def _is_changed(span: Span) -> bool:
    return not is_url(span.path) and os.stat(span.path).st_mtime_ns != span.modified_ns  # noqa: PTH116


def _with_time(columns: StructType) -> StructType:
    return StructType([*columns.fields]).add(CARRIED, LongType())


class FileSource(DataSource):
    """The data source ``headgate_files``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_files"

    def schema(self) -> StructType:
        return _with_time(StructType.fromJson(json.loads(self.options["columns"])))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return FileReader(self.options)
