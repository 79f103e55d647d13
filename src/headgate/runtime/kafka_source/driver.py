"""The driver's part of the Kafka source: it asks brokers what there is, and plans batches.

A position is all that a batch needs. Spark stores it as the batch's offset before the batch is run, and the journal has
it with the commit; so nothing else is kept but where the first batch began.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.errors import InputError
from headgate.model.start import Start, StartKind
from headgate.runtime.io.broken_records import forget_broken
from headgate.runtime.kafka_source.ranges import Positions, Range, fewer, ranges_between, waiting
from headgate.store.files import write_text
from headgate.tasks.kafka.connection import ANSWER_S, kafka, kafka_admin, settings_of, unreachable
from headgate.tasks.kafka.read import BEGUN, PATTERN, ReadKafka
from headgate.tasks.row_errors import SourceAwayError, UnreadableSourceError
from headgate.tasks.source_folder import Due, extent_of, limit_of, note_end, until_of, write_due, write_note

__all__ = ["KafkaBatches", "Offset", "between"]

Offset = dict[str, Any]
"""``rows`` and ``batch`` as every source of ours has them, and the position under ``at``."""

METADATA_S = 5.0
"""How soon new topics and partitions are seen."""

UNLIMITED = 2**62


@dataclass(slots=True)
class KafkaBatches:
    """The batches of one source. ``folder`` is its fragment's."""

    options: ReadKafka
    folder: Path
    _client: Any = None
    _topics: dict[str, int] = field(default_factory=dict)
    """The number of partitions of each topic that is read, as of the last look."""

    _looked: float = -METADATA_S

    def first(self) -> Offset:
        """Where the first batch begins; the same whenever it is asked for."""
        return {"rows": 0, "batch": 0, "at": self._begun()}

    def next(self, start: Offset) -> Offset:
        """What comes after the batch that Spark has committed last; the same offset if there is nothing.

        While no broker answers there is nothing, and a note says so.
        """
        forget_broken(self.folder, start["batch"])
        extent = extent_of(self.folder)
        until = until_of(self.folder) if extent.bounded else None
        if extent.paused or (extent.bounded and until is None):
            return start
        try:
            end = self._ends() if until is None else until["at"]
        except kafka().KafkaException as error:
            write_note(self.folder, "waits.json", unreachable(self.options.servers, error.args[0]))
            return start
        write_note(self.folder, "waits.json", None)
        at: Positions = start["at"]
        if until is None:
            self._check(at, end)
        new = waiting(at, end)
        usual = UNLIMITED if self.options.rows_per_batch is None else self.options.rows_per_batch
        rows = min(limit_of(self.folder, UNLIMITED), usual)
        taken = fewer(at, end, rows, start["batch"]) if new > rows else {**at, **end}
        count = waiting(at, taken)
        total = start["rows"] + count
        write_due(self.folder, Due(time.time(), total + new - count, 0.0, new - count))
        if until is not None and not count:
            note_end(self.folder, start["batch"])
        return {"rows": total, "batch": start["batch"] + 1, "at": taken} if count else start

    def _begun(self) -> Positions:
        note = self.folder / BEGUN
        if note.exists():
            begun: Positions = json.loads(note.read_text(encoding="utf-8"))
            return begun
        try:
            begun = self._first_offsets()
        except kafka().KafkaException as error:
            raise SourceAwayError(unreachable(self.options.servers, error.args[0])) from None
        write_text(note, json.dumps(begun), "kafka-begun")
        return begun

    def _first_offsets(self) -> Positions:
        """Where the first batch begins: as the engine says, or else the task itself."""
        extent = extent_of(self.folder)
        if extent.modified_since_ns:
            return self._asked(extent.modified_since_ns // 1_000_000)
        if extent.earliest or extent.bounded:
            return self._asked("earliest")
        own = Start.parse(self.options.start or "now")
        if own.kind in (StartKind.TIME, StartKind.AGE):
            return self._asked(int(own.since_s(time.time()) * 1000))
        return self._asked(own.kind.value)

    def asked(self, since_ms: int | None = None) -> Positions:
        """The offsets of the first records that there are, or of the first of some time; raises if nobody answers."""
        try:
            return self._asked("earliest" if since_ms is None else since_ms)
        except kafka().KafkaException as error:
            raise InputError("KAFKA_UNREACHABLE", unreachable(self.options.servers, error.args[0])) from None

    def _check(self, at: Positions, end: Positions) -> None:
        for topic, partitions in at.items():
            for partition, offset in partitions.items():
                last = end.get(topic, {}).get(partition)
                if last is not None and last < offset:
                    message = (
                        f"partition {partition} of topic '{topic}' ends at offset {last}, and was read up to {offset}: "
                        "the topic was deleted and made again; withdraw the dataflow and submit it again"
                    )
                    raise UnreadableSourceError(message)

    # what brokers say

    def _ends(self) -> dict[str, dict[str, int]]:
        return self._asked("now")

    def _asked(self, start: str | int) -> dict[str, dict[str, int]]:
        """The offsets of a start: of the first record, of the next one, or of the first since some millisecond."""
        library, specs = kafka(), kafka_admin().OffsetSpec
        if isinstance(start, int):
            spec = specs.for_timestamp(start)
        else:
            spec = specs.earliest() if start == "earliest" else specs.latest()
        topics = self._read_topics()
        asked = {library.TopicPartition(topic, n): spec for topic, count in topics.items() for n in range(count)}
        if not asked:
            return {}
        committed = library.IsolationLevel.READ_COMMITTED
        answers = self._admin().list_offsets(asked, isolation_level=committed, request_timeout=ANSWER_S)
        offsets: dict[str, dict[str, int]] = {topic: {} for topic in topics}
        late = []
        for place, answer in answers.items():
            offset = answer.result().offset
            if offset < 0:
                late.append(place)  # no record is as new as that
            offsets[place.topic][str(place.partition)] = offset
        if late:
            ends = self._asked("now")
            for place in late:
                offsets[place.topic][str(place.partition)] = ends[place.topic][str(place.partition)]
        return offsets

    def _read_topics(self) -> Mapping[str, int]:
        """The topics that are read, and how many partitions each has."""
        if time.monotonic() - self._looked >= METADATA_S:
            listed = self._admin().list_topics(timeout=ANSWER_S).topics
            self._topics = {
                name: len(about.partitions)
                for name, about in listed.items()
                if about.error is None and _is_wanted(name, self.options.topics)
            }
            self._looked = time.monotonic()
        return self._topics

    def _admin(self) -> Any:
        if self._client is None:
            self._client = kafka_admin().AdminClient(settings_of(self.options))
        return self._client


def _is_wanted(topic: str, wanted: Sequence[str]) -> bool:
    return any(re.match(one, topic) if one.startswith(PATTERN) else one == topic for one in wanted)


def between(start: Offset, end: Offset) -> list[Range]:
    """What is to be read between two offsets."""
    return ranges_between(start["at"], end["at"])
