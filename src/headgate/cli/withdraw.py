"""``headgate withdraw``: remove dataflows from a running engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.asking import ask
from headgate.cli.output import AsJson, State, print_answer
from headgate.service.engine_tables import withdrawal_tables

__all__ = ["withdraw"]


def withdraw(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Running dataflows.")],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Withdraw dataflows from a running engine, all of them or none; tasks that others share keep running.

    Exit status 2 when a dataflow is not running or no engine is: nothing has changed then.

    Example: [bold]headgate withdraw hot --state here[/bold]
    """
    answer = ask(state, lambda client: client.withdraw(names), "withdrawing")
    print_answer(answer, withdrawal_tables(answer), as_json)
