"""What ``headgate top`` shows of an interval, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.model.names import Signature
from headgate.model.table import Table, TableColumn
from headgate.service.live_figures import observed_figures

__all__ = ["top_tables"]

TASK = (
    TableColumn("task", "task"),
    TableColumn("in_per_s", "in", "rows/s", ",.0f"),
    TableColumn("out_per_s", "out", "rows/s", ",.0f"),
    TableColumn("selectivity", "out per in", form=".3g"),
    TableColumn("cpu_us_per_row", "CPU", "us/row", ",.2f"),
    TableColumn("cores", "cores", form=".3f"),
    TableColumn("errors", "errors", form=",d"),
    TableColumn("users", "users"),
)
SINK = (
    TableColumn("sink", "sink"),
    TableColumn("rows_per_s", "rate", "rows/s", ",.0f"),
    TableColumn("mean_s", "mean", "s", ".2f"),
    TableColumn("p50_s", "p50", "s", ".2f"),
    TableColumn("p95_s", "p95", "s", ".2f"),
    TableColumn("p99_s", "p99", "s", ".2f"),
)
PARTS = ("batch", "planning", "scheduling", "execution", "commit")
FRAGMENT = (
    TableColumn("fragment", "fragment"),
    TableColumn("batches", "batches"),
    TableColumn("rows_per_s", "rate", "rows/s", ",.0f"),
    TableColumn("behind", "rows waiting", form=",d"),
    TableColumn("batch_ms", "batch", "ms", ",.0f"),
    TableColumn("planning_ms", "plan", "ms", ",.0f"),
    TableColumn("scheduling_ms", "wait", "ms", ",.0f"),
    TableColumn("execution_ms", "run", "ms", ",.0f"),
    TableColumn("commit_ms", "commit", "ms", ",.0f"),
)
MACHINE = (
    TableColumn("machine", "machine", of=lambda machine: machine.name),
    TableColumn("vm_class", "VM class"),
    TableColumn("state", "state"),
    TableColumn("workers", "workers"),
    TableColumn("cores", "cores"),
    TableColumn("busy", "busy", form=".0%"),
    TableColumn("speed", "speed", form=".2f"),
)


def top_tables(
    seen: Observation, rows: int, *notes: str, minute: Observation | None = None, levels: Sequence[Table] = ()
) -> tuple[Table, ...]:
    """The figures of the last minute and service levels, then the busiest tasks and all else of an interval."""
    tasks = sorted(_tasks(seen), key=lambda row: (-(row["cores"] or 0.0), -row["in_per_s"]))
    more = (f"{len(tasks) - rows} more tasks; show them with --rows.",) if len(tasks) > rows else ()
    sinks = tuple(
        {"sink": sink.name, "rows_per_s": sink.rows / seen.seconds, **(asdict(sink.sojourn) if sink.sojourn else {})}
        for sink in seen.sinks
    )
    names = {task.task: task.name for task in seen.tasks}
    fragments = tuple(_fragment(part, seen.seconds, names) for part in seen.fragments)
    return (
        observed_figures(minute or seen),
        *levels,
        Table("Tasks", TASK, tuple(tasks[:rows]), more),
        Table("Sinks", SINK, sinks),
        Table("Fragments", FRAGMENT, fragments),
        Table.of("Machines", MACHINE, seen.machines, *notes),
    )


def _tasks(seen: Observation) -> list[dict[str, Any]]:
    return [
        {
            "task": task.name,
            "in_per_s": seen.rate_in_per_s(task),
            "out_per_s": seen.rate_out_per_s(task),
            "selectivity": task.selectivity,
            "cpu_us_per_row": None if task.profile is None else task.profile.cpu_s_per_row * 1e6,
            "cores": None if task.profile is None else seen.rate_in_per_s(task) * task.profile.cpu_s_per_row,
            "errors": task.errors,
            "users": len(task.dataflows),
        }
        for task in seen.tasks
    ]


def _fragment(part: FragmentObservation, seconds: float, names: dict[Signature, str]) -> dict[str, Any]:
    """A fragment under the name of its root task; times are means of its batches."""
    times = {f"{name}_ms": 1000 * getattr(part, f"{name}_s") / part.batches if part.batches else None for name in PARTS}
    return {
        "fragment": next((names[task] for task in part.tasks if task in names), part.id),
        "batches": part.batches,
        "rows_per_s": part.rows_in / seconds,
        "behind": part.rows_behind,
        **times,
    }
