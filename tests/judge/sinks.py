"""What sinks hold, read as a user reads them: the files of a folder in the order in which they were written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["sink_rows"]

NAME = re.compile(r"part-(\d+)-(.+)-(\d+)-(\d+)\.\w+")
"""Epoch, fragment with its run, snapshot and number of a file."""


def sink_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a sink. The files of one run of a fragment are numbered; runs follow by the age of their files."""
    named = [(NAME.fullmatch(path.name), path) for path in folder.glob("part-*")]
    began: dict[str, float] = {}
    for match, path in named:
        assert match is not None, path
        began[match[2]] = min(began.get(match[2], float("inf")), path.stat().st_mtime)
    ordered = sorted((began[m[2]], m[2], int(m[1]), int(m[3]), int(m[4]), path) for m, path in named if m)
    for *_, path in ordered:
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
