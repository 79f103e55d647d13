"""The exchange: derived streams between fragments, durable and replayable.

A topic is a folder with one batch of files per number, counted from 0 without gaps, each described by a small file that
also names the plan snapshot its rows belong to. ``head.json`` holds the last number, so finding what is new costs the
same however much there was before; a reader's position is kept beside it, and what lies before its last epoch, which
may be run again after a failure, is removed.

Readers are a Spark data source written in Python. One micro-batch of a reader never holds rows of two snapshots of one
topic. Asked for what is new, a reader waits for it, so that rows are read as soon as they are there, and a reader that
has none costs next to nothing (:class:`Patience`).
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructType

from headgate.runtime.compile.plan import later
from headgate.runtime.keyed.packing import GROUP, PACK, in_packs
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.runtime.spark_internals.worker import settle
from headgate.store.durable_steps import step
from headgate.store.files import read_json, write_json
from headgate.tasks.row_errors import CARRIED
from headgate.tasks.source_folder import limit_of

__all__ = [
    "INGEST",
    "ORDER",
    "PACKS",
    "SNAPSHOT",
    "ExchangeSource",
    "FileExchange",
    "Patience",
    "stamp_of",
    "topic_batches",
    "topic_columns",
]

SNAPSHOT, ORDER, INGEST = "__snapshot", "__order", CARRIED
"""Columns that every topic has: the plan snapshot of a row; its place among the rows of a micro-batch, the same
whenever the micro-batch is run again, and another for each row of the topics that one reader has; and when the event
that it came from was taken in, in microseconds since 1970. Sources have the last one too, where they know."""

PACKS = StructType().add(GROUP, IntegerType()).add(PACK, BinaryType())
"""What a keyed host reads of a topic."""

KEEP = 4
"""Batches that are no longer needed are removed so many at a time, or more."""

BEGIN = -1


class FileExchange:
    """An exchange in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, topic: str) -> Path:
        path = self.root / topic
        path.mkdir(exist_ok=True)
        return path

    def head(self, topic: str) -> int:
        """The number of the last batch of a topic; -1 when there is none."""
        return _head(self.folder(topic))

    def position(self, topic: str) -> int:
        """The number of the last batch that the topic's reader is done with."""
        return _position(self.folder(topic))

    def done(self, topic: str, number: int) -> None:
        """Move the reader's position on."""
        before = self.position(topic)
        if number > before:
            write_json(self.folder(topic) / "position.json", {"number": number, "before": before}, "position")

    def snapshot_of(self, topic: str, number: int) -> int | None:
        """The plan snapshot to which the rows of a batch belong."""
        described = read_json(_described(self.folder(topic), number))
        return None if described is None else int(described["snapshot"])

    def oldest_snapshot(self, topic: str) -> int | None:
        """The oldest plan snapshot of batches that are still there, or wait to follow them, if there are any."""
        kept = read_json(self.folder(topic) / "first.json") or {"number": 0}
        numbers = range(int(kept["number"]), self.head(topic) + 1) if self._has_followers(topic) else [kept["number"]]
        known = [self.snapshot_of(topic, number) for number in numbers]
        return min((each for each in (*known, self._follower(topic)) if each is not None), default=None)

    def is_past(self, topic: str, snapshot: int) -> bool:
        """Whether the topic's reader is done with all rows of snapshots before that one."""
        first = self.position(topic) + 1
        numbers = range(first, self.head(topic) + 1) if self._has_followers(topic) else [first]
        waiting = (self._follower(topic), *(self.snapshot_of(topic, number) for number in numbers))
        return all(each is None or each >= snapshot for each in waiting)

    # rows that wait until those of a past are in a topic

    def waited_for(self) -> set[str]:
        """The topics for which rows wait."""
        return {folder.name.removesuffix(later("")) for folder in self.root.glob(f"*{later('')}")}

    def follow(self, topic: str) -> None:
        """Move what has waited for the past of a topic behind it; done again, it goes on where it was."""
        waiting = self.root / later(topic)
        if not waiting.exists():
            return
        kept = read_json(waiting / "follow.json")
        if kept is None:
            kept = {"first": self.head(topic) + 1}
            write_json(self.folder(topic) / "followed.json", kept)
            write_json(waiting / "follow.json", kept, "follow")
        for number in range(_head(waiting) + 1):
            one = read_json(_described(waiting, number))
            if one is not None:
                files = [(str(waiting / name), one["rows"] * (place == 0)) for place, name in enumerate(one["files"])]
                self.publish(topic, kept["first"] + number, one["snapshot"], files, one["ingested_us"])
        # In one step: what is left of a folder that is half removed must not follow again.
        gone = self.root / f"{topic}-gone"
        shutil.rmtree(gone, ignore_errors=True)
        waiting.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _follower(self, topic: str) -> int | None:
        """The oldest plan snapshot of what waits to follow."""
        described = read_json(_described(self.root / later(topic), 0))
        return None if described is None else int(described["snapshot"])

    def _has_followers(self, topic: str) -> bool:
        """Whether the snapshots of its batches may not be in order: rows of a past came before, or come still."""
        return (self.folder(topic) / "followed.json").exists() or (self.root / later(topic)).exists()

    def rows_behind(self, topic: str) -> int:
        """How many rows the topic's reader has not read yet."""
        return sum(rows for rows, _ in self.waiting(topic, self.head(topic)))

    def waiting(self, topic: str, until: int) -> list[tuple[int, int]]:
        """The batches after the reader's position, up to one of them: rows, and when their events were taken in."""
        folder = self.folder(topic)
        numbers = range(self.position(topic) + 1, until + 1)
        described = [read_json(_described(folder, number)) for number in numbers]
        return [(each["rows"], each["ingested_us"]) for each in described if each is not None]

    def files(self, topic: str, until: int) -> list[str]:
        """The files of the batches after the reader's position, up to one of them, in order."""
        folder = self.folder(topic)
        described = [read_json(_described(folder, number)) for number in range(self.position(topic) + 1, until + 1)]
        return [str(folder / name) for each in described if each is not None for name in each["files"]]

    def next_batches(self, topic: str, after: int) -> Iterator[tuple[int, int, int]]:
        """The number, the snapshot and the rows of each batch after one of them and after the reader's position."""
        folder = self.folder(topic)
        for number in range(max(self.position(topic), after) + 1, _head(folder) + 1):
            described = read_json(_described(folder, number))
            yield number, described["snapshot"], described["rows"]

    def forget(self, topic: str) -> None:
        """Remove what a topic holds: its reader is gone. Numbers go on, should there be a reader again."""
        folder = self.folder(topic)
        head = _head(folder)
        write_json(folder / "position.json", {"number": head, "before": head}, "position")
        for file in folder.glob("[0-9]*"):
            file.unlink(missing_ok=True)
        write_json(folder / "first.json", {"number": head + 1}, "first")
        shutil.rmtree(self.root / later(topic), ignore_errors=True)

    def publish(
        self, topic: str, number: int, snapshot: int, files: Sequence[tuple[str, int]], ingested_us: int
    ) -> None:
        """Add a batch; the files are moved into the topic. Publishing a number again does nothing.

        ``ingested_us`` is when the events of its rows were taken in, in the mean.
        """
        folder = self.folder(topic)
        if number <= _head(folder):
            return
        names = [f"{number:010d}-{index}.arrow" for index in range(len(files))]
        with step("batch-files") as point:
            for (staged, _), name in zip(files, names, strict=True):
                if Path(staged).exists():
                    Path(staged).replace(folder / name)
                point.halfway()
        rows = sum(count for _, count in files)
        described = {"files": names, "snapshot": snapshot, "rows": rows, "ingested_us": ingested_us}
        write_json(_described(folder, number), described, "batch")
        write_json(folder / "head.json", {"number": number}, "head")
        _retain(folder)


def _retain(folder: Path) -> None:
    kept = read_json(folder / "first.json") or {"number": 0}
    position = read_json(folder / "position.json") or {"before": BEGIN}
    # Of the batches before the reader's last epoch one stays: it may still be asked for its snapshot.
    first, done = int(kept["number"]), int(position["before"])
    if done < first + KEEP:
        return
    for number in range(first, done):
        described = read_json(_described(folder, number)) or {"files": []}
        for name in described["files"]:
            (folder / name).unlink(missing_ok=True)
        _described(folder, number).unlink(missing_ok=True)
    write_json(folder / "first.json", {"number": done}, "first")


def _head(folder: Path) -> int:
    head = read_json(folder / "head.json")
    return BEGIN if head is None else int(head["number"])


def stamp_of(path: Path) -> tuple[int, int]:
    """What changes whenever a small file is written anew."""
    try:
        file = path.stat()
    except FileNotFoundError:
        return 0, 0
    return file.st_ino, file.st_mtime_ns


def _position(folder: Path) -> int:
    position = read_json(folder / "position.json")
    return BEGIN if position is None else int(position["number"])


def _described(folder: Path, number: int) -> Path:
    return folder / f"{number:010d}.json"


@dataclass
class _Batches(InputPartition):
    """Part of a batch: one file."""

    path: str
    snapshot: int
    first: int


class Patience:
    """Waits for rows in any topic of a fragment: at most ``wait_s``, and not less than most of it since the last ones.

    A fragment asks all its topics at each micro-batch, one after the other, and only the first has patience. Epochs of
    a fragment therefore follow its writer's at once, and those of several writers come together.

    ``topics`` holds the topics' folders, and from which number on each is read.
    """

    POLL_S = 0.01
    PACE = 0.8
    """A writer's epochs do not come on the dot: one that comes early after a late one is not kept waiting."""

    def __init__(self, topics: Mapping[str, int], wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.topics = {Path(folder): start for folder, start in topics.items()}
        self.wait_s = wait_s
        self.clock = clock
        self.last = -wait_s
        self._quiet: list[tuple[int, int]] | None = None
        """What the topics' files were like when there were no rows: looking at that is cheaper than reading them."""

    def wait(self) -> None:
        until = self.clock() + self.wait_s
        while self.clock() < until:
            if self.clock() >= self.last + self.PACE * self.wait_s and self._rows_wait():
                self.last = self.clock()
                return
            time.sleep(self.POLL_S)

    def _rows_wait(self) -> bool:
        stamps = [stamp_of(folder / name) for folder in self.topics for name in ("head.json", "position.json")]
        if stamps == self._quiet:
            return False
        waiting = any(_head(folder) > max(_position(folder), start) for folder, start in self.topics.items())
        self._quiet = None if waiting else stamps
        return waiting


class ExchangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic from a given number on."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.folder = Path(options["folder"])
        self.rank, self.start = int(options["rank"]), int(options["start"])
        self.rows_per_batch = int(options["rows_per_batch"])
        self.limits = options["limits"]
        self.packing: dict[str, Any] | None = json.loads(options.get("packing", "null"))
        self.columns = _columns(options)
        self.until: int | None = None
        self.patience = Patience(json.loads(options.get("topics", "{}")), float(options.get("wait_s", 0)))

    def initialOffset(self) -> dict[str, int]:
        return {"number": self.start}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.until = _head(self.folder)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        del limit
        if self.until is None:
            self.patience.wait()
        head = _head(self.folder) if self.until is None else self.until
        most = limit_of(self.limits, self.rows_per_batch)
        last, rows, snapshot = start["number"], 0, None
        for number in range(start["number"] + 1, head + 1):
            described = read_json(_described(self.folder, number))
            if snapshot is not None and (described["snapshot"] != snapshot or rows >= most):
                break
            last, rows, snapshot = number, rows + described["rows"], described["snapshot"]
        return {"number": last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        parts = []
        for number in range(start["number"] + 1, end["number"] + 1):
            described = read_json(_described(self.folder, number))
            if described is None:
                raise RuntimeError(f"batch {number} of {self.folder} is gone")
            for index, name in enumerate(described["files"]):
                # Counted from the start of the micro-batch: the topic's own numbers would one day not fit.
                first = ((number - start["number"]) << 42) + (self.rank << 36) + (index << 26)
                parts.append(_Batches(str(self.folder / name), described["snapshot"], first))
        return parts

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Batches)
        batches = topic_batches(partition.path, self.columns, partition.snapshot, partition.first)
        return batches if self.packing is None else in_packs(batches, **self.packing)


def topic_columns(rows: StructType) -> StructType:
    """The columns of a topic of some rows."""
    return StructType([*rows.fields]).add(INGEST, LongType()).add(SNAPSHOT, IntegerType()).add(ORDER, LongType())


def topic_batches(path: str, schema: StructType, snapshot: int, first: int) -> Iterator[Any]:
    """The rows of a topic's file, each with its snapshot and its place, numbered from ``first``.

    When its event was taken in is the last column of the file.
    """
    target = arrow_schema(schema)
    with pa.OSFile(path) as file:
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            count = batch.num_rows
            columns = [*batch.columns, np.full(count, snapshot, np.int32), np.arange(first, first + count)]
            # Spark insists on the very types of the schema; the cast costs nothing where only nullability differs.
            arrays = [pa.array(c).cast(f.type) for c, f in zip(columns, target, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=target)
            first += count
    settle()


def _columns(options: Mapping[str, str]) -> StructType:
    return StructType.fromJson(json.loads(options["columns"]))


class ExchangeSource(DataSource):
    """The data source ``headgate_exchange``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_exchange"

    def schema(self) -> StructType:
        return PACKS if "packing" in self.options else _columns(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return ExchangeReader(self.options)
