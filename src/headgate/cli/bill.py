"""``headgate bill``: who pays what for what has run on a state directory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate.billing.export import to_csv, to_focus, to_json
from headgate.cli.asking import State
from headgate.cli.output import sentence_to_stderr, write_file
from headgate.report.bill import bill_tables, draw_bill
from headgate.report.render import render
from headgate.service.bill import bill as draw_up
from headgate.service.bill import of_owner

__all__ = ["BillFormat", "bill"]


class BillFormat(StrEnum):
    """How a bill is written."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    FOCUS = "focus"


FORMS = {
    BillFormat.TEXT: lambda bill: render(bill_tables(bill)),
    BillFormat.CSV: to_csv,
    BillFormat.JSON: to_json,
    BillFormat.FOCUS: to_focus,
}


def bill(
    state: State = Path(".headgate"),
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only what this owner pays.")] = None,
    form: Annotated[
        BillFormat, typer.Option("--format", "-f", help="A table, CSV, JSON, or the columns of FOCUS.")
    ] = BillFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it too, as .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Show who pays what for what has run on a state directory, beside what each would have paid alone.

    The lines and what was idle add up to the cost of the machine. It is drawn up from the record of usage, whether or
    not the engine is running; what it costs an hour is said by headgate run --price-per-hour.

    Examples: [bold]headgate bill --state here --plot bill.png[/bold], [bold]headgate bill --owner ana -f csv[/bold]
    """
    whole = draw_up(state)
    told = of_owner(whole, owner) if owner is not None else whole
    picture = None if plot is None else draw_bill(told, plot.suffix)
    text = FORMS[form](told)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_file(output, text, force)
    if plot is not None and picture is not None:
        write_file(plot, picture, force)
        sentence_to_stderr(f"picture written to {plot}")
