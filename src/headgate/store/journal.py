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
from typing import TypeVar

from headgate.store.durable_steps import step
from headgate.store.entries import STEPS, Entry, decoded_entry
from headgate.store.files import sync_folder
from headgate.store.journal_lines import JournalContent, decoded_line, header, journal_line, keys_of, mark_of

__all__ = ["Journal", "create_journal", "read_journal"]

E = TypeVar("E", bound=Entry)


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
        content = JournalContent.of(path)
        self._file = os.open(path, os.O_RDWR)
        if content.end < content.size:
            os.ftruncate(self._file, content.end)
        self._mark = os.open(mark_of(path), os.O_RDWR | os.O_CREAT, 0o644)
        self._lock = threading.Lock()
        """Held for a moment: what waits to be written, and what has been."""

        self._writing = threading.Lock()
        self._waiting = _Batch()
        self._position = self._reached = content.reached
        self._is_torn, self._is_durable = False, True
        self._index, self._end = content.index(), content.end
        self._decoded: tuple[tuple[int, int], tuple[int, list[Entry]]] = (0, 0), (0, [])
        self._watchers: list[Callable[[int, Sequence[Entry]], None]] = []
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
        with self._lock:
            batch = self._waiting
            self._position += 1
            position = self._position
            batch.lines.append((position, entries, journal_line(position, entries)))
            batch.durable |= durable
        with self._writing:
            if not batch.is_done:
                self._write()
        if batch.error is not None:
            raise OSError(batch.error.errno, batch.error.strerror, str(self.path))
        return position

    def watch(self, watcher: Callable[[int, Sequence[Entry]], None]) -> None:
        """Call a function with the position and the entries of every append that comes, once it is in the journal.

        Appends wait for it, so it must return at once, and it must not append.
        """
        self._watchers.append(watcher)

    def latest(self, kind: type[E], key: str = "") -> E | None:
        """The last entry of a kind with a key, or of all keys."""
        with self._lock:
            name, index = kind.__name__, self._index
            place = index.by_key.get((name, key)) if key else index.last.get(name)
            entry = None if place is None else self._line(place.begin, place.end)[1][place.number]
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
                position, line = self._line(begin, end)
                kept.append((position, [one for n, one in enumerate(line) if n in numbers and keep(one)]))
            _write_new(self.path, self._reached, kept)
            os.close(self._file)
            self._file, self._decoded = os.open(self.path, os.O_RDWR), ((0, 0), (0, []))
            content = JournalContent.of(self.path)
            self._index, self._end = content.index(), content.end

    def close(self) -> None:
        """Make durable what is not yet, and close the files; closing again does nothing."""
        with self._writing:
            if self._file < 0:
                return
            if not self._is_durable:
                os.fdatasync(self._file)
                self._set_mark()
            os.close(self._file)
            os.close(self._mark)
            self._file = self._mark = -1  # what comes later fails, and does not go to another file

    def _write(self) -> None:
        """Write what waits."""
        with self._lock:
            batch, self._waiting = self._waiting, _Batch()
        text = b"".join(line for _, _, line in batch.lines)
        try:
            names = {STEPS[kind] for _, entries, _ in batch.lines for kind, _ in keys_of(entries)}
            with step(*names) as point:
                self._put(point.parts(text), batch.durable)
        except OSError as error:
            batch.error = error
        else:
            with self._lock:
                for position, entries, line in batch.lines:
                    self._index.add(self._end, self._end + len(line), keys_of(entries))
                    self._end += len(line)
                    self._reached = position
            if batch.durable:
                self._set_mark()
            for watcher in self._watchers:
                for position, entries, _ in batch.lines:
                    watcher(position, entries)
        finally:
            batch.is_done = True

    def _put(self, parts: Iterable[bytes], durable: bool) -> None:
        try:
            if self._is_torn:
                os.ftruncate(self._file, self._end)
            self._is_torn = True
            end = self._end
            for part in parts:
                while part:
                    written = os.pwrite(self._file, part, end)
                    end, part = end + written, part[written:]
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

    def _line(self, begin: int, end: int) -> tuple[int, list[Entry]]:
        """What a line holds; one after the other asks for the entries of a long one, so the last is kept."""
        known, line = self._decoded
        if known != (begin, end):
            line = decoded_line(os.pread(self._file, end - begin, begin))
            self._decoded = (begin, end), line
        return line


def create_journal(path: Path, entries: Sequence[Entry] = ()) -> None:
    """Make a journal that holds some entries; one that is there is replaced in one step."""
    mark_of(path).unlink(missing_ok=True)
    _write_new(path, 1, [(1, entries)])
    with mark_of(path).open("wb") as mark:
        mark.write(b"%020d\n" % 0)
        mark.flush()
        os.fsync(mark.fileno())
    sync_folder(path.parent)


def read_journal(path: Path, kind: type[E], since: int = 0) -> Iterator[tuple[int, E]]:
    """The entries of a kind after a position, oldest first, also while an engine appends.

    Raises :class:`InputError` if the journal is damaged.
    """
    wanted = f'["{kind.__name__}",'.encode()
    for line in JournalContent.of(path).lines[1:]:
        if line.position > since and wanted in line.keys:
            for (name, _), value in zip(json.loads(line.keys), json.loads(line.entries), strict=True):
                if name == kind.__name__:
                    entry = decoded_entry(name, value)
                    assert isinstance(entry, kind)
                    yield line.position, entry


def _write_new(path: Path, reached: int, lines: Sequence[tuple[int, Sequence[Entry]]]) -> None:
    kept = [journal_line(position, entries) for position, entries in lines if entries]
    with step("journal") as point:
        with _new(path).open("wb") as file:
            for part in point.parts(b"".join([header(reached), *kept])):
                file.write(part)
                file.flush()
            os.fsync(file.fileno())
        _new(path).replace(path)
        sync_folder(path.parent)


def _new(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")
