"""A bill as tables and as a picture: what each dataflow pays, compared with running alone."""

from __future__ import annotations

from typing import Any

from headgate.billing.bill import Bill
from headgate.billing.export import iso_time
from headgate.model.table import Table, TableColumn
from headgate.report.figures import figure_bytes

__all__ = ["bill_tables", "draw_bill"]

MOST = 40
"""Dataflows that have a bar of their own; those that pay least are one."""

PAID, ALONE, IDLE = "#12466b", "#c9d8e3", "#b8b8b8"


_OWNER = TableColumn("owner", "owner")
_MONEY = (TableColumn("cost", "cost"), TableColumn("alone", "alone"), TableColumn("saved", "saved"))
_LINE = (
    TableColumn("dataflow", "dataflow"),
    _OWNER,
    TableColumn("hours", "hours", form=".2f", of=lambda line: float(line.hours)),
    *_MONEY,
)
_BY_OWNER = (_OWNER, TableColumn("dataflows", "dataflows"), *_MONEY)


def bill_tables(bill: Bill) -> tuple[Table, Table]:
    """The bill for people: by dataflow, then by owner, with idle machines and the sum below."""
    period = f"{iso_time(bill.start)} to {iso_time(bill.end)}"
    title = f"By dataflow, {period}, in {bill.currency}"
    unused = (f"Paid, not used: {bill.unused} {bill.currency}, in the lines above",) if bill.unused else ()
    notes = (*unused, f"Idle machines: {bill.idle} {bill.currency}", f"Total: {bill.total} {bill.currency}")
    return Table.of(title, _LINE, bill.lines), Table.of("By owner", _BY_OWNER, bill.owners, *notes)


def draw_bill(bill: Bill, ending: str) -> bytes:
    """A bar for each dataflow, by owner, and one for what was idle; the title has the sum."""
    bars = _bars(bill)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for place, (_, paid, alone, colour) in enumerate(bars):
            axes.barh(place, alone, height=0.72, color=ALONE, label="alone" if place == 0 else None)
            axes.barh(place, paid, height=0.4, color=colour, label="paid" if place == 0 else None)
            axes.annotate(f" {paid:.4f}", (max(paid, alone), place), va="center", fontsize=8, color="#444444")
        axes.set_yticks(range(len(bars)), [label for label, *_ in bars], fontsize=9)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        start, end = (moment.strftime("%Y-%m-%d %H:%M:%S") for moment in (bill.start, bill.end))
        axes.set(title=f"{start} to {end} UTC, {bill.total} {bill.currency} in all", xlabel=bill.currency)
        axes.grid(axis="x")
        axes.legend(loc="lower right")

    return figure_bytes(draw, ending, (8.0, 1.6 + 0.34 * len(bars)))


def _bars(bill: Bill) -> list[tuple[str, float, float, str]]:
    """Label, paid, alone and colour of each bar, from top to bottom."""
    shown = sorted(bill.lines, key=lambda line: line.cost, reverse=True)
    few, rest = shown[:MOST], shown[MOST:]
    ordered = sorted(few, key=lambda line: (line.owner, -line.cost, line.dataflow))
    bars = [(f"{x.dataflow}  ({x.owner})", float(x.cost), float(x.alone), PAID) for x in ordered]
    if rest:
        paid, alone = float(sum(line.cost for line in rest)), float(sum(line.alone for line in rest))
        bars.append((f"{len(rest)} others", paid, alone, PAID))
    return [*bars, ("idle", float(bill.idle), 0.0, IDLE)] if bill.idle else bars
