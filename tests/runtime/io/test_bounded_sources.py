"""Sources that read what another reader has read, and no more: their planning, without Spark and brokers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from headgate.runtime.kafka_source.driver import KafkaBatches, Offset
from headgate.tasks.kafka.read import ReadKafka
from headgate.tasks.replay import ReplayReader
from headgate.tasks.source_folder import UNTIL, Extent, due_in, ended_after, set_extent, set_limit, write_note

OPTIONS = ReadKafka.model_validate({"servers": "localhost:1", "topics": ["t"]})


@dataclass(slots=True)
class Topic(KafkaBatches):
    """A source whose broker is a mapping: what it answers for each start."""

    answers: Mapping[Any, dict[str, dict[str, int]]] | None = None

    def _asked(self, start: str | int) -> dict[str, dict[str, int]]:
        assert self.answers is not None
        return self.answers[start]


def all_of(batches: KafkaBatches) -> list[Offset]:
    """The offsets of all batches, from the first on."""
    offsets = [batches.first()]
    while (after := batches.next(offsets[-1])) != offsets[-1]:
        offsets.append(after)
    return offsets


def test_a_bounded_topic_ends_where_the_other_reader_stood(tmp_path: Path) -> None:
    set_extent(tmp_path, Extent(bounded=True))
    topic = Topic(OPTIONS, tmp_path, answers={"earliest": {"t": {"0": 5, "1": 0}}, "now": {"t": {"0": 99, "1": 99}}})
    assert all_of(topic) == [{"rows": 0, "batch": 0, "at": {"t": {"0": 5, "1": 0}}}], "it is not known yet"
    assert ended_after(tmp_path) is None
    write_note(tmp_path, UNTIL, {"rows": 7, "batch": 3, "at": {"t": {"0": 30, "1": 10, "2": 4}}})
    set_limit(tmp_path, 15)
    offsets = all_of(topic)
    assert offsets[-1]["at"] == {"t": {"0": 30, "1": 10, "2": 4}}, "a partition that came later is read from its first"
    assert offsets[-1]["rows"] == 25 + 10 + 4
    assert len(offsets) == 4, "it heeds limits"
    assert ended_after(tmp_path) == offsets[-1]["batch"] == 3
    due = due_in(tmp_path)
    assert due is not None
    assert (due.rows, due.throttled) == (39, 0)


def test_a_bounded_topic_of_which_all_is_gone_ends_at_once(tmp_path: Path) -> None:
    set_extent(tmp_path, Extent(bounded=True))
    write_note(tmp_path, UNTIL, {"rows": 7, "at": {"t": {"0": 30}}})
    topic = Topic(OPTIONS, tmp_path, answers={"earliest": {"t": {"0": 40}}})
    assert len(all_of(topic)) == 1
    assert ended_after(tmp_path) == 0


@pytest.mark.parametrize(
    ("extent", "asked"),
    [
        (Extent(), "now"),
        (Extent(earliest=True), "earliest"),
        (Extent(bounded=True), "earliest"),
        (Extent(modified_since_ns=7_000_000), 7),
        (Extent(bounded=True, modified_since_ns=7_000_000), 7),
    ],
)
def test_a_topic_begins_where_the_engine_says(tmp_path: Path, extent: Extent, asked: str | int) -> None:
    set_extent(tmp_path, extent)
    topic = Topic(OPTIONS, tmp_path, answers={asked: {"t": {"0": 1}}})
    assert topic.first()["at"] == {"t": {"0": 1}}
    assert Topic(OPTIONS, tmp_path, answers={}).first() == topic.first(), "it begins once"


def test_a_paused_past_rests(tmp_path: Path) -> None:
    set_extent(tmp_path, Extent(bounded=True, paused=True))
    write_note(tmp_path, UNTIL, {"rows": 7, "at": {"t": {"0": 30}}})
    assert len(all_of(Topic(OPTIONS, tmp_path, answers={"earliest": {"t": {"0": 0}}}))) == 1
    assert ended_after(tmp_path) is None


def test_a_bounded_replay_hands_over_what_was_played_at_once(tmp_path: Path) -> None:
    recording = tmp_path / "recording.json"
    recording.write_text("".join(json.dumps({"id": n}) + "\n" for n in range(10)), encoding="utf-8")
    task = json.dumps({"path": str(recording), "columns": "id long", "rate_per_s": 0.001, "repeat": True})
    set_extent(tmp_path, Extent(bounded=True))
    reader = ReplayReader(task, StructType().add("id", "long").json(), str(tmp_path))
    offset = reader.initialOffset()
    assert reader.latestOffset(offset, None) == offset, "it is not known yet how far the other one was"
    write_note(tmp_path, UNTIL, {"rows": 23})
    set_limit(tmp_path, 9)
    rows = []
    while (after := reader.latestOffset(offset, None)) != offset:
        for part in reader.partitions(offset, after):
            rows += [row for batch in reader.read(part) for row in batch.column(0).to_pylist()]
        offset = after
    assert rows == [n % 10 for n in range(23)]
    assert offset == {"rows": 23, "batch": 3}
    assert ended_after(tmp_path) == 3
