"""Dataflows as Mermaid, which many wikis and code hosts draw."""

from __future__ import annotations

from headgate.model.dataflow import Dataflow
from headgate.report.labels import stream_label, task_lines
from headgate.tasks.registry import Registry

__all__ = ["to_mermaid"]

_SHAPES = {"source": ("([", "])"), "step": ("[", "]"), "sink": ("[(", ")]")}


def to_mermaid(dataflow: Dataflow, registry: Registry) -> str:
    """Draw a dataflow as a Mermaid flowchart.

    >>> from headgate.documents import parse
    >>> from headgate.tasks.registry import default_registry
    >>> flow = parse("tasks: [{id: a, type: rate}, {id: b, type: write_console, inputs: [a]}]", "yaml").dataflow
    >>> print(to_mermaid(flow, default_registry()))
    flowchart LR
        t0(["a<br/>rate"])
        t1[("b<br/>write_console")]
        t0 --> t1
    <BLANKLINE>
    """
    lines = ["flowchart LR"]
    nodes = {task.id: f"t{index}" for index, task in enumerate(dataflow.tasks)}
    for task in dataflow.tasks:
        kind = registry.get(task.type)
        left, right = _SHAPES[kind.role.value if kind else "step"]
        lines.append(f'    {nodes[task.id]}{left}"{"<br/>".join(map(_escaped, task_lines(task)))}"{right}')
    for stream in dataflow.streams:
        label = stream_label(stream)
        arrow = "-.->" if stream.feedback else "-->"
        message = f'|"{_escaped(label)}"|' if label else ""
        lines.append(f"    {nodes[stream.source]} {arrow}{message} {nodes[stream.target]}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    # A number sign begins a character by name or number in Mermaid.
    text = text.replace("#", "#35;").replace("&", "&amp;").replace('"', "#quot;")
    return text.replace("<", "&lt;").replace(">", "&gt;")
