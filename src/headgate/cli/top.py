"""``headgate top``: what a running engine measures, live."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.errors import InputError
from headgate.model.cluster.observation import Observation
from headgate.store.observations import ObservationHistory, history_of

__all__ = ["top"]

STALE_S = 30.0
"""An engine that has observed nothing for so long is taken to have stopped."""


def top(
    state: Annotated[Path, typer.Option("--state", metavar="DIR", help="The state directory of the engine.")] = Path(
        ".headgate"
    ),
    once: Annotated[bool, typer.Option("--once", help="Show the latest interval and leave.")] = False,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Tasks to show, the busiest first.")] = 20,
) -> None:
    """Show rates, cost per row, latency at the sinks, batches and workers of a running engine.

    Cores are the task's rate times its CPU time per row, which is measured on samples. A batch's time goes into making
    its plan, waiting for a core, running, and committing what came out. Ctrl-C leaves; the engine is not disturbed.

    Example: [bold]headgate top --state .headgate[/bold]
    """
    history = history_of(state)
    console = Console()
    if once or not sys.stdout.isatty():
        console.print(_view(_latest(history, state), rows))
        return
    with Live(console=console, screen=True, refresh_per_second=4) as live:
        while True:
            live.update(_view(_latest(history, state), rows))
            time.sleep(1.0)


def _latest(history: ObservationHistory, state: Path) -> Observation:
    found = history.last()
    if found is None:
        told = f"nothing has been measured in '{state}' yet; an engine observes itself every few seconds while it runs"
        raise InputError("NOTHING_OBSERVED", told)
    return found


def _view(seen: Observation, rows: int) -> RenderableType:
    age_s = max(time.time() - seen.ended, 0.0)
    style = "red" if age_s > STALE_S else "dim"
    note = "; the engine does not seem to be running" if age_s > STALE_S else ""
    head = Text(f"{seen.seconds:.1f} s up to {age_s:.0f} s ago{note}", style=style)
    return Group(head, _tasks(seen, rows), _sinks(seen), _fragments(seen), *([_workers(seen)] if seen.workers else []))


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(columns[0], no_wrap=True, max_width=32)
    for name in columns[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _tasks(seen: Observation, rows: int) -> Table:
    table = _table("task", "rows/s in", "rows/s out", "out per in", "us a row", "cores", "errors", "users")
    cores = {
        task.task: seen.rate_in_per_s(task) * task.profile.cpu_s_per_row if task.profile is not None else None
        for task in seen.tasks
    }
    busiest = sorted(seen.tasks, key=lambda task: (-(cores[task.task] or 0.0), -task.rows_in))
    for task in busiest[:rows]:
        taken = cores[task.task]
        table.add_row(
            task.name,
            f"{seen.rate_in_per_s(task):,.0f}",
            f"{seen.rate_out_per_s(task):,.0f}",
            "-" if task.selectivity is None else f"{task.selectivity:.3g}",
            "-" if task.profile is None else f"{task.profile.cpu_s_per_row * 1e6:,.2f}",
            "-" if taken is None else f"{taken:.3f}",
            f"{task.errors:,}",
            str(len(task.dataflows)),
        )
    if len(busiest) > rows:
        table.caption = f"{len(busiest) - rows} more tasks; --rows shows them"
    return table


def _sinks(seen: Observation) -> Table:
    table = _table("sink", "rows/s", "mean s", "p50 s", "p95 s", "p99 s")
    for sink in seen.sinks:
        times = sink.sojourn
        told = (
            ["-"] * 4 if times is None else [f"{t:.2f}" for t in (times.mean_s, times.p50_s, times.p95_s, times.p99_s)]
        )
        table.add_row(sink.name, f"{sink.rows / seen.seconds:,.0f}", *told)
    return table


def _fragments(seen: Observation) -> Table:
    table = _table("fragment", "batches", "rows/s", "behind", "batch ms", "plan", "wait", "run", "commit")
    for part in seen.fragments:
        spent = (part.batch_s, part.planning_s, part.scheduling_s, part.execution_s, part.commit_s)
        told = [f"{1000 * seconds / part.batches:,.0f}" if part.batches else "-" for seconds in spent]
        rate = f"{part.rows_in / seen.seconds:,.0f}"
        table.add_row(part.id[:16], str(part.batches), rate, f"{part.rows_behind:,}", *told)
    return table


def _workers(seen: Observation) -> Table:
    table = _table("worker", "machine", "VM class", "cores", "busy", "speed")
    for worker in seen.workers:
        speed = "-" if worker.speed is None else f"{worker.speed:.2f}"
        table.add_row(worker.id, worker.machine, worker.vm_class or "-", str(worker.cores), f"{worker.busy:.0%}", speed)
    return table
