"""Withdraw dataflows from a running engine: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.service.engine import RunningEngine
from headgate.service.serve import Acknowledger, acknowledging
from headgate.service.submit import applied_facts

__all__ = ["withdraw"]


def withdraw(engine: RunningEngine, names: Sequence[str], acknowledge: Acknowledger | None = None) -> Mapping[str, Any]:
    """Withdraw dataflows; answers what is removed of each, and which of its tasks keep running for others.

    What ``acknowledge`` makes of the answer becomes durable with the change. Raises
    :class:`~headgate.errors.InputError` for an unknown dataflow, with the nearest name; nothing has changed then.
    """
    about = engine.about()
    answer = acknowledging(acknowledge, lambda applied: {**about, **applied_facts(applied)})
    applied = engine.withdraw(*dict.fromkeys(names), acknowledge=answer)
    return {**about, **applied_facts(applied)}
