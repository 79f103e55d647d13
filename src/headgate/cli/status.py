"""``headgate status``: how a running engine is doing, or one of its dataflows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.asking import ask
from headgate.cli.output import AsCsv, AsJson, State, print_answer
from headgate.service.engine_tables import status_tables

__all__ = ["status"]


def status(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A dataflow; all of them if left out.")] = None,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the state of all dataflows and fragments of a running engine, or of one dataflow and its tasks.

    Example: [bold]headgate status hot --state here[/bold]
    """
    answer = ask(state, lambda client: client.status(name), "asking")
    print_answer(answer, status_tables(answer), as_json, as_csv)
