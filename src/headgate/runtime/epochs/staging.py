"""Staging: workers write the outputs of an epoch in one Spark job, before they are committed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.runtime.compile.arrow_stage import ArrowStage, StageRunner, Times
from headgate.runtime.exchange.files import INGEST
from headgate.runtime.observing.job_tags import job_property
from headgate.runtime.spark_internals.frames import set_schema
from headgate.runtime.spark_internals.worker import executor_id, settle
from headgate.store.durable_steps import step
from headgate.store.files import sync_files
from headgate.tasks.batch import Run, metered
from headgate.tasks.row_errors import TaskRaised

__all__ = ["EPOCH", "OUTPUTS", "SEEN", "StagedFile", "pack", "run_staging", "stage", "staging_frame"]

OUTPUTS = "outputs"

EPOCH = "headgate.epoch"
"""The property of a job in which its workers find the folder of the epoch, and when events were taken in."""

SEEN = -1
"""The number under which the stager counts all rows, with or without an output; tasks in stages have lower ones."""

STAGED = (
    StructType()
    .add("output", "integer")
    .add("partition", "integer")
    .add("path", "string")
    .add("rows", "long")
    .add("ingested", "binary")
)

LINES = ("json", "csv", "text")
"""Formats in which a row is a line."""

ENDINGS = {"parquet": ".parquet", "json": ".json", "csv": ".csv", "text": ".txt", "arrow": ".arrow", "topic": ".arrow"}

MOST_BYTES = 4 << 30
"""What a worker writes at most for one output in a micro-batch: many rows of few must not fill the disk for all."""

POINTS = 64
"""How many quantiles are kept of the ingest times of a file's rows."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that holds some rows of an output."""

    output: int
    path: str
    rows: int
    ingested: bytes
    """When the events of its rows were taken in, in microseconds since 1970: quantiles, 64-bit each."""


def stage(
    frame: DataFrame, forms: Sequence[str], folder: Path, ingested: int, stages: Mapping[int, ArrowStage] | None = None
) -> tuple[list[StagedFile], Counter[int]]:
    """Run a job that stages the outputs of a frame: see :func:`staging_frame` and :func:`run_staging`."""
    return run_staging(staging_frame(frame, forms, stages), folder, ingested)[:2]


def staging_frame(
    frame: DataFrame,
    forms: Sequence[str],
    stages: Mapping[int, ArrowStage] | None = None,
    before: Run | None = None,
    names: Sequence[str] = (),
) -> DataFrame:
    """The frame whose job writes each output's rows into files; it can be run for any number of epochs.

    The given frame's only column, :data:`OUTPUTS`, has a field for each output: ``o0``, ``o1`` and so on; and, where it
    is known row by row, one for when the events were taken in. The rows of some outputs go into ``stages`` instead.
    ``before`` makes such batches of what the frame has. ``names`` says whose the outputs are.
    """
    wanted, further, of_whom = list(forms), dict(stages or {}), list(names)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _write(batches if before is None else before(batches), wanted, further, of_whom)

    if before is None:
        # Only the column's name is needed. With many outputs, fetching their types would take as long as all else.
        set_schema(frame, StructType().add(OUTPUTS, StructType()))
    return frame.mapInArrow(metered(write), STAGED)


def run_staging(frame: DataFrame, folder: Path, ingested: int) -> tuple[list[StagedFile], Counter[int], dict[int, str]]:
    """Run the job of an epoch: its outputs become files of ``folder``, which are returned in order.

    And what was counted: under :data:`SEEN` all rows, those that no output wants among them, and those of stages. And
    the executor of each partition that had rows, where that is known.
    ``ingested`` is when events were taken in, where that is not known row by row.
    """
    with job_property(frame.sparkSession, EPOCH, json.dumps([str(folder), ingested])):
        rows = frame.collect()
    counts: Counter[int] = Counter()
    places: dict[int, str] = {}
    for row in rows:
        if not row["path"]:
            counts[row["output"]] += row["rows"]
        if row["output"] == SEEN and row["ingested"]:
            places[row["partition"]] = bytes(row["ingested"]).decode()
    ordered = sorted((row for row in rows if row["path"]), key=lambda row: (row["output"], row["partition"]))
    files = [StagedFile(row["output"], row["path"], row["rows"], bytes(row["ingested"])) for row in ordered]
    return files, counts, places


def pack(frame: DataFrame) -> DataFrame:
    """A frame with a column for each output as one that can be staged."""
    return frame.select(F.struct(F.col("*")).alias(OUTPUTS))


def _write(
    batches: Iterator[pa.RecordBatch], forms: Sequence[str], stages: Mapping[int, ArrowStage], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    partition, attempt = context.partitionId(), context.taskAttemptId()
    folder, ingested = json.loads(context.getLocalProperty(EPOCH) or "null")
    writers: dict[int, _Writer] = {}

    def write(number: int, rows: Any, times: Times) -> None:
        if number not in writers:
            path = f"{folder}/{number}-{partition}-{attempt}{ENDINGS[forms[number]]}"
            writers[number] = _Writer(path, forms[number])
        writers[number].write(rows, times)
        if writers[number].bytes > MOST_BYTES and names:
            writers[number].discard()
            raise TaskRaised(names[number], f"MemoryError: more than {MOST_BYTES >> 30} GiB of rows in a micro-batch")

    runner = StageRunner(write)
    seen = 0
    for batch in batches:
        seen += len(batch)
        outputs = batch.column(0)
        fields = dict(zip((field.name for field in outputs.type), outputs.flatten(), strict=True))
        times = _times(fields.pop(INGEST, None), len(batch), ingested)
        for name, rows in fields.items():
            number, here = int(name[1:]), times
            if rows.null_count:
                here = times[rows.is_valid().to_numpy(zero_copy_only=False)]
                rows = rows.drop_null()
            if len(rows) and number in stages:
                runner.counts[number] += len(rows)
                runner.enter(stages[number], rows, here, ingested)
            elif len(rows):
                write(number, rows, here)
    made = [(n, partition, writer.path, writer.close(), writer.ingested()) for n, writer in writers.items()]
    sync_files([writer.path for writer in writers.values()])
    settle()
    if seen:
        made += [(number, partition, "", count, b"") for number, count in runner.counts.items()]
        made.append((SEEN, partition, "", seen, executor_id().encode()))
        columns = [pa.array(column) for column in zip(*made, strict=True)]
        types = [pa.int32(), pa.int32(), pa.string(), pa.int64(), pa.binary()]
        arrays = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, STAGED.names)


def _times(known: pa.Array | None, rows: int, otherwise: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """When the events of a batch's rows were taken in."""
    if known is None:
        return np.full(rows, otherwise, np.int64)
    return np.asarray(known.fill_null(otherwise))


def _lines(rows: Any) -> memoryview:
    """Texts, or structs of one text each, as lines: a view of Arrow's bytes."""
    texts = rows.field(0) if pa.types.is_struct(rows.type) else rows
    lines = pc.binary_join_element_wise(pc.fill_null(texts.cast(pa.string()), ""), "", "\n")
    _, ends, data = lines.buffers()
    first, last = np.frombuffer(ends, np.int32)[[lines.offset, lines.offset + len(lines)]]
    return memoryview(data)[first:last]


class _Writer:
    """Writes the rows of one output and partition: structs as parquet or Arrow, texts as lines."""

    def __init__(self, path: str, form: str) -> None:
        self.path = path
        self.form = form
        self.rows = self.bytes = 0
        self._file: Any = None
        self._times: list[np.ndarray[Any, np.dtype[np.int64]]] = []

    def write(self, rows: Any, times: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self.rows += len(rows)
        self._times.append(times)
        if self.form in LINES:
            if self._file is None:
                self._file = Path(self.path).open("wb")  # noqa: SIM115
            lines = _lines(rows)
            self.bytes += len(lines)
            self._file.write(lines)
            return
        batch = pa.RecordBatch.from_struct_array(rows)
        self.bytes += batch.nbytes
        if self.form == "topic":
            batch = batch.append_column(INGEST, pa.array(times))
        if self._file is None:
            self._file = self._opened(batch.schema)
        self._file.write_batch(batch)

    def _opened(self, schema: pa.Schema) -> Any:
        if self.form == "parquet":
            import pyarrow.parquet as pq

            return pq.ParquetWriter(self.path, schema)
        return pa.ipc.new_file(self.path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def close(self) -> int:
        with step("staged-file") as point:
            point.halfway()
            self._file.close()
        return self.rows

    def discard(self) -> None:
        """Give back what is on the disk."""
        self._file.close()
        Path(self.path).unlink()

    def ingested(self) -> bytes:
        """The times of its rows: all of them, in order, or that many quantiles."""
        times = np.sort(np.concatenate(self._times))
        if len(times) > POINTS:
            times = times[((np.arange(POINTS) + 0.5) * len(times) / POINTS).astype(np.int64)]
        return times.tobytes()
