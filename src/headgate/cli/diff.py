"""``headgate diff``: what two dataflows have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, known_types, notices_to_stderr, print_tables
from headgate.service.diff import diff_tables
from headgate.service.load import load

__all__ = ["diff"]


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A dataflow, say one that is running.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another, say one to be submitted.")],
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show which tasks of two dataflows are equivalent, and which only one of them has.

    Example: [bold]headgate diff running.yaml submitted.yaml[/bold]
    """
    registry = known_types()
    one, two = load(first, registry), load(second, registry)
    notices_to_stderr((*one.notices, *two.notices))
    print_tables(diff_tables(one.dataflow, two.dataflow, str(first), str(second)), as_json, as_csv)
