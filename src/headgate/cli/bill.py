"""``headgate bill``: who pays what for what has run on a state directory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import Force, State, sentence_to_stderr, write_file, write_text
from headgate.report.bill import bill_tables, draw_bill
from headgate.report.render import render
from headgate.service.bill import EXPORTS, of_owner
from headgate.service.bill import bill as draw_up

__all__ = ["BillFormat", "bill"]


class BillFormat(StrEnum):
    """How a bill is written."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    FOCUS = "focus"


def bill(
    state: State = Path(".headgate"),
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only what this owner pays.")] = None,
    form: Annotated[
        BillFormat, typer.Option("--format", "-f", help="A table, CSV, JSON, or the columns of FOCUS.")
    ] = BillFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    force: Force = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it too, as .svg, .png or .pdf.")
    ] = None,
) -> None:
    """Show who pays what, and what each dataflow would have paid on machines of its own.

    The lines and the idle time add up to the cost of the machine. The bill is made from the record of usage, whether
    or not the engine is running. Set the price of the machine with headgate run --price-per-hour.

    Examples: [bold]headgate bill --state here --plot bill.png[/bold], [bold]headgate bill --owner ana -f csv[/bold]
    """
    whole = draw_up(state)
    wanted = of_owner(whole, owner) if owner is not None else whole
    picture = None if plot is None else draw_bill(wanted, plot.suffix)
    text = render(bill_tables(wanted)) if form is BillFormat.TEXT else EXPORTS[form](wanted)
    write_text(text, output, force)
    if plot is not None and picture is not None:
        write_file(plot, picture, force)
        sentence_to_stderr(f"picture written to {plot}")
