"""The lines of a journal, each an append: checksum, position, kinds and keys of its entries, and the entries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from headgate.store.entries import Entry, decoded_entry, encoded_entry
from headgate.store.files import damaged

__all__ = ["JournalContent", "JournalIndex", "decoded_line", "header", "journal_line", "keys_of", "mark_of"]

KIND, VERSION = b'[["Journal","1"]]', b"[null]"
"""Keys and entries of the first line."""


class _Line(NamedTuple):
    """A whole line, by where it is in the file."""

    begin: int
    end: int
    position: int
    keys: bytes
    entries: bytes


class _Place(NamedTuple):
    """Where an entry is: first and last byte of its line, and its number there."""

    begin: int
    end: int
    number: int


@dataclass(slots=True)
class JournalIndex:
    """Where the entries are that have not been replaced."""

    by_key: dict[tuple[str, str], _Place] = field(default_factory=dict)
    last: dict[str, _Place] = field(default_factory=dict)
    without_key: list[_Place] = field(default_factory=list)

    def add(self, begin: int, end: int, keys: Iterable[Sequence[str]]) -> None:
        """Note the entries of a line by their kinds and keys."""
        for number, (kind, key) in enumerate(keys):
            self.last[kind] = place = _Place(begin, end, number)
            if key:
                self.by_key[kind, key] = place
            else:
                self.without_key.append(place)

    def lines(self) -> dict[tuple[int, int], set[int]]:
        """The lines that hold these entries, in order, each with the numbers of the entries."""
        lines: dict[tuple[int, int], set[int]] = {}
        for begin, end, number in sorted({*self.by_key.values(), *self.without_key}):
            lines.setdefault((begin, end), set()).add(number)
        return lines


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What a journal holds: its whole lines, where they end, and how many bytes there are."""

    lines: list[_Line]
    end: int
    size: int

    @property
    def reached(self) -> int:
        """The last position, of which compaction may have left nothing but the number in the first line."""
        return max(self.lines[0].position, self.lines[-1].position)

    def index(self) -> JournalIndex:
        """Where its entries are."""
        index = JournalIndex()
        for line in self.lines[1:]:
            index.add(line.begin, line.end, json.loads(line.keys))
        return index

    @classmethod
    def of(cls, path: Path) -> JournalContent:
        """Read a journal; raises :class:`InputError` if it is damaged."""
        marked = _marked(path)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise damaged(path, "is not there") from None
        lines = list(_whole_lines(content))
        if not lines or lines[0].keys != KIND:
            raise damaged(path, "does not begin as a journal")
        whole = cls(lines, lines[-1].end, len(content))
        if whole.reached < marked:
            raise damaged(path, f"is readable up to byte {whole.end:,} only and has lost entries after it")
        if any(_parsed(line) is not None for line in content[whole.end :].split(b"\n")[1:]):
            raise damaged(path, f"is unreadable at byte {whole.end:,}")
        return whole


def _marked(path: Path) -> int:
    """The position that the mark holds."""
    try:
        return int(mark_of(path).read_bytes())
    except FileNotFoundError:
        return 0
    except ValueError:
        remedy = "remove this file if the journal is whole"
        raise damaged(mark_of(path), "does not hold a position", remedy) from None


def mark_of(path: Path) -> Path:
    """The file beside a journal that holds the position that was reached."""
    return path.with_name(f"{path.name}.mark")


def _whole_lines(content: bytes) -> Iterator[_Line]:
    """The lines up to the first that is not whole."""
    begin = 0
    while (end := content.find(b"\n", begin) + 1) > 0:
        parsed = _parsed(content[begin : end - 1])
        if parsed is None:
            return
        yield _Line(begin, end, *parsed)
        begin = end


def _parsed(line: bytes) -> tuple[int, bytes, bytes] | None:
    """Position, keys and entries of a line; nothing if it is damaged."""
    checksum, _, rest = line.partition(b"\t")
    if checksum != b"%08x" % crc32(rest):
        return None
    position, keys, entries = rest.split(b"\t")
    return int(position), keys, entries


def keys_of(entries: Iterable[Entry]) -> list[tuple[str, str]]:
    """Kind and key of entries."""
    return [(type(entry).__name__, entry.key) for entry in entries]


def journal_line(position: int, entries: Sequence[Entry]) -> bytes:
    """An append as a line."""
    keys = json.dumps(keys_of(entries)).encode()
    return _line(position, keys, b"[%s]" % b",".join(map(encoded_entry, entries)))


def header(reached: int) -> bytes:
    """The first line of a journal, with the position that had been reached when it was written."""
    return _line(reached, KIND, VERSION)


def _line(position: int, keys: bytes, entries: bytes) -> bytes:
    rest = b"%d\t%s\t%s" % (position, keys, entries)
    return b"%08x\t%s\n" % (crc32(rest), rest)


def decoded_line(line: bytes) -> tuple[int, list[Entry]]:
    """Position and entries of a line that is whole."""
    _, position, keys, entries = line.split(b"\t")
    pairs = zip(json.loads(keys), json.loads(entries), strict=True)
    return int(position), [decoded_entry(kind, value) for (kind, _), value in pairs]
