"""The stream of a fragment, up to where its epochs begin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.compile.plan import CompiledPlan, Feed, Fragment, Kind
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.exchange.files import FileExchange, topic_columns
from headgate.runtime.keyed.host import host, places_of

__all__ = ["TopicStream"]

ROWS_PER_BATCH = 500_000
"""The most rows that a fragment reads from a topic at once, rounded up to whole batches of the topic."""


@dataclass(slots=True)
class TopicStream:
    """The stream of a fragment that reads topics."""

    spark: SparkSession
    exchange: FileExchange
    schemas: Schemas
    folder: Path
    """The fragment's."""

    hosts: Path
    """Where the plans of keyed hosts are."""

    start: Mapping[str, int]
    """After which batch of each topic it begins to read."""

    groups: int
    """How many groups the keys of a keyed host are hashed into."""

    wait_s: float
    """How long the reader waits for rows before it gives Spark an empty batch."""

    topics: list[str] = field(default_factory=list)
    """The topics it reads, in the order in which Spark stores their offsets."""

    def build(self, plan: CompiledPlan, fragment: Fragment) -> DataFrame:
        """The stream under a plan; raises before anything has been started."""
        self.topics.clear()
        feed = fragment.feeds[0]
        parts = [self._topic(plan, fragment, topic, feed) for topic in fragment.reads]
        rows = reduce(DataFrame.unionByName, parts)
        if fragment.kind is Kind.KEYED:
            columns = topic_columns(self.schemas.of(plan, plan.tasks[feed.source]))
            return host(rows, columns, fragment.key, fragment.id, self.hosts)
        return rows

    def _topic(self, plan: CompiledPlan, fragment: Fragment, topic: str, feed: Feed) -> DataFrame:
        columns = topic_columns(self.schemas.of(plan, plan.tasks[feed.source]))
        self.topics.append(topic)
        reader = self.spark.readStream.format("headgate_exchange").option("columns", columns.json())
        if fragment.kind is Kind.KEYED:
            packing = {"key": places_of(columns.names, fragment.key), "groups": self.groups}
            reader = reader.option("packing", json.dumps(packing))
        reader = reader.option("folder", str(self.exchange.folder(topic)))
        reader = reader.option("rank", len(self.topics)).option("limits", str(self.folder))
        if len(self.topics) == 1:
            started = {str(self.exchange.folder(name)): self.start[name] for name in fragment.reads}
            reader = reader.option("topics", json.dumps(started)).option("wait_s", self.wait_s)
        return reader.option("start", self.start[topic]).option("rows_per_batch", ROWS_PER_BATCH).load()
