"""``headgate observations``: what an engine has measured, as a table or as parquet files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, State, packages, print_json, print_tables, seconds
from headgate.service.observations import as_documents, intervals_table, observations_since
from headgate.service.observations import export as export_to

__all__ = ["observations"]


def observations(
    state: State = Path(".headgate"),
    last: Annotated[
        str | None, typer.Option("--last", metavar="SPAN", help="Only those of the last 10min, 2h and so on.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write parquet tables into this directory.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per observation.")] = False,
    as_csv: AsCsv = False,
) -> None:
    """List what was measured, interval by interval, or export it.

    The tables are tasks, sinks, fragments and workers; each row has the interval's end (seconds since 1970) and length.

    Example: [bold]headgate observations --last 1h --export measured/[/bold]
    """
    since = 0.0 if last is None else time.time() - seconds("--last", last)
    measured = observations_since(state, since)
    if export is not None:
        with packages("exporting", "spark"):
            written = export_to(measured, export)
        typer.echo(", ".join(f"{rows:,} {name}" for name, rows in written.items()) + f" in {export}")
    elif as_json:
        for document in as_documents(measured):
            print_json(document)
    else:
        print_tables([intervals_table(measured)], as_csv=as_csv)
