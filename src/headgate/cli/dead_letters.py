"""``headgate dead-letters``: the rows for which tasks raised, with the errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import Force, State, print_answer, write_file
from headgate.service.dead_letters import dead_letters as read_dead_letters
from headgate.service.dead_letters import dead_letters_table

__all__ = ["dead_letters"]

SHOWN = 20


def dead_letters(
    dataflow: Annotated[
        str | None, typer.Argument(metavar="[DATAFLOW]", help="Only those of tasks that this dataflow uses.")
    ] = None,
    state: State = Path(".headgate"),
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only those of this task.")] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write all of them to a file, as JSON lines.")
    ] = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of them as one JSON object.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all of them as CSV.")] = False,
) -> None:
    """Show the rows that failed in tasks with [bold]on_error: dead_letter[/bold], and why.

    It reads the state directory, whether or not an engine is using it. Without options the newest are shown.

    Example: [bold]headgate dead-letters alarms --export letters.jsonl[/bold]
    """
    letters = read_dead_letters(state, dataflow, task)
    if export is not None:
        write_file(export, "".join(json.dumps(letter) + "\n" for letter in letters), force)
        typer.echo(f"{len(letters):,} dead letters in {export}")
    else:
        table = dead_letters_table(letters, len(letters) if as_csv else SHOWN)
        print_answer({"dead_letters": letters}, [table], as_json, as_csv)
