"""``headgate withdraw``: fewer dataflows for a running engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.asking import AsJson, State, ask
from headgate.cli.output import print_json
from headgate.cli.submit import told_withdrawn

__all__ = ["withdraw"]


def withdraw(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Dataflows that run.")],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Withdraw dataflows from a running engine, all of them or none; tasks that others share go on.

    Exit status 2 when one is not there, or no engine is running: nothing has changed then.

    Example: [bold]headgate withdraw hot --state here[/bold]
    """
    told = ask(state, lambda client: client.withdraw(names), "withdrawing")
    if as_json:
        print_json(told)
    else:
        typer.echo(told_withdrawn(told))
