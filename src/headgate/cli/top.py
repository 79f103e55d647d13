"""``headgate top``: what a running engine measures, live."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, State, print_tables
from headgate.errors import InputError
from headgate.model.table import Table
from headgate.report.render import render
from headgate.service.observations import latest
from headgate.service.top import top_tables

__all__ = ["top"]

STALE_S = 30.0
"""An engine that has observed nothing for so long has probably stopped."""


def top(
    state: State = Path(".headgate"),
    once: Annotated[bool, typer.Option("--once", help="Show the latest interval and leave.")] = False,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Tasks to show, the busiest first.")] = 20,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show rates, cost per row, latency at the sinks, batches and workers of a running engine.

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
    observations = latest(state)
    if not observations:
        message = f"nothing has been measured in '{state}' yet; a running engine measures itself every few seconds"
        raise InputError("NOTHING_OBSERVED", message)
    seen = observations[-1]
    age_s = max(time.time() - seen.ended, 0.0)
    stopped = " The engine does not seem to be running." if age_s > STALE_S else ""
    return top_tables(seen, rows, f"Measured over {seen.seconds:.1f} s, {age_s:.0f} s ago.{stopped}")
