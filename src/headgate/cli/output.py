"""What the commands print, and how files are written."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import typer

from headgate.errors import Fault, InputError, Notice, os_reason, printable
from headgate.tasks.registry import Registry, default_registry

__all__ = ["faults_to_stderr", "known_types", "notices_to_stderr", "print_json", "sentence_to_stderr", "write_file"]


def known_types() -> Registry:
    """The registered task types; says so on standard error when a package's types had to be left out."""
    registry = default_registry()
    for problem in registry.problems:
        sentence_to_stderr(problem.message)
    return registry


def print_json(value: object) -> None:
    """Print one JSON value on one line."""
    typer.echo(json.dumps(value, ensure_ascii=not _writes_unicode()))


def sentence_to_stderr(sentence: str) -> None:
    """Tell of something that went wrong."""
    typer.echo(f"{typer.style('headgate:', fg='red', bold=True)} {printable(sentence)}", err=True)


def faults_to_stderr(faults: Iterable[Fault]) -> None:
    """Print faults, a line each."""
    for fault in faults:
        typer.echo(f"{typer.style('fault', fg='red', bold=True)}  {fault}", err=True)


def notices_to_stderr(notices: Iterable[Notice]) -> None:
    """Print notices, a line each."""
    for notice in notices:
        typer.echo(f"{typer.style('notice', fg='yellow')} {notice}", err=True)


def write_file(path: Path, content: str | bytes, force: bool = False) -> None:
    """Write a file whole or not at all; an existing one only when forced. Pipes and devices are written into."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(data)
        elif path.exists() and not force:
            raise InputError("FILE_EXISTS", f"{path} is there already; choose another name or add --force")
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise InputError("CANNOT_WRITE", f"cannot write {path}: {os_reason(error)}") from None


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".headgate-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _writes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
