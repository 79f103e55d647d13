"""Dataflows as plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import counted, printable
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.service_level import ServiceLevel
from headgate.report.labels import stream_label, task_lines

__all__ = ["describe_service_level", "to_text"]


def to_text(dataflow: Dataflow) -> str:
    """Write a dataflow as a list: each task after those that feed it, with what it reads.

    >>> from headgate.documents import parse
    >>> text = "name: tick\\ntasks: [{id: a, type: rate}, {id: b, type: write_console, inputs: [a]}]"
    >>> print(to_text(parse(text, "yaml").dataflow))
    tick (owner nobody): 2 tasks, 1 stream
    throughput at least 0.8 ± 0.05
    <BLANKLINE>
      a  rate
      b  write_console  <- a
    <BLANKLINE>
    """
    graph = Graph(dataflow)
    rows = []
    for task_id in graph.order():
        lines = task_lines(graph.tasks[task_id])
        feeds = [f"{s.source} ({label})" if (label := stream_label(s)) else s.source for s in graph.feeds[task_id]]
        rows.append((task_id, " | ".join(lines[1:]), f"<- {', '.join(feeds)}" if feeds else ""))
    size = f"{counted(len(dataflow.tasks), 'task')}, {counted(len(dataflow.streams), 'stream')}"
    head = [f"{dataflow.name} (owner {dataflow.owner}): {size}"]
    if dataflow.description:
        head += map(printable, dataflow.description.splitlines())
    head += [describe_service_level(dataflow.service_level), ""]
    return "\n".join(head) + "\n" + _aligned(rows)


def describe_service_level(level: ServiceLevel) -> str:
    """Describe a service level in one line."""
    parts = [f"throughput at least {level.throughput_min:g} ± {level.throughput_tolerance:g}"]
    if level.latency_max_s is not None:
        lower = f" (resources may go below {level.latency_min_s:g} s)" if level.latency_min_s is not None else ""
        parts.append(f"latency at most {level.latency_max_s:g} s{lower}")
    if level.budget_per_h is not None:
        parts.append(f"budget {level.budget_per_h} an hour")
    if level.break_even_at_best_per_h is not None:
        parts.append(f"breaks even at {level.break_even_at_worst_per_h} to {level.break_even_at_best_per_h} an hour")
    if level.processors_max is not None:
        parts.append(f"at most {counted(level.processors_max, 'processor')}")
    if level.time_within_min != ServiceLevel().time_within_min:
        parts.append(f"{level.time_within_min:.4g} of the time")
    return ", ".join(parts)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, indented."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "".join(f"  {line.rstrip()}\n" for line in lines)
