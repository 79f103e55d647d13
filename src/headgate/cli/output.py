"""What the commands have in common: options, what they print, and how files are written."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.errors import Fault, InputError, Notice, missing_package, os_reason, printable
from headgate.model.span import seconds_of
from headgate.model.table import Table
from headgate.report.render import render

if TYPE_CHECKING:
    from headgate.service.load import Loaded
    from headgate.service.task_types import Registry

__all__ = [
    "AsCsv",
    "AsJson",
    "Force",
    "JsonAtEnd",
    "Output",
    "State",
    "faults_to_stderr",
    "known_types",
    "notices_to_stderr",
    "output_width",
    "packages",
    "print_answer",
    "print_json",
    "print_tables",
    "read_dataflows",
    "seconds",
    "sentence_to_stderr",
    "step_to_stderr",
    "write_file",
    "write_text",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
JsonAtEnd = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
Force = Annotated[bool, typer.Option("--force", help="Write over an existing file.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of the terminal.")]
State = Annotated[Path, typer.Option("--state", metavar="DIR", help="The state directory of the engine.")]


def seconds(option: str, text: str) -> float:
    """Read a span of time that an option gives, in the words of dataflow files.

    >>> seconds("--trigger", "500ms"), seconds("--for", "2min")
    (0.5, 120.0)
    """
    span_s = seconds_of(text)
    if not span_s:
        raise InputError("BAD_SPAN", f"{option} {text[:40]!r} is not a span of time, such as 500ms, 10s, 5min, 1h, 1d")
    return span_s


def known_types() -> Registry:
    """The registered task types; says so on standard error when a package's types had to be left out."""
    from headgate.service.task_types import task_types

    registry = task_types()
    for problem in registry.problems:
        sentence_to_stderr(problem.message)
    return registry


def read_dataflows(paths: Iterable[Path], registry: Registry) -> list[Loaded]:
    """Read files, and tell what their authors should know; raises an error with the faults of all of them."""
    from headgate.service.load import load_all

    loaded = load_all(paths, registry)
    notices_to_stderr(notice for one in loaded for notice in one.notices)
    return loaded


@contextmanager
def packages(purpose: str, extra: str) -> Iterator[None]:
    """Report a package that is not installed, with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package("MISSING_PACKAGE", purpose, error, extra) from None


def print_tables(tables: Sequence[Table], as_json: bool = False, as_csv: bool = False) -> None:
    """Print tables: text that fits the terminal, or whole lines where the output is piped; JSON; or CSV."""
    if as_json:
        text = render(tables, "json")
        typer.echo(text if _writes_unicode() else json.dumps(json.loads(text)) + "\n", nl=False)
    elif as_csv:
        typer.echo(render(tables, "csv"), nl=False)
    else:
        typer.echo(render(tables, "text", output_width()), nl=False)


def print_answer(answer: object, tables: Sequence[Table], as_json: bool, as_csv: bool = False) -> None:
    """Print an answer: as one JSON value as it is, otherwise as tables."""
    if as_json:
        print_json(answer)
    else:
        print_tables(tables, as_csv=as_csv)


def output_width() -> int | None:
    """The width of the terminal, or the one that COLUMNS asks for; none where the output is piped."""
    fits = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if fits else None


def print_json(value: object) -> None:
    """Print one JSON value on one line."""
    typer.echo(json.dumps(value, ensure_ascii=not _writes_unicode()))


def sentence_to_stderr(sentence: str) -> None:
    """Print one sentence on standard error."""
    typer.echo(f"{typer.style('headgate:', fg='red', bold=True)} {printable(sentence)}", err=True)


def step_to_stderr(step: str) -> None:
    """Show what long work is doing."""
    typer.echo(f"  {step}", err=True)


def faults_to_stderr(faults: Iterable[Fault]) -> None:
    """Print faults, a line each."""
    for fault in faults:
        typer.echo(f"{typer.style('fault', fg='red', bold=True)}  {fault}", err=True)


def notices_to_stderr(notices: Iterable[Notice]) -> None:
    """Print notices, a line each."""
    for notice in notices:
        typer.echo(f"{typer.style('notice', fg='yellow')} {notice}", err=True)


def write_text(text: str, output: Path | None, force: bool) -> None:
    """Write a text to a file, or to the terminal if none is named."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_file(output, text, force)


def write_file(path: Path, content: str | bytes, force: bool = False) -> None:
    """Write a file whole or not at all; an existing one only when forced. Pipes and devices are written into."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(data)
        elif path.exists() and not force:
            raise InputError("FILE_EXISTS", f"{path} exists; choose another name or add --force")
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
