"""``headgate list``: the dataflows of a running engine."""

from __future__ import annotations

from pathlib import Path

from headgate.cli.asking import State, ask
from headgate.cli.output import AsCsv, AsJson, print_json, print_tables
from headgate.service.engine_tables import listing_table

__all__ = ["list_dataflows"]


def list_dataflows(state: State = Path(".headgate"), as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """List the dataflows of a running engine, in the order of submission.

    Example: [bold]headgate list --state here[/bold]
    """
    answer = ask(state, lambda client: client.dataflows(), "asking")
    if as_json:
        print_json(answer)
    else:
        print_tables([listing_table(answer)], as_csv=as_csv)
