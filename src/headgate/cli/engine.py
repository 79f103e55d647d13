"""``headgate list``, ``status`` and ``withdraw``: what a running engine is asked for, and how."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import AsCsv, AsJson, State, print_answer
from headgate.cli.remote import client_of
from headgate.service.engine_tables import listing_table, status_tables, withdrawal_tables

if TYPE_CHECKING:
    from headgate.api.client import EngineClient

__all__ = ["ask", "list_dataflows", "status", "withdraw"]


def ask(state: Path, request: Callable[[EngineClient], dict[str, Any]], waiting: str) -> dict[str, Any]:
    """Ask the engine; on a terminal, show that it works."""
    with client_of(state) as client:
        if not sys.stderr.isatty():
            return request(client)
        from rich.console import Console

        with Console(stderr=True).status(f"{waiting} ..."):
            return request(client)


def list_dataflows(state: State = Path(".headgate"), as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """List the dataflows of a running engine, in the order of submission.

    Example: [bold]headgate list --state here[/bold]
    """
    answer = ask(state, lambda client: client.dataflows(), "asking")
    print_answer(answer, [listing_table(answer)], as_json, as_csv)


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
