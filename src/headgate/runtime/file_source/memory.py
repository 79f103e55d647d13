"""What has been read, in bounded space. Nothing here knows Spark, or where files are.

Names of files are remembered as hashes of 64 bits, the last :data:`MOST` of them. Those before are known to have been
read by their times: when all files of a listing had been read, every file that had arrived by then; and while a backlog
is worked off in order, every file that had arrived by the listing and comes before the last one taken from it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from headgate.runtime.file_source.listing import SourceFile

__all__ = ["Mark", "ReadFilesMemory"]

MOST = 400_000
"""Files that are remembered by name: 3.2 MB."""

GROUPS = 256
"""Files are forgotten in groups; there are at most so many, or twice as many for a moment."""

GRACE_NS = 60_000_000_000
"""How late a file may become visible after the time that its file system gives it: clocks differ, and so do caches."""

Key = tuple[int, str]
LAST: Key = (2**63, "")


@dataclass(frozen=True, slots=True)
class Mark:
    """All files have been read that had arrived by a time and come, in order, up to a key."""

    arrived_ns: int = 0
    key: Key = (0, "")

    def covers(self, other: Mark) -> bool:
        return other.arrived_ns <= self.arrived_ns and other.key <= self.key

    def has(self, file: SourceFile) -> bool:
        return file.arrived_ns <= self.arrived_ns and (file.modified_ns, file.path) <= self.key


@dataclass(slots=True)
class ReadFilesMemory:
    """The files that have been read."""

    most: int = MOST
    caught_up: Mark = field(default_factory=Mark)
    """As of the last time that nothing was left unread."""

    backlog: Mark = field(default_factory=Mark)
    """Of a backlog that is being worked off since then."""

    groups: list[tuple[int, Mark]] = field(default_factory=list)
    """How many files came together, and up to when and where they were read; oldest first."""

    _order: array[int] = field(default_factory=lambda: array("Q"))
    _names: set[int] = field(default_factory=set)
    _forgets: bool = False

    def is_remembered(self, path: str) -> bool:
        return _hash(path) in self._names

    def others_than(self, paths: Iterable[str]) -> int:
        """How many of the remembered files are not among some."""
        return len(self._names.difference(map(_hash, paths)))

    def is_read(self, file: SourceFile) -> bool:
        """Whether a file has been read, though its name may be forgotten."""
        return self._forgets and (self.caught_up.has(file) or self.backlog.has(file))

    def add(self, paths: Sequence[str], listed_ns: int, last: Key, all_read: bool) -> None:
        """Files that were read, the first ones of a listing, and whether they were all that it had."""
        self._add(paths, Mark(listed_ns, last))
        now = Mark(listed_ns - GRACE_NS, LAST if all_read else last)
        if all_read:
            self.caught_up, self.backlog = now, Mark()
        elif now.covers(self.backlog):
            self.backlog = now
        self._forget_oldest()

    def _add(self, paths: Sequence[str], mark: Mark) -> None:
        new = [one for one in map(_hash, paths) if one not in self._names]
        self._order.extend(new)
        self._names.update(new)
        if len(self.groups) > 2 * GROUPS:
            self.groups = [_joined(self.groups[at : at + 2]) for at in range(0, len(self.groups), 2)]
        self.groups.append((len(new), mark))

    def _forget_oldest(self) -> None:
        gone = 0
        while self.groups and len(self._order) - gone > self.most:
            count, mark = self.groups[0]
            if not self.caught_up.covers(mark) and not self.backlog.covers(mark):
                break
            gone += count
            del self.groups[0]
        if gone:
            self._forgets = True
            self._names.difference_update(self._order[:gone])
            del self._order[:gone]

    def removed(self, paths: Sequence[str]) -> None:
        """Files that are no longer there: one that comes under such a name is another."""
        gone = {_hash(path) for path in paths} & self._names
        if gone:
            kept, at = array("Q"), 0
            groups = []
            for count, mark in self.groups:
                some = [one for one in self._order[at : at + count] if one not in gone]
                at += count
                kept.extend(some)
                groups += [(len(some), mark)] if some else []
            self._order, self.groups = kept, groups
            self._names -= gone

    def to_bytes(self) -> bytes:
        """All of it: a line of JSON, then the hashes."""
        marks = [[each.arrived_ns, list(each.key)] for each in (self.caught_up, self.backlog)]
        groups = [[count, mark.arrived_ns, list(mark.key)] for count, mark in self.groups]
        about = {"marks": marks, "groups": groups, "forgets": self._forgets}
        return json.dumps(about).encode() + b"\n" + self._order.tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes, most: int = MOST) -> ReadFilesMemory:
        line, _, hashes = stored.partition(b"\n")
        about = json.loads(line)
        caught_up, backlog = (Mark(arrived, (key[0], key[1])) for arrived, key in about["marks"])
        groups = [(count, Mark(arrived, (key[0], key[1]))) for count, arrived, key in about["groups"]]
        order = array("Q", hashes)
        return cls(most, caught_up, backlog, groups, order, set(order), about["forgets"])


def _joined(groups: Sequence[tuple[int, Mark]]) -> tuple[int, Mark]:
    marks = [mark for _, mark in groups]
    return sum(count for count, _ in groups), Mark(max(m.arrived_ns for m in marks), max(m.key for m in marks))


def _hash(path: str) -> int:
    return int.from_bytes(blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")
