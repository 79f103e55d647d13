"""Withdraw dataflows from a running engine: all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.service.engine import RunningEngine
from headgate.service.submit import applied_facts

__all__ = ["withdraw"]


def withdraw(engine: RunningEngine, names: Sequence[str]) -> dict[str, Any]:
    """Withdraw dataflows; tells of each what is removed and what goes on, and for whom.

    Raises :class:`~headgate.errors.InputError` for one that is not there, with the nearest name; nothing has changed
    then.
    """
    return applied_facts(engine.withdraw(*dict.fromkeys(names)))
