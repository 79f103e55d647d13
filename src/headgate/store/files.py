"""Small files that are either whole or absent, and files of lines that survive a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

__all__ = ["append_line", "read_json", "sync_folder", "write_json", "write_text"]


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace a file in one step: a reader, also after a crash, sees the old content or the new one.

    ``durable=False`` leaves it to the system when the content reaches the disk.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)


def write_json(path: Path, value: object, *, durable: bool = True) -> None:
    """Replace a file by a value as JSON, in one step."""
    write_text(path, json.dumps(value), durable=durable)


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> Any:
    """Read a JSON file; ``None`` if there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def append_line(path: Path, text: str) -> None:
    """Append a line durably. After a line that a crash has cut short, a new line begins first."""
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
        cut_short = size > 0 and file.read(1) != b"\n"
        file.write(b"\n" * cut_short + text.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
