"""How a run is shown: live tables on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import typer

from headgate.cli.output import print_tables
from headgate.errors import counted, printable
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.report.render import render
from headgate.service.engine_tables import run_tables

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["RunDisplay", "print_summary", "run_display"]

LINE_EVERY_S = 5.0
"""How often a plain line is written when only the number of rows changes."""

Dataflows = Sequence[DataflowStatus]
Fragments = Sequence[FragmentStatus]


class RunDisplay(Protocol):
    """Shows a run."""

    def say(self, sentence: str) -> None:
        """Show that something has happened."""

    def wait(self, what: str) -> None:
        """Show that something takes time; called again and again meanwhile."""

    def show(self, dataflows: Dataflows, fragments: Fragments) -> None:
        """Show the current state."""


@contextmanager
def run_display(quiet: bool) -> Iterator[RunDisplay]:
    """Live tables if standard output is a terminal and ``quiet`` is off, else plain lines on standard error."""
    if quiet or not sys.stdout.isatty():
        yield PlainLines()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), refresh_per_second=8, transient=True) as live:
        yield LiveTables(live)


def print_summary(dataflows: Dataflows, fragments: Fragments, elapsed_s: float) -> None:
    """Print how a run went, on standard output."""
    print_tables(run_tables(dataflows, fragments)[:1])
    typer.echo(f"{counted(len(fragments), 'fragment')}, {elapsed_s:.1f} s")


class PlainLines:
    """A line on standard error when something changes, and one now and then."""

    def __init__(self) -> None:
        self._waiting = ""
        self._states: list[tuple[str, str, str]] = []
        self._shown_at = 0.0

    def say(self, sentence: str) -> None:
        typer.echo(printable(sentence), err=True)

    def wait(self, what: str) -> None:
        if what != self._waiting:
            self._waiting = what
            self.say(f"{what} ...")

    def show(self, dataflows: Dataflows, fragments: Fragments) -> None:
        now = time.monotonic()
        # Reasons that count rows change all the time.
        states = [(flow.name, flow.state, re.sub(r"\d[\d,]*", "0", flow.reason)) for flow in dataflows]
        for flow, state in zip(dataflows, states, strict=True):
            if flow.reason and state not in self._states:
                self.say(f"{flow.name} is {flow.state}: {flow.reason}")
        if states != self._states or now - self._shown_at >= LINE_EVERY_S:
            self._states, self._shown_at = states, now
            rows = ", ".join(f"{flow.name} {flow.state} {flow.rows_out:,} rows out" for flow in dataflows)
            self.say(f"{rows or 'no dataflows yet'}; {counted(len(fragments), 'fragment')}")


class LiveTables:
    """Tables of dataflows and fragments, refreshed all the time and removed at the end."""

    def __init__(self, live: Live) -> None:
        from rich.spinner import Spinner

        self._live = live
        self._spinner = Spinner("dots")

    def say(self, sentence: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(printable(sentence), style="dim"))

    def wait(self, what: str) -> None:
        self._spinner.update(text=f"{what} ...")
        self._live.update(self._spinner)

    def show(self, dataflows: Dataflows, fragments: Fragments) -> None:
        from rich.text import Text

        self._live.update(Text(render(run_tables(dataflows, fragments), "text", self._live.console.width)))
