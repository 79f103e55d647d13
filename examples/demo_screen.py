"""What the demonstration shows while it runs: dataflows, readings, and what has happened; live on a terminal."""

import time
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

LINES = 9
LOOK_S = 2.0


class Screen:
    """Shows an engine on a terminal, and tells it in lines where there is none."""

    def __init__(self, console: Console, engine, feeder):
        self.console, self.engine, self.feeder = console, engine, feeder
        self.began = time.monotonic()
        self.messages = []
        self.alternate = "-"
        self._observer = engine.observer()
        self._looked = 0.0
        self._rates, self._latencies = {}, {}
        self._live = None

    @contextmanager
    def shown(self):
        if not self.console.is_terminal:
            yield self
            return
        with Live(self._view(), console=self.console, refresh_per_second=4) as self._live:
            yield self

    def tell(self, what: str) -> None:
        """Something has happened."""
        at = time.monotonic() - self.began
        line = f"[dim]{at:4.0f} s[/dim]  {what}"
        self.messages.append(line)
        if self._live is None:
            self.console.print(line, soft_wrap=True)

    def table(self) -> None:
        """Print how things are, where nothing is shown live."""
        if self._live is None:
            self.console.print(self._dataflows())

    def refresh(self) -> None:
        """Look again, now and then, and show it."""
        if time.monotonic() - self._looked > LOOK_S:
            self._looked = time.monotonic()
            seen = self._observer.observe()
            self._rates, self._latencies = {}, {}
            for sink in seen.sinks:
                for name in sink.dataflows:
                    self._rates[name] = self._rates.get(name, 0.0) + sink.rows / seen.seconds
                    if sink.sojourn is not None:
                        self._latencies[name] = max(self._latencies.get(name, 0.0), sink.sojourn.p95_s)
        if self._live is not None:
            self._live.update(self._view())

    def _view(self):
        at = time.monotonic() - self.began
        rush = "  [bold red]rush hour[/bold red]" if self.feeder.rush else ""
        head = f"[bold]{int(at) // 60}:{int(at) % 60:02}[/bold]   {self.feeder.rate:,.0f} readings/s{rush}"
        log = "\n".join([""] * (LINES - len(self.messages)) + self.messages[-LINES:])
        return Group(Text.from_markup(head), self._dataflows(), Text.from_markup(log))

    def _dataflows(self):
        flows, fragments = self.engine.status()
        table = Table("dataflow", "team", "state", box=None, header_style="bold", pad_edge=False)
        for heading in ("tasks", "shared", "rows out", "rows/s", "latency p95"):
            table.add_column(heading, justify="right")
        for flow in flows:
            latency = self._latencies.get(flow.name)
            style = "green" if flow.state == "running" else "yellow"
            table.add_row(
                f"[bold]{flow.name}[/bold]",
                flow.owner,
                f"[{style}]{flow.state}[/{style}]",
                str(flow.tasks),
                str(flow.shared),
                f"{flow.rows_out:,}",
                f"{self._rates.get(flow.name, 0.0):,.0f}",
                "-" if latency is None else f"{latency:.1f} s",
            )
        submitted = sum(flow.tasks for flow in flows)
        running = len(self.engine.plan.tasks)
        messages = f"{submitted} tasks submitted, {running} run, on {len(fragments)} Spark queries"
        table.caption = f"{messages}; smoothing by {self.alternate}"
        table.caption_justify = "left"
        return table
