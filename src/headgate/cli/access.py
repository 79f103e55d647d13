"""``headgate whoami`` and ``headgate access``: who you are to a running engine, and who may do what there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.engine import ask
from headgate.cli.output import AsCsv, AsJson, State, print_answer
from headgate.service.access import access_tables, me_table
from headgate.service.audit import audit_table

__all__ = ["access", "whoami"]


def whoami(state: State = Path(".headgate"), as_json: AsJson = False) -> None:
    """Show who a running engine takes you for: name, role, and the teams for which you may submit dataflows.

    Example: [bold]headgate whoami --state here[/bold]
    """
    answer = ask(state, lambda client: client.me(), "asking")
    print_answer(answer, [me_table(answer)], as_json)


def access(
    state: State = Path(".headgate"),
    audit: Annotated[
        bool, typer.Option("--audit", help="Show who changed what, and what was refused; for admins.")
    ] = False,
    last: Annotated[
        int, typer.Option("--last", min=1, max=1_000, help="With --audit: at most so many, the newest.")
    ] = 50,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show who may use a running engine: the roles and teams of the table \\[access] of headgate.toml.

    Examples: [bold]headgate access[/bold], [bold]headgate access --audit --last 20[/bold]
    """
    if audit:
        answer = ask(state, lambda client: client.audit(limit=last), "asking")
        print_answer(answer, [audit_table(answer["entries"])], as_json, as_csv)
    else:
        answer = ask(state, lambda client: client.access(), "asking")
        print_answer(answer, access_tables(answer), as_json, as_csv)
