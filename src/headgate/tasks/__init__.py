"""The built-in task types: options, ports, columns and work of each."""

from __future__ import annotations

from headgate.model.task_type import TaskType
from headgate.tasks import (
    keyed,
    lookup,
    parse,
    relational,
    reshape,
    sinks,
    sources,
    streams,
    user_defined,
    windows,
)

__all__ = ["BUILT_IN"]

BUILT_IN: tuple[TaskType, ...] = (
    *sources.TYPES,
    streams.READ_STREAM,
    *parse.TYPES,
    *relational.TYPES,
    *reshape.TYPES,
    *lookup.TYPES,
    *keyed.TYPES,
    *windows.TYPES,
    *user_defined.TYPES,
    *sinks.TYPES,
)
"""Every built-in task type, sources first, sinks last."""
