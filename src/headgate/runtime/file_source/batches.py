"""Micro-batches of files, planned one after the other: which bytes of which files each has, and in which order.

A plan is written to disk before Spark hears of it, so that a batch that is run again after a failure reads the same
files in the same order. What has been read follows from the plans of the batches that Spark has committed
(:mod:`headgate.runtime.file_source.memory`); it is written now and then, and plans that it has taken up are removed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.runtime.file_source.listing import FileListing, SourceFile
from headgate.tasks.formats.files import can_be_cut

__all__ = ["PART_BYTES", "BatchLimits", "BatchPlan", "Span", "next_plan", "parts_of"]

PART_BYTES = 4_000_000
"""With less than this for each of them, more partitions cost more than they gain."""


class Span(NamedTuple):
    """The lines of a file that begin between two places."""

    path: str
    modified_ns: int
    size: int
    """Of the file, when it was planned."""

    first: int
    last: int
    cuts: bool = True
    """Whether it may be cut between two lines."""

    @property
    def bytes(self) -> int:
        return self.last - self.first

    @property
    def is_last(self) -> bool:
        """Whether nothing of the file is left after it."""
        return self.last >= self.size

    @property
    def is_whole(self) -> bool:
        return self.first == 0 and self.is_last

    def cut(self, first: int, last: int) -> Span:
        return self._replace(first=first, last=last)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that a batch may have."""

    files: int = 10_000
    bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """A batch, the listing that it was taken from, and what that left unread."""

    number: int
    rows: int
    """Rows of all batches up to this one, as estimated when they were planned."""

    listed_ns: int
    unread_bytes: int = 0
    spans: tuple[Span, ...] = ()

    @property
    def rest(self) -> Span | None:
        """What is left of the last file, if it was cut."""
        last = self.spans[-1] if self.spans else None
        return None if last is None or last.is_last else last.cut(last.last, last.size)

    @property
    def files(self) -> list[Span]:
        """The files that have been read when the batch has been."""
        return [span for span in self.spans if span.is_last]

    def to_json(self) -> str:
        return json.dumps([self.number, self.rows, self.listed_ns, self.unread_bytes, self.spans])

    @classmethod
    def from_json(cls, text: str) -> BatchPlan:
        number, rows, listed_ns, unread_bytes, spans = json.loads(text)
        return cls(number, rows, listed_ns, unread_bytes, tuple(Span(*span) for span in spans))


def next_plan(
    before: BatchPlan, listing: FileListing, form: str, limits: BatchLimits, bytes_per_row: float
) -> BatchPlan:
    """The batch after another one: the first of what waits, as far as limits allow; without spans if nothing waits."""
    rest = [] if before.rest is None else [before.rest]
    waiting = [*rest, *(_whole(file, form) for file in listing.files)]
    taken: list[Span] = []
    room = limits.bytes
    for span in waiting[: limits.files]:
        if span.bytes > room and taken and not span.cuts:
            break
        here = span.cut(span.first, span.first + room) if span.bytes > room and span.cuts else span
        taken.append(here)
        room -= here.bytes
        if room <= 0:
            break
    read = sum(span.bytes for span in taken)
    rows = before.rows + math.ceil(read / bytes_per_row)
    unread = sum(span.bytes for span in waiting) - read
    return BatchPlan(before.number + 1, rows, listing.began_ns, unread, tuple(taken))


def _whole(file: SourceFile, form: str) -> Span:
    return Span(file.path, file.modified_ns, file.size, 0, file.size, can_be_cut(form, file.path))


def parts_of(spans: Sequence[Span], most: int, least_bytes: int = PART_BYTES) -> list[tuple[Span, ...]]:
    """Spans as so many runs of about as many bytes each, in order: what one run has comes before what the next has."""
    total = sum(span.bytes for span in spans)
    target = max(math.ceil(total / max(most, 1)), least_bytes)
    runs = _Runs(target)
    for span in spans:
        while span.cuts and span.bytes > runs.room:
            runs.add(span.cut(span.first, span.first + runs.room))
            span = span.cut(span.first + runs.before, span.last)
        runs.add(span)
    return [tuple(run) for run in runs.made if run]


@dataclass(slots=True)
class _Runs:
    target: int
    made: list[list[Span]] = field(default_factory=lambda: [[]])
    room: int = 0
    before: int = 0
    """The bytes of the last span that was added."""

    def __post_init__(self) -> None:
        self.room = self.target

    def add(self, span: Span) -> None:
        self.made[-1].append(span)
        self.room, self.before = self.room - span.bytes, span.bytes
        if self.room <= 0:
            self.made.append([])
            self.room = self.target
