"""The words that pictures put on tasks and streams, the same in all of them."""

from __future__ import annotations

from headgate.errors import printable
from headgate.model.stream import ByKey, ByPredicate, Stream
from headgate.model.task import Task

__all__ = ["stream_label", "task_lines"]


def task_lines(task: Task) -> list[str]:
    """The task's id, then its type, or its alternates with their relative values, best first."""
    if not task.is_dynamic:
        return [task.id, task.type]
    ranked = sorted(zip(task.relative_values, task.alternates, strict=True), key=lambda pair: -pair[0])
    return [task.id, *(f"{alternate.name} {value:.3g}" for value, alternate in ranked)]


def stream_label(stream: Stream) -> str:
    """What is particular about a stream: ports other than in and out, routing, side, feedback."""
    parts = []
    if (stream.source_port, stream.target_port) != ("out", "in"):
        parts.append(
            stream.source_port
            if stream.source_port == stream.target_port
            else f"{stream.source_port} → {stream.target_port}"
        )
    if isinstance(stream.routing, ByPredicate):
        parts.append(f"where {stream.routing.where}")
    if isinstance(stream.routing, ByKey):
        parts.append(f"by {', '.join(stream.routing.columns)}")
    if stream.side is not None:
        parts.append({0: "left", 1: "right"}.get(stream.side, f"side {stream.side + 1}"))
    if stream.feedback:
        parts.append("feedback")
    text = printable("; ".join(parts).replace("\n", " "))
    return text if len(text) <= 48 else text[:45] + "..."
