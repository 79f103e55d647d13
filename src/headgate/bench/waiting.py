"""A task that waits for something else, as one that asks a remote service does: what ``headgate bench scale`` runs."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["wait"]


def wait(row: dict[str, Any], seconds: float = 0.02) -> dict[str, Any]:
    """Hand a row on after a while."""
    time.sleep(seconds)
    return row
