"""The built-in task types: their options, ports and schemas."""

from __future__ import annotations

from headgate.model.task_type import TaskType
from headgate.tasks import (
    blobs,
    generating,
    keyed_python,
    lookups,
    models,
    mqtt,
    parsing,
    relational,
    sinks,
    sources,
    stateful,
    statistics,
    training,
    user_defined,
)

__all__ = ["BUILT_IN"]

BUILT_IN: tuple[TaskType, ...] = (
    *sources.TYPES,
    *generating.TYPES,
    *mqtt.SOURCES,
    *parsing.TYPES,
    *relational.TYPES,
    *lookups.TYPES,
    *models.TYPES,
    *blobs.TYPES,
    *stateful.TYPES,
    *statistics.TYPES,
    *training.TYPES,
    *user_defined.TYPES,
    *keyed_python.TYPES,
    *sinks.TYPES,
    *mqtt.SINKS,
)
"""Every built-in task type, sources first, sinks last."""
