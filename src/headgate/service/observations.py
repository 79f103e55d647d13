"""What an engine has measured, from its state directory, whether or not it runs."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from headgate.model.cluster.observation import Observation
from headgate.store.observations import history_of

__all__ = ["latest"]


def latest(state: Path, since: float = 0.0, most: int = 1) -> list[Observation]:
    """The newest observations that ended after a moment, oldest first."""
    history = history_of(state)
    if most == 1:
        last = history.last()
        return [last] if last is not None and last.ended > since else []
    return list(deque(history.read(since), maxlen=most))
