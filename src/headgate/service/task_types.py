"""The task types that are installed, and their options."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict
from typing import Any

from headgate.errors import unknown
from headgate.model.table import Table, TableColumn
from headgate.model.task_type import TaskType
from headgate.tasks.reference import Option, options_of
from headgate.tasks.registry import Registry, default_registry

__all__ = [
    "Registry",
    "describe_task_type",
    "find_task_type",
    "options_table",
    "task_type_table",
    "task_types",
    "type_facts",
]

_TYPES = (
    TableColumn("name", "type"),
    TableColumn("role", "role"),
    TableColumn("state", "state"),
    TableColumn("summary", "what it does"),
    *(TableColumn(key) for key in ("stateful", "package", "inputs", "outputs", "ports_declared", "options", "example")),
)


def _default(option: Option) -> str:
    if option.required:
        return "required"
    if option.default is None:
        return ""
    return option.default if isinstance(option.default, str) else json.dumps(option.default)


_OPTIONS = (
    TableColumn("name", "option"),
    TableColumn("type", "type"),
    TableColumn("default", "default", of=_default),
    TableColumn("description", "meaning"),
)


def task_types() -> Registry:
    """The built-in task types and those of installed packages; its ``problems`` are packages that failed to load."""
    return default_registry()


def find_task_type(registry: Registry, name: str) -> TaskType:
    """The type of that name; raises :class:`~headgate.errors.InputError` with the nearest one if there is none."""
    kind = registry.get(name)
    if kind is None:
        raise unknown("UNKNOWN_TASK_TYPE", f"unknown task type {name[:60]!r}", name, list(registry))
    return kind


def task_type_table(registry: Registry) -> Table:
    """All task types with their summaries; programs get ports, options and an example of each, too."""
    rows = tuple(
        {**type_facts(kind), "state": kind.state.value if kind.stateful else None} for kind in registry.values()
    )
    return Table("Task types", _TYPES, rows)


def type_facts(kind: TaskType) -> dict[str, Any]:
    """A task type for programs."""
    return {
        "name": kind.name,
        "role": kind.role.value,
        "state": kind.state.value,
        "stateful": kind.stateful,
        "package": kind.package,
        "summary": kind.summary.replace("``", ""),
        "inputs": [port.name for port in kind.ports.inputs],
        "outputs": [port.name for port in kind.ports.outputs],
        "ports_declared": kind.ports_declared,
        "options": [asdict(option) for option in options_of(kind)],
        "example": dict(kind.config.example),
    }


def options_table(kind: TaskType) -> Table:
    """The options of a task type."""
    return Table.of("Options", _OPTIONS, options_of(kind))


def describe_task_type(kind: TaskType) -> tuple[list[str], dict[str, Any]]:
    """What a type does and its ports, in paragraphs, and a task of the type as dataflow files have it."""
    state = f", state: {kind.state.value}" if kind.stateful else ""
    text = inspect.cleandoc(kind.config.__doc__ or "").replace("``", "")
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    ports = [", ".join(port.name for port in side) or "none" for side in (kind.ports.inputs, kind.ports.outputs)]
    named = " (or as you name them)" if kind.ports_declared else ""
    example: dict[str, Any] = {"id": "example", "type": kind.name}
    if kind.config.example:
        example["config"] = dict(kind.config.example)
    if kind.ports.inputs:
        example["inputs"] = ["before"] if kind.ports.inputs[0].streams_min == 1 else ["left", "right"]
    head = f"{kind.name} ({kind.role.value}{state})"
    return [head, *paragraphs, f"ports: in: {ports[0]}; out: {ports[1]}{named}"], example
