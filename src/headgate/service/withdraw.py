"""Withdraw dataflows from a running engine: all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headgate.service.engine import RunningEngine
from headgate.service.submit import applied_facts
from headgate.sharing.applied import Applied

__all__ = ["withdraw"]


def withdraw(
    engine: RunningEngine, names: Sequence[str], *, before: Callable[[Mapping[str, Any]], None] | None = None
) -> Mapping[str, Any]:
    """Withdraw dataflows; answers what is removed of each, and which of its tasks keep running for others.

    ``before`` gets the answer just before the change becomes durable. Raises :class:`~headgate.errors.InputError` for
    an unknown dataflow, with the nearest name; nothing has changed then.
    """
    about = engine.about()

    def announce(applied: Applied) -> None:
        if before is not None:
            before({**about, **applied_facts(applied)})

    return {**about, **applied_facts(engine.withdraw(*dict.fromkeys(names), before=announce))}
