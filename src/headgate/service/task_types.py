"""The task types that are installed."""

from __future__ import annotations

from headgate.tasks.registry import Registry, default_registry

__all__ = ["Registry", "task_types"]


def task_types() -> Registry:
    """The built-in task types and those of installed packages; its ``problems`` are packages that failed to load."""
    return default_registry()
