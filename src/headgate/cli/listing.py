"""``headgate list``: the dataflows of a running engine."""

from __future__ import annotations

from pathlib import Path

import typer

from headgate.cli.asking import AsJson, State, ask, counted
from headgate.cli.output import print_json
from headgate.report.text_table import text_table

__all__ = ["list_dataflows"]


def list_dataflows(state: State = Path(".headgate"), as_json: AsJson = False) -> None:
    """List the dataflows of a running engine, in the order of submission.

    Example: [bold]headgate list --state here[/bold]
    """
    told = ask(state, lambda client: client.dataflows(), "asking")
    if as_json:
        print_json(told)
        return
    flows = told["dataflows"]
    if flows:
        head = ("dataflow", "owner", "state", "tasks", "shared")
        rows = [(f["name"], f["owner"], f["state"], str(f["tasks"]), str(f["shared"])) for f in flows]
        typer.echo(text_table([head, *rows], right=(3, 4)), nl=False)
    typer.echo(f"{counted(len(flows), 'dataflow')}, strategy {told['strategy']}")
