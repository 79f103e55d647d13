"""What an engine has done for submissions and withdrawals, as a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.model.redrive_result import RedriveResult
from headgate.sharing.change import GraphChange
from headgate.sharing.shared_set import Submission
from headgate.store.entries import Entry

__all__ = ["Acknowledge", "AcknowledgeRedrive", "Applied"]


@dataclass(frozen=True, slots=True)
class Applied:
    """What submissions and withdrawals have changed, and which fragments run it."""

    snapshot: int
    submissions: tuple[Submission, ...]
    withdrawals: tuple[GraphChange, ...]
    touched: tuple[str, ...]
    """The fragments whose plan has changed, new ones among them."""

    started: tuple[str, ...]
    restarted: tuple[str, ...]
    """The fragments that the strategy has stopped and started again."""


Acknowledge = Callable[[Applied], Sequence[Entry]]
"""Gives entries that become durable together with a change; such as the answer to who asked for it."""

AcknowledgeRedrive = Callable[[RedriveResult], Sequence[Entry]]
"""Gives entries that become durable together with a redrive."""
