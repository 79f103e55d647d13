"""Which files there are at a path: a folder, a pattern, or one file; local, or behind any URL that fsspec knows."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headgate.tasks.file_paths import file_system, is_url
from headgate.tasks.source_folder import Due

__all__ = ["FileListing", "SourceFile", "listing_of", "rows_since"]

IsRead = Callable[[str], bool]
"""Whether the file of a path is remembered as read; its times are not asked for then."""


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """A file. Files are read in the order of modification, then of path."""

    modified_ns: int
    path: str
    size: int = field(compare=False)
    arrived_ns: int = field(compare=False)
    """When it came to be where it is, by its file system: moving a file leaves its modification as it was."""


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files that are not remembered, and when the listing began, by this machine's clock."""

    files: list[SourceFile]
    began_ns: int


def listing_of(path: str, is_read: IsRead) -> FileListing:
    """The files at a path, but for those that are remembered as read."""
    began_ns = time.time_ns()
    files = _remote(path, is_read) if is_url(path) else _local(path, is_read)
    return FileListing(sorted(files), began_ns)


def rows_since(due: Due) -> int:
    """How many rows have come to a folder since its source has looked, estimated from bytes."""
    listing = listing_of(due.path, lambda _: False)
    came = sum(file.size for file in listing.files if file.arrived_ns > due.listed_ns)
    return round(came / max(due.bytes_per_row, 1e-9))


def _is_hidden(name: str) -> bool:
    """Whether a file is not there for readers: as Spark decides it."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _local(path: str, is_read: IsRead) -> Iterator[SourceFile]:
    if not glob.has_magic(path) or os.path.exists(path):  # noqa: PTH110  (a name may look like a pattern)
        if os.path.isdir(path):  # noqa: PTH112
            yield from _inside(path, is_read)
        elif not is_read(path):
            yield from _described(path)
        return
    parent, name = os.path.split(path)
    if "**" in path:
        matches: list[str] = glob.glob(path, recursive=True)  # noqa: PTH207
        yield from (f for match in matches if os.path.isfile(match) and not is_read(match) for f in _described(match))  # noqa: PTH113
        return
    for folder in glob.glob(parent) if glob.has_magic(parent) else [parent]:  # noqa: PTH207
        if os.path.isdir(folder):  # noqa: PTH112
            yield from _inside(folder, is_read, fnmatch.translate(name))


def _inside(folder: str, is_read: IsRead, pattern: str | None = None) -> Iterator[SourceFile]:
    matches = re.compile(pattern).match if pattern is not None else None
    with os.scandir(folder) as entries:
        for entry in entries:
            if _is_hidden(entry.name) or (matches is not None and not matches(entry.name)):
                continue
            if entry.is_dir():
                yield from _inside(entry.path, is_read)
            elif not is_read(entry.path):
                yield from _described(entry.path)


def _described(path: str) -> Iterator[SourceFile]:
    """A file as it is now; nothing if it is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return
    arrived_ns = max(status.st_mtime_ns, status.st_ctime_ns)
    yield SourceFile(status.st_mtime_ns, path, status.st_size, arrived_ns)


def _remote(path: str, is_read: IsRead) -> Iterator[SourceFile]:
    system, root = file_system(path)
    if glob.has_magic(root):
        matches = system.glob(root, detail=True)
    else:
        matches = {info["name"]: info for info in ([system.info(root)] if system.exists(root) else [])}
    for info in matches.values():
        inside = [info] if info["type"] != "directory" else system.find(info["name"], detail=True).values()
        for file in inside:
            url = system.unstrip_protocol(file["name"])
            if file["type"] == "file" and not _is_hidden(url.rpartition("/")[2]) and not is_read(url):
                modified_ns = _modified_ns(system, file)
                yield SourceFile(modified_ns, url, int(file["size"]), modified_ns)


def _modified_ns(system: Any, info: dict[str, Any]) -> int:
    """When a file was modified, as its file system says: each has a name of its own for that."""
    names = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
    value = next((info[name] for name in names if info.get(name) is not None), None)
    if value is None:
        value = system.modified(info["name"])
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return int((value.timestamp() if isinstance(value, datetime) else float(value)) * 1e6) * 1_000
