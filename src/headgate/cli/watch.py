"""How a run is shown while it goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import typer
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from headgate.errors import printable

if TYPE_CHECKING:
    from headgate.model.status import DataflowStatus, FragmentStatus

__all__ = ["Watch", "watching"]

LINE_EVERY_S = 5.0
"""How often a plain line is written when nothing changes but the number of rows."""

STYLES = {"running": "green", "paused": "yellow", "throttled": "yellow", "degraded": "red"}


class Watch(Protocol):
    """What a run tells about itself."""

    def say(self, sentence: str) -> None:
        """Tell of something that has happened."""

    def wait(self, what: str) -> None:
        """Show that something takes its time; called again and again meanwhile."""

    def show(self, dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus]) -> None:
        """Show how things are."""

    def summary(
        self, dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus], elapsed_s: float
    ) -> None:
        """Tell how it went, on standard output."""


@contextmanager
def watching(quiet: bool) -> Iterator[Watch]:
    """The way to show a run that fits where standard output goes; ``quiet`` leaves the terminal to programs."""
    if quiet or not sys.stdout.isatty():
        yield Lines()
        return
    console = Console()
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        yield LiveTable(live)


class Lines:
    """Plain lines on standard error, one when something changes and one now and then."""

    def __init__(self) -> None:
        self._waiting = ""
        self._states: list[tuple[str, str, str]] = []
        self._told = 0.0

    def say(self, sentence: str) -> None:
        typer.echo(printable(sentence), err=True)

    def wait(self, what: str) -> None:
        if what != self._waiting:
            self._waiting = what
            self.say(f"{what} ...")

    def show(self, dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus]) -> None:
        now = time.monotonic()
        # Reasons that count rows change all the time.
        states = [(flow.name, flow.state, re.sub(r"\d[\d,]*", "0", flow.reason)) for flow in dataflows]
        for flow, state in zip(dataflows, states, strict=True):
            if flow.reason and state not in self._states:
                self.say(f"{flow.name} is {flow.state}: {flow.reason}")
        if states != self._states or now - self._told >= LINE_EVERY_S:
            self._states, self._told = states, now
            told = ", ".join(f"{flow.name} {flow.state} {flow.rows_out:,} rows out" for flow in dataflows)
            told = told or "no dataflow is there yet"
            self.say(f"{told}; {len(fragments)} {'fragment' if len(fragments) == 1 else 'fragments'}")

    def summary(
        self, dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus], elapsed_s: float
    ) -> None:
        width = max((len(flow.name) for flow in dataflows), default=0)
        for flow in dataflows:
            told = f"{flow.name:<{width}}  {flow.state:<8}  {flow.rows_out:>12,} rows out"
            shared = f"  {flow.tasks} tasks, {flow.shared} shared"
            typer.echo(printable(told + shared + (f"  {flow.reason}" if flow.reason else "")))
        typer.echo(f"{len(fragments)} {'fragment' if len(fragments) == 1 else 'fragments'}, {elapsed_s:.1f} s")


class LiveTable:
    """A table of dataflows and one of fragments, drawn anew all the time; gone at the end, when the summary stays."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._spinner = Spinner("dots")
        self._epochs: dict[str, tuple[int, float]] = {}

    def say(self, sentence: str) -> None:
        self._live.console.print(Text(printable(sentence), style="dim"))

    def wait(self, what: str) -> None:
        self._spinner.update(text=f"{what} ...")
        self._live.update(self._spinner)

    def show(self, dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus]) -> None:
        now = time.monotonic()
        for fragment in fragments:
            if self._epochs.get(fragment.id, (None, 0.0))[0] != fragment.epoch:
                self._epochs[fragment.id] = (fragment.epoch, now)
        busy = {name for name, (_, since) in self._epochs.items() if now - since < LINE_EVERY_S}
        self._live.update(Group(_dataflows(dataflows), _fragments(fragments, busy)))

    def summary(
        self, dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus], elapsed_s: float
    ) -> None:
        self._live.console.print(_dataflows(dataflows))
        told = f"{len(fragments)} {'fragment' if len(fragments) == 1 else 'fragments'}, {elapsed_s:.1f} s"
        self._live.console.print(told)


def _dataflows(dataflows: Sequence[DataflowStatus]) -> Table:
    table = Table(box=box.SIMPLE)
    table.add_column("dataflow", no_wrap=True)
    table.add_column("state")
    for name in ("rows out", "tasks", "shared"):
        table.add_column(name, justify="right")
    table.add_column("reason")
    for flow in dataflows:
        counts = (f"{flow.rows_out:,}", str(flow.tasks), str(flow.shared))
        state = Text(flow.state, style=STYLES.get(flow.state, ""))
        table.add_row(flow.name, state, *counts, Text(printable(flow.reason)))
    return table


def _fragments(fragments: Sequence[FragmentStatus], busy: set[str]) -> Table:
    table = Table(box=box.SIMPLE)
    table.add_column("fragment", no_wrap=True)
    table.add_column("kind")
    for name in ("epoch", "rows/s", "batch ms", "behind"):
        table.add_column(name, justify="right")
    for fragment in fragments:
        rate = f"{fragment.rate_per_s:,.0f}" if fragment.id in busy else "0"
        epoch = "-" if fragment.epoch < 0 else str(fragment.epoch)
        facts = (epoch, rate, f"{fragment.batch_s * 1000:,.0f}", f"{fragment.behind:,}")
        style = "red" if fragment.failure else ""
        table.add_row(fragment.id, fragment.kind, *facts, style=style)
    return table
