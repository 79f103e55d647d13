"""List the dataflows of a running engine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from headgate.service.engine import RunningEngine

__all__ = ["listing"]


def listing(engine: RunningEngine) -> dict[str, Any]:
    """Every dataflow with its owner, state and tasks, in the order of submission."""
    dataflows, _ = engine.status()
    return {**engine.about(), "dataflows": [asdict(flow) for flow in dataflows]}
