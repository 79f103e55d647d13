"""The built-in task types: their options, ports and schemas."""

from __future__ import annotations

from headgate.model.task_type import TaskType
from headgate.tasks import relational, sinks, sources, stateful, user_defined

__all__ = ["BUILT_IN"]

BUILT_IN: tuple[TaskType, ...] = (
    *sources.TYPES,
    *relational.TYPES,
    *stateful.TYPES,
    *user_defined.TYPES,
    *sinks.TYPES,
)
"""Every built-in task type, sources first, sinks last."""
