"""Whether an engine can do its work: what /readyz says."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from headgate.service.engine import RunningEngine
from headgate.store.observations import ObservationHistory

__all__ = ["readiness"]

LEAST_FREE_BYTES = 50_000_000
SILENT_S = 120.0
"""An engine measures itself every few seconds."""


def readiness(engine: RunningEngine, state: Path, since: float) -> dict[str, Any]:
    """The checks, and whether all of them are well. ``since`` is when the engine began to serve."""
    failures = sum(fragment.failure is not None for fragment in engine.status()[1])
    free_bytes = shutil.disk_usage(state).free
    last = ObservationHistory(state / "observations").last()
    silent_s = time.time() - max(since, last.ended if last is not None else 0.0)
    checks = [
        _check("engine", True, f"plan snapshot {engine.about()['snapshot']}"),
        _check("state directory", os.access(state, os.W_OK), "writable" if os.access(state, os.W_OK) else "read-only"),
        _check("disk", free_bytes >= LEAST_FREE_BYTES, f"{free_bytes // 1_000_000:,} MB are free"),
        _check("measurements", silent_s < SILENT_S, f"the last one is {max(silent_s, 0.0):.0f} s old"),
    ]
    detail = f"{failures} fragments have failed" if failures else "no fragment has failed"
    # What one tenant has broken does not take the service away from the others.
    checks.append({"name": "fragments", "well": failures == 0, "required": False, "detail": detail})
    return {"ready": all(check["well"] for check in checks if check["required"]), "checks": checks}


def _check(name: str, well: bool, detail: str) -> dict[str, Any]:
    return {"name": name, "well": well, "required": True, "detail": detail}
