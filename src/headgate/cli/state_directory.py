"""Commands that read a state directory: ``headgate bill``, ``dead-letters``, ``observations`` and ``top``."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.engine import ask
from headgate.cli.output import (
    AsCsv,
    AsJson,
    Force,
    State,
    packages,
    print_answer,
    print_json,
    print_tables,
    seconds,
    sentence_to_stderr,
    write_file,
    write_text,
)
from headgate.cli.remote import remote_latest, remote_observations, service_url
from headgate.errors import InputError
from headgate.model.table import Table
from headgate.report.bill import bill_tables, draw_bill
from headgate.report.render import render
from headgate.service.bill import EXPORTS, bill_of, bill_span, of_owner
from headgate.service.bill import bill as draw_up
from headgate.service.dead_letters import dead_letters as read_dead_letters
from headgate.service.dead_letters import dead_letters_table
from headgate.service.observations import (
    MINUTE,
    as_documents,
    intervals_table,
    last_minute,
    latest,
    levels_kept,
    observations_since,
)
from headgate.service.observations import export as export_to
from headgate.service.top import top_tables

__all__ = ["BillFormat", "bill", "dead_letters", "observations", "top"]

LETTERS_SHOWN = 20
TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]
STALE_S = 30.0
"""An engine that has observed nothing for so long has probably stopped."""


class BillFormat(StrEnum):
    """How a bill is written."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    FOCUS = "focus"


def bill(
    state: State = Path(".headgate"),
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Only what this owner pays.")] = None,
    since: Annotated[
        datetime | None, typer.Option("--since", formats=TIMES, metavar="TIME", help="From then on, in UTC.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", formats=TIMES, metavar="TIME", help="Up to then, in UTC.")
    ] = None,
    period: Annotated[
        str | None, typer.Option("--period", metavar="SPAN", help="Machines are paid in whole periods, such as 1h.")
    ] = None,
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

    The lines and the idle time add up to the cost of the machines. The bill is made from the record of usage, whether
    or not the engine is running. Machines of a cluster are paid from when they were asked for until they are gone, at
    their own prices; what is left of a period then is paid, not used. Without a cluster it is this machine, at the
    price of headgate run --price-per-hour.

    Examples: [bold]headgate bill --plot bill.png[/bold], [bold]headgate bill --since 2026-11-01 --period 1h[/bold]
    """
    begin, end = (None if one is None else one.replace(tzinfo=UTC).timestamp() for one in (since, until))
    period_s = None if period is None else seconds("--period", period)
    if service_url() is not None:
        wanted = bill_of(ask(state, lambda client: client.bill(owner, begin, end, period_s), "asking"))
    else:
        whole = draw_up(state, bill_span(begin, end, period_s))
        wanted = of_owner(whole, owner) if owner is not None else whole
    picture = None if plot is None else draw_bill(wanted, plot.suffix)
    text = render(bill_tables(wanted)) if form is BillFormat.TEXT else EXPORTS[form](wanted)
    write_text(text, output, force)
    if plot is not None and picture is not None:
        write_file(plot, picture, force)
        sentence_to_stderr(f"picture written to {plot}")


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
    if service_url() is not None:
        letters = ask(state, lambda client: client.dead_letters(dataflow, task), "asking")["dead_letters"]
    else:
        letters = read_dead_letters(state, dataflow, task)
    if export is not None:
        write_file(export, "".join(json.dumps(letter) + "\n" for letter in letters), force)
        typer.echo(f"{len(letters):,} dead letters in {export}")
    else:
        table = dead_letters_table(letters, len(letters) if as_csv else LETTERS_SHOWN)
        print_answer({"dead_letters": letters}, [table], as_json, as_csv)


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

    The tables are tasks, sinks, fragments, machines, sources, dataflows, together and costs; each row has the
    interval's end (seconds since 1970) and length.

    Example: [bold]headgate observations --last 1h --export measured/[/bold]
    """
    since = 0.0 if last is None else time.time() - seconds("--last", last)
    measured = observations_since(state, since) if service_url() is None else remote_observations(since)
    if export is not None:
        with packages("exporting", "spark"):
            written = export_to(measured, export)
        typer.echo(", ".join(f"{rows:,} {name}" for name, rows in written.items()) + f" in {export}")
    elif as_json:
        for document in as_documents(measured):
            print_json(document)
    else:
        print_tables([intervals_table(measured)], as_csv=as_csv)


def top(
    state: State = Path(".headgate"),
    once: Annotated[bool, typer.Option("--once", help="Show the latest interval and leave.")] = False,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Tasks to show, the busiest first.")] = 20,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show how well dataflows do, rates, cost per row, latency at the sinks, batches and machines of a running engine.

    Figures are those of the last minute: relative throughput (through), rows taken over rows that came (kept up), value
    of the active alternates, latency, cost, profit, and whether the service level was met.

    Cores are the task's rate times its CPU time per row, which is measured on samples. The time of a batch is split
    into planning, waiting for a core, running and committing. Press Ctrl-C to leave; the engine is not disturbed.

    Example: [bold]headgate top --state .headgate[/bold]
    """
    if once or as_json or as_csv or not sys.stdout.isatty():
        print_tables(_tables(state, rows), as_json, as_csv)
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    with Live(console=console, screen=True, refresh_per_second=4) as live:
        while True:
            live.update(Text(render(_tables(state, rows), "text", console.width)))
            time.sleep(1.0)


def _tables(state: Path, rows: int) -> tuple[Table, ...]:
    remote = service_url() is not None
    observations = remote_latest(MINUTE) if remote else latest(state, most=MINUTE)
    if not observations:
        message = f"nothing has been measured in '{state}' yet; a running engine measures itself every few seconds"
        raise InputError("NOTHING_OBSERVED", message)
    seen = observations[-1]
    age_s = max(time.time() - seen.ended, 0.0)
    stopped = " The engine does not seem to be running." if age_s > STALE_S else ""
    note = f"Measured over {seen.seconds:.1f} s, {age_s:.0f} s ago.{stopped}"
    levels = () if remote else levels_kept(state, seen)
    return top_tables(seen, rows, note, minute=last_minute(observations), levels=levels)
