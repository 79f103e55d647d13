"""``headgate schema``: the JSON Schema of dataflow files, for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import known_types, write_file
from headgate.documents.document import json_schema

__all__ = ["schema"]


def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of the terminal.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Print the JSON Schema of dataflow files, with the options of every task type.

    Point an editor at it to complete fields and to underline mistakes as you write.

    Example: [bold]headgate schema -o dataflow.schema.json[/bold]
    """
    text = json.dumps(json_schema(known_types()), indent=2) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_file(output, text, force)
