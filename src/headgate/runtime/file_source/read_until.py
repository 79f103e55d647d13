"""What a source had read up to one of its batches: the past of a dataflow that joins it there.

It is worked out once, between two epochs of the source, and kept in the folder of the source that reads the past.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from headgate.runtime.file_source.batches import BatchPlan, Span
from headgate.runtime.file_source.listing import SourceFile
from headgate.runtime.file_source.memory import LAST, ReadFilesMemory
from headgate.store.files import write_bytes
from headgate.tasks.source_folder import UNTIL

__all__ = ["ReadUntil", "clear_but_bound", "plan_file", "read_until", "taken_up"]

TRIES = 20
"""How often memory and plans are read anew that the source is replacing."""

FILE = "until"


@dataclass(frozen=True, slots=True)
class ReadUntil:
    """The files that had been read, and the one of which only a beginning had been."""

    memory: ReadFilesMemory
    cut: Span | None = None

    def part_of(self, file: SourceFile) -> SourceFile | None:
        """What had been read of a file."""
        if self.memory.is_remembered(file.path) or self.memory.is_read(file):
            return file
        if self.cut is not None and file.path == self.cut.path and self.cut.first > 0:
            return replace(file, size=min(self.cut.first, file.size))
        return None

    def store(self, home: Path) -> None:
        """Keep it: from here on it is settled where the past ends."""
        home.mkdir(exist_ok=True)
        write_bytes(home / FILE, json.dumps(self.cut).encode() + b"\n" + self.memory.to_bytes(), "catch-up-bound")

    @classmethod
    def stored(cls, home: Path) -> ReadUntil | None:
        try:
            cut, _, rest = (home / FILE).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        span = json.loads(cut)
        return cls(ReadFilesMemory.from_bytes(rest), None if span is None else Span(*span))


def clear_but_bound(folder: Path) -> None:
    """Empty a fragment's folder, but for where the past ends: others may have gone on from there already."""
    home = folder / "files"
    settled = {folder / UNTIL, home, home / FILE}
    for path in (*home.glob("*"), *folder.glob("*")):
        if path.is_dir() and path not in settled:
            shutil.rmtree(path)
        elif path not in settled:
            path.unlink()


def plan_file(home: Path, number: int) -> Path:
    """Where a batch is planned."""
    return home / f"plan-{number}.json"


def taken_up(memory: ReadFilesMemory, plan: BatchPlan) -> None:
    """Remember what a batch has read."""
    read = plan.files
    if read:
        end = (read[-1].modified_ns, read[-1].path) if plan.unread_bytes else LAST
        memory.add([span.path for span in read], plan.listed_ns, end, all_read=not plan.unread_bytes)


def read_until(home: Path, number: int) -> ReadUntil:
    """What a source has read up to a batch that it may just have taken up itself; ``home`` is its folder of plans."""
    for _ in range(TRIES):
        try:
            return _read_until(home, number)
        except FileNotFoundError:  # its memory is newer by now, and has taken up that plan
            continue
    raise RuntimeError(f"batch {number} of {home} is not there")


def _read_until(home: Path, number: int) -> ReadUntil:
    memory, last = ReadFilesMemory(), BatchPlan(0, 0, 0)
    if (home / "memory").exists():
        line, _, rest = (home / "memory").read_bytes().partition(b"\n")
        last, memory = BatchPlan.from_json(line.decode()), ReadFilesMemory.from_bytes(rest)
    while last.number < number:
        last = BatchPlan.from_json(plan_file(home, last.number + 1).read_text(encoding="utf-8"))
        taken_up(memory, last)
    return ReadUntil(memory, last.rest)
