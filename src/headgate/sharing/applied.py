"""What an engine has done for submissions and withdrawals, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sharing.change import GraphChange
from headgate.sharing.shared_set import Submission

__all__ = ["Applied"]


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
