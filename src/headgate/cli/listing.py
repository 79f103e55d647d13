"""``headgate list``: the dataflows of a running engine."""

from __future__ import annotations

from pathlib import Path

from headgate.cli.asking import ask
from headgate.cli.output import AsCsv, AsJson, State, print_answer
from headgate.service.engine_tables import listing_table

__all__ = ["list_dataflows"]


def list_dataflows(state: State = Path(".headgate"), as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """List the dataflows of a running engine, in the order of submission.

    Example: [bold]headgate list --state here[/bold]
    """
    answer = ask(state, lambda client: client.dataflows(), "asking")
    print_answer(answer, [listing_table(answer)], as_json, as_csv)
