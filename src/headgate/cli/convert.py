"""``headgate convert``: the same dataflow in another format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import Force, known_types, notices_to_stderr, write_text
from headgate.documents import form_of, read, write
from headgate.errors import InputError

__all__ = ["convert"]


class DataflowFormat(StrEnum):
    """A format of dataflow files."""

    YAML = "yaml"
    JSON = "json"
    XML = "xml"
    PYTHON = "python"


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A dataflow as .yaml, .json, .xml or .py.")],
    output: Annotated[
        Path | None, typer.Argument(metavar="[OUTPUT]", help="Where to write it; its ending gives the format.")
    ] = None,
    to: Annotated[DataflowFormat | None, typer.Option("--to", help="The format, when it goes to the terminal.")] = None,
    force: Force = False,
) -> None:
    """Write a dataflow in another format; reading it back gives the same dataflow.

    Example: [bold]headgate convert etl.xml etl.yaml[/bold]
    """
    if output is None and to is None:
        raise InputError("NO_FORMAT", "name a file to write to, or a format with --to yaml, json, xml or python")
    form = to.value if to is not None else form_of(output) if output is not None else ""
    registry = known_types()
    checked = read(file, registry)
    notices_to_stderr(checked.notices)
    write_text(write(checked.dataflow, form, registry), output, force)
