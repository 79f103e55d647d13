"""``headgate lineage``: from which columns a column comes, and who would be hurt if it went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.engine import ask
from headgate.cli.output import AsCsv, AsJson, State, print_answer
from headgate.service.lineage.answer import lineage_tables

__all__ = ["lineage"]


def lineage(
    of: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A dataflow (all columns of its sinks), NAME.TASK or NAME.TASK.COLUMN."),
    ],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show from which sources and columns the columns of a running dataflow come.

    For one column also who would be hurt if it went: what reads it, what is made of it and where it is delivered, in
    all dataflows that share its task.

    Examples: [bold]headgate lineage alarms[/bold], [bold]headgate lineage alarms.parse.dust[/bold]
    """
    answer = ask(state, lambda client: client.lineage(of), "asking")
    print_answer(answer, lineage_tables(answer), as_json, as_csv)
