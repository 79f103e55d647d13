"""``headgate status``: how a running engine is doing, or one of its dataflows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.asking import AsJson, State, ask
from headgate.cli.output import print_json
from headgate.errors import printable
from headgate.report.text_table import text_table

__all__ = ["status"]


def status(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A dataflow; all of them if left out.")] = None,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Show how the dataflows and fragments of a running engine are doing, or one dataflow and its tasks.

    Example: [bold]headgate status hot --state here[/bold]
    """
    told = ask(state, lambda client: client.status(name), "asking")
    if as_json:
        print_json(told)
        return
    flows = [("dataflow", "state", "rows out", "tasks", "shared")]
    flows += [
        (f["name"], f["state"], f"{f['rows_out']:,}", str(f["tasks"]), str(f["shared"])) for f in told["dataflows"]
    ]
    typer.echo(text_table(flows, right=(2, 3, 4)), nl=False)
    for flow in told["dataflows"]:
        if flow["reason"]:
            typer.echo(printable(f"{flow['name']}: {flow['reason']}"))
    typer.echo()
    if name is None:
        rows = [("fragment", "kind", "epoch", "batch ms", "rows wait")]
        rows += [
            (f["id"], f["kind"], str(f["epoch"]), f"{f['batch_s'] * 1000:.0f}", f"{f['behind']:,}")
            for f in told["fragments"]
        ]
        typer.echo(text_table(rows, right=(2, 3, 4)), nl=False)
    else:
        shared = [(t["task"], t["type"], ", ".join(t["shared_with"]) or "nobody") for t in told["tasks"]]
        typer.echo(text_table([("task", "type", "shared with"), *shared]), nl=False)
    typer.echo(printable(f"process {told['process']}, snapshot {told['snapshot']}, strategy {told['strategy']}"))
