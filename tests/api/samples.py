"""Dataflows for tests of the API, as their JSON documents."""

from __future__ import annotations

from typing import Any


def document(name: str, where: str = "value > 1", **more: Any) -> dict[str, Any]:
    tasks = [
        {"id": "r", "type": "rate"},
        {"id": "f", "type": "filter", "config": {"where": where}, "inputs": ["r"]},
        {"id": "w", "type": "write_memory", "config": {"name": name}, "inputs": ["f"]},
    ]
    return {"name": name, "tasks": tasks, **more}
