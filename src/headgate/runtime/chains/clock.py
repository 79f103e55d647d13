"""The clock of a host of chains: Spark's streaming query waits for rows and numbers the epochs, and reads none itself.

Its one source says up to which batch of each topic an epoch reads. Which topics there are is read from the fragment's
folder each time, so windows and joins come and go while the query runs. An epoch has rows of one snapshot only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructType

from headgate.runtime.chains.topics import FILE, listed
from headgate.runtime.exchange.files import FileExchange, Patience, stamp_of
from headgate.tasks.source_folder import limit_of

__all__ = ["TOPICS", "ChainClockSource", "clock_stream", "next_ends"]

TOPICS = "topics"
"""The key of an offset: up to which batch of each topic it reads."""

ROWS_PER_EPOCH = 500_000

COLUMNS = StructType().add("rows", LongType())


def clock_stream(spark: SparkSession, folder: Path, exchange: FileExchange, wait_s: float) -> DataFrame:
    """A stream of epochs, without rows."""
    reader = spark.readStream.format("headgate_chains").option("folder", str(folder))
    return reader.option("exchange", str(exchange.root)).option("wait_s", wait_s).load()


def next_ends(exchange: FileExchange, topics: Sequence[str], start: Mapping[str, int], most: int) -> dict[str, int]:
    """Up to which batch of each topic the next epoch reads: about so many rows of the oldest snapshot that waits."""
    ends = {topic: start[topic] for topic in topics if topic in start}
    waiting = {topic: list(exchange.next_batches(topic, start.get(topic, -1))) for topic in topics}
    snapshot = min((batches[0][1] for batches in waiting.values() if batches), default=None)
    rows = 0
    for topic, batches in waiting.items():
        for number, of, count in batches:
            if of != snapshot or rows >= most:
                break
            ends[topic], rows = number, rows + count
    return dict(sorted(ends.items()))


class _Patience(Patience):
    """Waits for rows in any of the topics that there are at that moment."""

    def __init__(self, folder: Path, exchange: FileExchange, wait_s: float) -> None:
        super().__init__({}, wait_s)
        self.folder, self.exchange = folder, exchange
        self.start: Mapping[str, int] = {}
        self._listed: tuple[int, int] | None = None

    def _rows_wait(self) -> bool:
        stamp = stamp_of(self.folder / FILE)
        if stamp != self._listed:
            self.topics = {self.exchange.folder(topic): self.start.get(topic, -1) for topic in listed(self.folder)}
            self._listed = stamp
        return super()._rows_wait()

    def wait_from(self, start: Mapping[str, int]) -> None:
        """Wait for rows after these batches."""
        self.start, self._listed = start, None
        self.wait()


class _Clock(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.folder, self.exchange = Path(options["folder"]), FileExchange(Path(options["exchange"]))
        self.patience = _Patience(self.folder, self.exchange, float(options["wait_s"]))
        self.available_now = False

    def initialOffset(self) -> dict[str, Any]:
        return {TOPICS: {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        del limit
        if not self.available_now:
            self.patience.wait_from(start[TOPICS])
        most = limit_of(str(self.folder), ROWS_PER_EPOCH)
        return {TOPICS: next_ends(self.exchange, list(listed(self.folder)), start[TOPICS], most)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        del start, end
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        del partition
        yield pa.RecordBatch.from_pydict({"rows": pa.array([], pa.int64())})


class ChainClockSource(DataSource):
    """The data source ``headgate_chains``."""

    @classmethod
    def name(cls) -> str:
        return "headgate_chains"

    def schema(self) -> StructType:
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return _Clock(self.options)
