"""Micro-batches of records: which offsets of which partitions each has. Nothing here knows Kafka's client, or Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from headgate.runtime.io.position_source import PART_ROWS

__all__ = ["Positions", "Range", "fewer", "parts_of", "ranges_between", "waiting"]

Positions = Mapping[str, Mapping[str, int]]
"""By topic and partition (a text, as JSON has it): the next offset."""


class Range(NamedTuple):
    """The records of a partition between two offsets; not all offsets have one."""

    topic: str
    partition: int
    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first


def ranges_between(start: Positions, end: Positions) -> list[Range]:
    """What is between two positions, in the order of topics and partitions; partitions that are new begin at 0."""
    spans = [
        Range(topic, int(partition), start.get(topic, {}).get(partition, 0), last)
        for topic, partitions in end.items()
        for partition, last in partitions.items()
    ]
    return sorted(span for span in spans if span.size > 0)


def waiting(start: Positions, end: Positions) -> int:
    """How many offsets are between two positions.

    >>> waiting({"a": {"0": 5}}, {"a": {"0": 7, "1": 4}})
    6
    """
    return sum(span.size for span in ranges_between(start, end))


def fewer(start: Positions, end: Positions, rows: int, turn: int = 0) -> dict[str, dict[str, int]]:
    """The position that is at most so many rows after another one: of each partition its share of what waits.

    Shares are rounded up; ``turn`` changes which partitions come short of that.

    >>> fewer({}, {"a": {"0": 100, "1": 300}}, 40)
    {'a': {'0': 10, '1': 30}}
    >>> [fewer({}, {"a": {"0": 9, "1": 9}}, 1, turn)["a"] for turn in (0, 1)]
    [{'0': 1}, {'1': 1}]
    """
    spans = ranges_between(start, end)
    total, room = sum(span.size for span in spans), rows
    made = {topic: dict(partitions) for topic, partitions in start.items()}
    first = turn % max(len(spans), 1)
    for span in (*spans[first:], *spans[:first]):
        taken = min(span.size, room, math.ceil(span.size * rows / total))
        room -= taken
        if taken:
            made.setdefault(span.topic, {})[str(span.partition)] = span.first + taken
    return made


def parts_of(spans: Sequence[Range], most: int, least_rows: int = PART_ROWS) -> list[tuple[Range, ...]]:
    """Ranges as so many parts of about as many rows each, in order: what one part has comes before what the next has.

    >>> spans = [Range("a", 0, 0, 50_000), Range("a", 1, 0, 10_000)]
    >>> [[tuple(span)[1:] for span in part] for part in parts_of(spans, 2)]
    [[(0, 0, 30000)], [(0, 30000, 50000), (1, 0, 10000)]]
    """
    target = max(math.ceil(sum(span.size for span in spans) / max(most, 1)), least_rows)
    parts: list[list[Range]] = []
    room = 0
    for piece in _pieces(spans, target):
        if piece.size > room:
            parts.append([])
            room = target
        parts[-1].append(piece)
        room -= piece.size
    return [tuple(part) for part in parts]


def _pieces(spans: Sequence[Range], target: int) -> Iterator[Range]:
    """Ranges, cut where a part is full."""
    room = target
    for span in spans:
        first = span.first
        while first < span.last:
            last = min(span.last, first + room)
            yield span._replace(first=first, last=last)
            room -= last - first
            room = room or target
            first = last
