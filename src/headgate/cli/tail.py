"""``headgate tail``: rows of a running task, as they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import State, print_json
from headgate.cli.remote import client_of
from headgate.errors import InputError, printable, shorten

__all__ = ["tail"]


def tail(
    task: Annotated[str, typer.Argument(metavar="DATAFLOW.TASK", help="A task of a running dataflow.")],
    state: State = Path(".headgate"),
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="Leave after so many samples.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per sample, with its time.")] = False,
) -> None:
    """Show some of the rows that a task makes, or that a sink takes, about once a second: one JSON object per line.

    A sample has at most 20 rows of one micro-batch. It is taken beside the batches, and only while somebody looks.
    Columns that headgate.toml masks are hidden unless you are an admin. Press Ctrl-C to leave.

    Example: [bold]headgate tail alarms.smooth[/bold]
    """
    dataflow, dot, name = task.partition(".")
    if not (dataflow and dot and name):
        message = f"{shorten(task)} names no task; write DATAFLOW.TASK, such as alarms.smooth"
        raise InputError("UNKNOWN_TASK", message)
    with client_of(state) as client:
        for sample in client.rows(dataflow, name, samples):
            if as_json:
                print_json(sample)
                continue
            for row in sample["rows"]:
                typer.echo(printable(json.dumps(row, ensure_ascii=False)))
