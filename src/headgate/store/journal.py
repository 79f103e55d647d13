"""The journal of a state directory: all that an engine must not forget, in one order.

A line is one append: its checksum, its position and its entries. An append is all or none, and durable when it returns;
appends that come while the disk is busy share the next write. Beside it, ``journal.mark`` holds the position that was
reached. A crash can leave a beginning of a line after that, which nobody was promised and which is cut off. A journal
that ends before its mark, or that has something unreadable in the middle, has been damaged and is refused.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from headgate.errors import InputError
from headgate.store.entries import Entry, decoded_entry, encoded_entry
from headgate.store.files import sync_folder

__all__ = ["Journal", "create_journal", "read_journal"]

E = TypeVar("E", bound=Entry)

HEADER = b'[["Journal","",1]]'
"""What stands in the first line, with the position that had been reached when the file was written."""


class _Line(NamedTuple):
    """A whole line, by where it is in the file."""

    begin: int
    end: int
    position: int
    entries: bytes
    """As JSON."""


class _Place(NamedTuple):
    """Where an entry is: first and last byte of its line, and its number there."""

    begin: int
    end: int
    number: int


@dataclass(slots=True)
class _Index:
    """Where the entries are that have not been replaced."""

    by_key: dict[tuple[str, str], _Place] = field(default_factory=dict)
    last: dict[str, _Place] = field(default_factory=dict)
    without_key: list[_Place] = field(default_factory=list)

    def add(self, begin: int, end: int, keys: Iterable[tuple[str, str]]) -> None:
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


@dataclass(slots=True)
class _Batch:
    """Appends that are written together."""

    lines: list[tuple[int, Sequence[Entry], bytes]] = field(default_factory=list)
    durable: bool = False
    is_done: bool = False
    error: OSError | None = None


class Journal:
    """A journal that is open for appending; a state directory's lock sees to it that there is one."""

    def __init__(self, path: Path) -> None:
        """Open the journal and cut off the beginning of a line that a crash has left."""
        self.path = path
        _new(path).unlink(missing_ok=True)
        content = _Content.of(path)
        self._file = os.open(path, os.O_RDWR)
        if content.end < content.size:
            os.ftruncate(self._file, content.end)
        self._mark = os.open(_mark(path), os.O_RDWR | os.O_CREAT, 0o644)
        self._lock = threading.Lock()
        """Held for a moment: what waits to be written, and what has been."""

        self._writing = threading.Lock()
        self._waiting = _Batch()
        self._position = self._reached = content.reached
        self._is_torn, self._is_durable = False, True
        self._index, self._end = content.index(), content.end
        os.fdatasync(self._file)
        self._set_mark()

    @property
    def position(self) -> int:
        """The position of the last append that was written."""
        return self._reached

    @property
    def size(self) -> int:
        """In bytes."""
        return self._end

    def append(self, *entries: Entry, durable: bool = True) -> int:
        """Append entries, all of them or none; they are durable when this returns. Returns their position.

        Without ``durable`` they outlive the process, and a power loss may take them. An ``OSError`` leaves nothing.
        """
        text = b"[%s]" % b",".join(map(encoded_entry, entries))
        with self._lock:
            batch = self._waiting
            self._position += 1
            position = self._position
            batch.lines.append((position, entries, _line(position, text)))
            batch.durable |= durable
        with self._writing:
            if not batch.is_done:
                self._write()
        if batch.error is not None:
            raise OSError(batch.error.errno, batch.error.strerror, str(self.path))
        return position

    def latest(self, kind: type[E], key: str = "") -> E | None:
        """The last entry of a kind with a key, or of all keys."""
        with self._lock:
            name, index = kind.__name__, self._index
            place = index.by_key.get((name, key)) if key else index.last.get(name)
            entry = None if place is None else self._entries(place.begin, place.end)[place.number]
        assert entry is None or isinstance(entry, kind)
        return entry

    def every(self, kind: type[E]) -> Iterator[E]:
        """The last entry of a kind with each of its keys."""
        keys = [key for name, key in list(self._index.by_key) if name == kind.__name__]
        return (entry for key in keys if (entry := self.latest(kind, key)) is not None)

    def read(self, kind: type[E], since: int = 0) -> Iterator[tuple[int, E]]:
        """The entries of a kind after a position, oldest first."""
        return read_journal(self.path, kind, since)

    def compact(self, keep: Callable[[Entry], bool]) -> None:
        """Write the journal anew, without entries that later ones of their keys replace or that need not stay.

        Positions stay as they are.
        """
        with self._writing, self._lock:
            kept: list[tuple[int, Sequence[Entry]]] = []
            for (begin, end), numbers in self._index.lines().items():
                line = self._entries(begin, end)
                position = int(os.pread(self._file, 40, begin).split(b" ")[1])
                kept.append((position, [one for n, one in enumerate(line) if n in numbers and keep(one)]))
            _write_new(self.path, self._reached, kept)
            os.close(self._file)
            self._file = os.open(self.path, os.O_RDWR)
            content = _Content.of(self.path)
            self._index, self._end = content.index(), content.end

    def close(self) -> None:
        """Make durable what is not yet, and close the files."""
        with self._writing:
            if not self._is_durable:
                os.fdatasync(self._file)
                self._set_mark()
            os.close(self._file)
            os.close(self._mark)

    def _write(self) -> None:
        """Write what waits."""
        with self._lock:
            batch, self._waiting = self._waiting, _Batch()
        text = b"".join(line for _, _, line in batch.lines)
        try:
            self._put(text, batch.durable)
        except OSError as error:
            batch.error = error
        else:
            with self._lock:
                for position, entries, line in batch.lines:
                    keys = [(type(entry).__name__, entry.key) for entry in entries]
                    self._index.add(self._end, self._end + len(line), keys)
                    self._end += len(line)
                    self._reached = position
            if batch.durable:
                self._set_mark()
        finally:
            batch.is_done = True

    def _put(self, text: bytes, durable: bool) -> None:
        try:
            if self._is_torn:
                os.ftruncate(self._file, self._end)
            self._is_torn = True
            written = 0
            while written < len(text):
                written += os.pwrite(self._file, text[written:], self._end + written)
            if durable:
                os.fdatasync(self._file)
            self._is_torn, self._is_durable = False, durable
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
                self._is_torn = False
            raise

    def _set_mark(self) -> None:
        # What was appended is durable with or without it, so an error here is nobody's.
        with suppress(OSError):
            os.pwrite(self._mark, b"%020d\n" % self._reached, 0)

    def _entries(self, begin: int, end: int) -> list[Entry]:
        line = os.pread(self._file, end - begin, begin)
        return _decoded(line[:-1].split(b" ", 2)[2])


def create_journal(path: Path, entries: Sequence[Entry] = ()) -> None:
    """Make a journal that holds some entries; one that is there is replaced in one step."""
    _mark(path).unlink(missing_ok=True)
    _write_new(path, 1, [(1, entries)])
    with _mark(path).open("wb") as mark:
        mark.write(b"%020d\n" % 0)
        mark.flush()
        os.fsync(mark.fileno())
    sync_folder(path.parent)


def read_journal(path: Path, kind: type[E], since: int = 0) -> Iterator[tuple[int, E]]:
    """The entries of a kind after a position, oldest first, also while an engine appends.

    Raises :class:`InputError` if the journal is damaged.
    """
    wanted = f'["{kind.__name__}",'.encode()
    for line in _Content.of(path).lines[1:]:
        if line.position > since and wanted in line.entries:
            for entry in _decoded(line.entries):
                if isinstance(entry, kind):
                    yield line.position, entry


@dataclass(frozen=True, slots=True)
class _Content:
    """What a journal holds: its whole lines, where they end, and how many bytes there are."""

    lines: list[_Line]
    end: int
    size: int

    @property
    def reached(self) -> int:
        """The last position, of which compaction may have left nothing but the number in the first line."""
        return max(self.lines[0].position, self.lines[-1].position)

    def index(self) -> _Index:
        """Where its entries are."""
        index = _Index()
        for line in self.lines[1:]:
            index.add(line.begin, line.end, [(kind, key) for kind, key, _ in json.loads(line.entries)])
        return index

    @classmethod
    def of(cls, path: Path) -> _Content:
        """Read a journal; raises :class:`InputError` if it is damaged."""
        try:
            marked = int((_mark(path).read_bytes() or b"x").strip())
        except FileNotFoundError:
            marked = 0
        except ValueError:
            raise _damaged(
                _mark(path), "does not hold a position", "remove this file if the journal is whole"
            ) from None
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise _damaged(path, "is not there") from None
        lines = list(_whole_lines(content))
        if not lines or lines[0].entries != HEADER:
            raise _damaged(path, "does not begin as a journal")
        whole = cls(lines, lines[-1].end, len(content))
        if whole.reached < marked:
            raise _damaged(path, f"is readable up to byte {whole.end:,} only and has lost entries after it")
        if any(_parsed(line) is not None for line in content[whole.end :].split(b"\n")[1:]):
            raise _damaged(path, f"is unreadable at byte {whole.end:,}")
        return whole


def _damaged(path: Path, reason: str, remedy: str = "") -> InputError:
    remedy = remedy or "restore the state directory from a copy, or give another one with --state"
    return InputError("STATE_DAMAGED", f"{path} {reason}; {remedy}")


def _whole_lines(content: bytes) -> Iterator[_Line]:
    """The lines up to the first that is not whole."""
    begin = 0
    while (end := content.find(b"\n", begin) + 1) > 0:
        parsed = _parsed(content[begin : end - 1])
        if parsed is None:
            return
        yield _Line(begin, end, *parsed)
        begin = end


def _parsed(line: bytes) -> tuple[int, bytes] | None:
    """Position and entries of a line; nothing if it is damaged."""
    checksum, _, rest = line.partition(b" ")
    if checksum != b"%08x" % crc32(rest):
        return None
    position, _, text = rest.partition(b" ")
    return int(position), text


def _line(position: int, text: bytes) -> bytes:
    rest = b"%d %s" % (position, text)
    return b"%08x %s\n" % (crc32(rest), rest)


def _decoded(text: bytes) -> list[Entry]:
    listed: list[tuple[str, str, Any]] = json.loads(text)
    return [decoded_entry(kind, value) for kind, _, value in listed]


def _write_new(path: Path, reached: int, lines: Sequence[tuple[int, Sequence[Entry]]]) -> None:
    with _new(path).open("wb") as file:
        file.write(_line(reached, HEADER))
        for position, entries in lines:
            if entries:
                file.write(_line(position, b"[%s]" % b",".join(map(encoded_entry, entries))))
        file.flush()
        os.fsync(file.fileno())
    _new(path).replace(path)
    sync_folder(path.parent)


def _new(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _mark(path: Path) -> Path:
    return path.with_name(f"{path.name}.mark")
