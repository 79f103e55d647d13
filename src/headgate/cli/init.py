"""``headgate init``: a project that runs at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.errors import printable
from headgate.service.init import NEXT, write_project

__all__ = ["init"]


def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where; default: the working directory.")] = Path(),
) -> None:
    """Write a project: two dataflows that share work, a generator of data, settings and a README.

    Existing files are never overwritten.

    Example: [bold]headgate init demo && cd demo && python make_data.py && headgate run *.yaml --until-idle[/bold]
    """
    for path in write_project(folder):
        typer.echo(printable(f"wrote {path}"))
    steps = NEXT if folder == Path() else (f"cd {folder}", *NEXT)
    typer.echo("\nNext:\n" + "\n".join(f"  {step}" for step in steps))
