"""How a running engine is doing, or one of its dataflows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from headgate.service.engine import RunningEngine

__all__ = ["listing", "status"]


def listing(engine: RunningEngine) -> dict[str, Any]:
    """Every dataflow with its owner, state and tasks, in the order of submission."""
    return {**engine.about(), "dataflows": [asdict(flow) for flow in engine.status()[0]]}


def status(engine: RunningEngine, name: str | None = None) -> dict[str, Any]:
    """Dataflows and fragments; of a single dataflow also its tasks, each with those who share it.

    Raises :class:`~headgate.errors.InputError` for a dataflow that is not there.
    """
    dataflows, fragments = engine.status()
    answer = {**engine.about(), "fragments": [asdict(fragment) for fragment in fragments]}
    if name is None:
        return {**answer, "dataflows": [asdict(flow) for flow in dataflows]}
    running = engine.shared.running
    submitted = running.find(name)
    tasks = []
    for task in submitted.dataflow.tasks:
        signature = submitted.signatures[task.id]
        others = sorted(user for user in running.users(signature) if user != name)
        tasks.append({"task": task.id, "type": task.type, "signature": signature, "shared_with": others})
    mine = [asdict(flow) for flow in dataflows if flow.name == name]
    return {**answer, "dataflows": mine, "tasks": tasks}
