"""Headgate runs many people's streaming dataflows on one Spark, as cheaply as their service levels allow.

The names below are loaded when they are first used, so that ``import headgate`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.documents import parse, read, write
    from headgate.documents.builder import Flow, alternate
    from headgate.errors import Fault, HeadgateError, InputError, InvalidDataflow
    from headgate.model.dataflow import Dataflow
    from headgate.model.service_level import ServiceLevel
    from headgate.model.task_type import TaskConfig, TaskType
    from headgate.sharing.deduplicate import deduplicate
    from headgate.sharing.signature import sign
    from headgate.tasks.registry import Registry, default_registry

__all__ = [
    "Dataflow",
    "Fault",
    "Flow",
    "HeadgateError",
    "InputError",
    "InvalidDataflow",
    "Registry",
    "ServiceLevel",
    "TaskConfig",
    "TaskType",
    "__version__",
    "alternate",
    "deduplicate",
    "default_registry",
    "parse",
    "read",
    "sign",
    "write",
]

__version__ = "0.1.0"

_HOMES = {
    "Flow": "documents.builder",
    "alternate": "documents.builder",
    "Fault": "errors",
    "HeadgateError": "errors",
    "InputError": "errors",
    "InvalidDataflow": "errors",
    "parse": "documents",
    "read": "documents",
    "write": "documents",
    "Dataflow": "model.dataflow",
    "Registry": "tasks.registry",
    "default_registry": "tasks.registry",
    "ServiceLevel": "model.service_level",
    "TaskConfig": "model.task_type",
    "TaskType": "model.task_type",
    "deduplicate": "sharing.deduplicate",
    "sign": "sharing.signature",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"headgate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
