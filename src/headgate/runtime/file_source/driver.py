"""The driver's part of the file source: it lists files, plans batches and remembers what has been read."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from headgate.runtime.file_source.batches import BatchLimits, BatchPlan, Span, next_plan
from headgate.runtime.file_source.listing import FileListing, SourceFile, listing_of
from headgate.runtime.file_source.memory import ReadFilesMemory
from headgate.runtime.file_source.read_until import ReadUntil, plan_file, taken_up
from headgate.runtime.file_source.spark_log import read_before
from headgate.runtime.io.broken_records import forget_broken
from headgate.store.files import write_bytes, write_text
from headgate.tasks.file_paths import away, file_system, is_url
from headgate.tasks.formats.files import bytes_per_row
from headgate.tasks.source_folder import Due, Extent, extent_of, limit_of, note_end, read_note, write_due, write_note
from headgate.tasks.sources import ReadFiles

__all__ = ["FileBatches"]

MOST_PLANS, MOST_PLAN_BYTES = 64, 1_000_000
"""So many plans are kept, and so many bytes of them, before the memory that has taken them up is written."""

UNLIMITED = 2**62
QUICK_NS = 50_000_000
"""Where a listing takes longer, others do not look for what has come since."""

Offset = dict[str, int]


@dataclass(slots=True)
class FileBatches:
    """The batches of one source. ``folder`` is its fragment's."""

    options: ReadFiles
    folder: Path
    list_files: Callable[[str, Callable[[str], bool]], FileListing] = listing_of
    memory: ReadFilesMemory = field(default_factory=ReadFilesMemory)
    last: BatchPlan = field(default_factory=lambda: BatchPlan(0, 0, 0))
    """The last batch that has been read."""

    _loaded: bool = False
    _stored: int = 0
    """The last batch that is in the memory's file."""

    _plan_bytes: int = 0
    """Of the plans since then."""

    _bytes_per_row: float = 100.0
    _extent: Extent = field(default_factory=Extent)
    _until: ReadUntil | None = None

    @property
    def home(self) -> Path:
        """Where plans, memory and broken lines are."""
        return self.folder / "files"

    def plan(self, number: int) -> BatchPlan:
        """A batch that was planned and that Spark may ask for."""
        return BatchPlan.from_json(self._file(number).read_text(encoding="utf-8"))

    def is_cleared(self, number: int) -> bool:
        """Whether the files of a batch have been moved or deleted."""
        return int(read_note(self.home, "cleared.json") or 0) >= number

    def next(self, start: Offset) -> Offset:
        """Plan what comes after the batch that Spark has committed last; the same offset if there is nothing."""
        self._pass(start)
        if not self._may_read():
            return start
        rest = None if self.last.rest is None else self.last.rest.path
        listing = self._listing(rest)
        if listing is None:
            return start
        wanted = (self._part(file) for file in listing.files if not self.memory.is_read(file))
        files = [file for file in wanted if file is not None]
        is_quick = time.time_ns() - listing.began_ns < QUICK_NS
        listing = replace(listing, files=files)
        waiting = rest if rest is not None else files[0].path if files else None
        if waiting is not None:
            self._bytes_per_row = bytes_per_row(waiting, self.options.format) or self._bytes_per_row
        plan = next_plan(self.last, listing, self.options.format, self._limits(), self._bytes_per_row)
        unread_rows = round(plan.unread_bytes / self._bytes_per_row)
        is_whole = self._until is None and not is_url(self.options.path)
        place = self.options.path if is_quick and is_whole else ""
        known = plan.rows + unread_rows, 0.0, unread_rows, plan.unread_bytes
        due = Due(time.time(), *known, place, listing.began_ns, self._bytes_per_row)
        write_due(self.folder, due)
        if not plan.spans:
            if self._until is not None:
                note_end(self.folder, self.last.number)
            return start
        self.home.mkdir(exist_ok=True)
        write_text(self._file(plan.number), plan.to_json(), "file-plan")
        return {"rows": plan.rows, "batch": plan.number}

    def _listing(self, rest: str | None) -> FileListing | None:
        """What there is but for what is remembered; ``None`` while storage behind a URL does not answer."""
        path = self.options.path
        try:
            listing = self.list_files(path, lambda path: path == rest or self.memory.is_remembered(path))
        except Exception as error:  # each kind of storage has its own
            if not is_url(path):
                raise
            write_note(self.folder, "waits.json", away(path, error))
            return None
        if is_url(path):
            write_note(self.folder, "waits.json", None)
        return listing

    def _may_read(self) -> bool:
        """Whether it is to read now; one that is bounded waits until it is known by what."""
        self._extent = extent_of(self.folder)
        if self._extent.bounded and self._until is None:
            self._until = ReadUntil.stored(self.home)
        return not self._extent.paused and self._extent.bounded == (self._until is not None)

    def _part(self, file: SourceFile) -> SourceFile | None:
        """What of a file it is to read."""
        extent = self._extent
        if file.modified_ns < extent.modified_since_ns or file.arrived_ns < extent.arrived_since_ns:
            return None
        return file if self._until is None else self._until.part_of(file)

    def _limits(self) -> BatchLimits:
        rows = limit_of(self.folder, UNLIMITED)
        most = BatchLimits()
        files = most.files if self.options.files_per_batch is None else self.options.files_per_batch
        return replace(most, files=files, bytes=min(most.bytes, max(int(rows * self._bytes_per_row), 1)))

    def _file(self, number: int) -> Path:
        return plan_file(self.home, number)

    # what has been read

    def _pass(self, start: Offset) -> None:
        """Take up the batches that Spark has committed."""
        if not self._loaded:
            self._load(start)
        while self.last.number < start.get("batch", 0):
            self._take_up(self.plan(self.last.number + 1))
        if self.last.number - self._stored >= MOST_PLANS or self._plan_bytes >= MOST_PLAN_BYTES:
            self._store()

    def _load(self, start: Offset) -> None:
        self._loaded = True
        with suppress(FileNotFoundError):
            stored = (self.home / "memory").read_bytes()
            line, _, rest = stored.partition(b"\n")
            self.last = BatchPlan.from_json(line.decode())
            self.memory = ReadFilesMemory.from_bytes(rest)
            self._stored = self.last.number
            return
        paths = read_before(self.folder / "checkpoint", start)
        if paths:
            self.memory.add(paths, 0, (0, ""), all_read=False)
            self.home.mkdir(exist_ok=True)
            self._store()

    def _take_up(self, plan: BatchPlan) -> None:
        read = plan.files
        self.last = plan
        self._plan_bytes += self._file(plan.number).stat().st_size
        if not read:
            return
        taken_up(self.memory, plan)
        if self.options.after != "keep":
            write_note(self.home, "cleared.json", plan.number)
            gone = [span.path for span in read if self._cleared(span)]
            self.memory.removed(gone)
        forget_broken(self.folder, plan.number)

    def _store(self) -> None:
        """Write the memory, and remove plans that it holds."""
        first = self._stored
        last = replace(self.last, spans=self.last.spans[-1:])
        write_bytes(self.home / "memory", last.to_json().encode() + b"\n" + self.memory.to_bytes(), "file-memory")
        self._stored, self._plan_bytes = self.last.number, 0
        for number in range(first, self._stored):
            self._file(number).unlink(missing_ok=True)

    def _cleared(self, span: Span) -> bool:
        """Move or delete a file that has been read, unless it is another by now; returns whether it is gone."""
        if is_url(span.path):
            return _cleared_remote(span, self.options)
        try:
            status = os.stat(span.path)  # noqa: PTH116
            if (status.st_mtime_ns, status.st_size) != (span.modified_ns, span.size):
                return False
            if self.options.after == "delete":
                Path(span.path).unlink()
            else:
                shutil.move(span.path, _free(Path(self.options.move_to or "") / Path(span.path).name))
        except FileNotFoundError:
            pass
        return True


def _free(path: Path) -> Path:
    """A path at which there is nothing yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while path.exists():
        path, number = path.with_name(f"{path.name.removesuffix(f'.{number - 1}')}.{number}"), number + 1
    return path


def _cleared_remote(span: Span, options: ReadFiles) -> bool:
    system, path = file_system(span.path)
    with suppress(FileNotFoundError):
        if int(system.info(path)["size"]) != span.size:
            return False
        if options.after == "delete":
            system.rm_file(path)
        else:
            system.mv(path, f"{(options.move_to or '').rstrip('/')}/{path.rpartition('/')[2]}")
    return True
