"""What Spark's own file source has read: dataflows that began with it go on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

__all__ = ["SPARK_OFFSET", "read_before", "read_between"]

SPARK_OFFSET = "logOffset"
"""The key of the offsets of Spark's file source."""


def read_before(checkpoint: Path, offset: Mapping[str, int]) -> list[str]:
    """The files that Spark's source had read up to an offset of its own; none if the offset is ours."""
    return read_between(checkpoint, -1, offset[SPARK_OFFSET]) if SPARK_OFFSET in offset else []


def read_between(checkpoint: Path, start: int, end: int) -> list[str]:
    """The files of the batches after one of Spark's log up to another, in the order of modification and name."""
    entries: dict[str, tuple[int, str]] = {}
    for file in (checkpoint / "sources" / "0").glob("[0-9]*"):
        for line in file.read_text(encoding="utf-8").splitlines()[1:]:  # the first is the version
            entry = json.loads(line)
            if start < int(entry["batchId"]) <= end:
                entries[_local(entry["path"])] = (int(entry["timestamp"]), _local(entry["path"]))
    return sorted(entries, key=lambda path: entries[path])


def _local(url: str) -> str:
    """A path as we write it, of one as Spark does."""
    parsed = urlparse(url)
    return unquote(parsed.path) if parsed.scheme in ("", "file") else url
