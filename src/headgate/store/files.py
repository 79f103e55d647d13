"""Small files that are either whole or absent, and files of lines that survive a crash."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from headgate.errors import InputError
from headgate.store.durable_steps import step

__all__ = [
    "append_line",
    "damaged",
    "read_json",
    "scratch_of",
    "sync_files",
    "sync_folder",
    "write_bytes",
    "write_json",
    "write_text",
]


def write_text(path: Path, text: str, step_name: str | None = None) -> None:
    """Replace a file by a text, in one step."""
    write_bytes(path, text.encode(), step_name)


def write_bytes(path: Path, content: bytes, step_name: str | None = None) -> None:
    """Replace a file in one step: a reader, also after a crash, sees the old content or the new one.

    A durable step, by its name, is on the disk when this returns; otherwise the system decides when it is.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if step_name is None:
            temporary.write_bytes(content)
            temporary.replace(path)
            return
        with step(step_name) as point:
            with temporary.open("wb") as file:
                _write(file, point.parts(content))
            temporary.replace(path)
            sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        error.filename = str(path)
        raise


def write_json(path: Path, value: object, step_name: str | None = None) -> None:
    """Replace a file by a value as JSON, in one step."""
    write_text(path, json.dumps(value), step_name)


def scratch_of(folder: Path) -> Path:
    """Where Spark's process keeps what it needs only while it runs, for the state in a folder: one place, always.

    So what a process leaves behind that was killed is removed by the next one.
    """
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}-{name}"


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has."""
    _sync(folder)


def sync_files(paths: Sequence[str]) -> None:
    """Make the content of files durable, several at a time: the disk takes them together."""
    if len(paths) < 2:
        list(map(_sync, paths))
        return
    with ThreadPoolExecutor(min(len(paths), 8)) as pool:
        list(pool.map(_sync, paths))


def _sync(path: Path | str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> Any:
    """Read a JSON file; ``None`` if there is no such file. Raises :class:`InputError` if it is damaged."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise damaged(path) from None


def damaged(path: Path, reason: str = "is damaged", remedy: str | None = None) -> InputError:
    """An error for a state file that holds something else than what was written."""
    usual = "restore it from a backup of the state directory, or begin with another one (--state)"
    return InputError("STATE_DAMAGED", f"{path} {reason}; {remedy or usual}", {"file": str(path)})


def append_line(path: Path, text: str, step_name: str) -> None:
    """Append a line as a durable step. After a line that a crash has cut short, a new line begins first."""
    with step(step_name) as point, path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
        cut_short = size > 0 and file.read(1) != b"\n"
        _write(file, point.parts(b"\n" * cut_short + text.encode() + b"\n"))


def _write(file: IO[bytes], parts: Iterable[bytes]) -> None:
    for part in parts:
        file.write(part)
        file.flush()
    os.fsync(file.fileno())
