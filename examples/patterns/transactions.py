"""Transactions with patterns that are known: a shop in which some things are bought together for a while.

Transaction *n* follows from the seed and *n* alone, so that a replayed epoch makes the same ones and a checker can make
them again. What is bought together changes every :data:`PHASE` transactions.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["ITEMS", "PHASE", "Pattern", "entering", "known", "leaving", "transaction"]

Pattern = tuple[str, ...]
Row = dict[str, Any]

ITEMS = tuple(f"i{number:02d}" for number in range(40))
PHASE = 150
"""Transactions until other things are bought together."""

AT_ONCE = 3
"""Patterns at a time."""

SHARE = 0.75
"""The share of transactions that have a pattern; the others are chance."""

KEPT = 0.95
"""How surely a transaction with a pattern has each of its items."""


def known(number: int, seed: int = 1) -> tuple[Pattern, ...]:
    """The patterns that transactions of this number's phase may have.

    >>> known(0) == known(PHASE - 1), known(0) == known(PHASE)
    (True, False)
    """
    draw = random.Random(f"patterns {seed} {number // PHASE}")
    return tuple(tuple(sorted(draw.sample(ITEMS, draw.randint(2, 4)))) for _ in range(AT_ONCE))


def transaction(number: int, seed: int = 1) -> Pattern:
    """The items of a transaction, in order: seven at most.

    >>> transaction(17) == transaction(17)
    True
    """
    draw = random.Random(f"transaction {seed} {number}")
    bought = {draw.choice(ITEMS) for _ in range(draw.randint(1, 3))}
    if draw.random() < SHARE:
        bought |= {item for item in draw.choice(known(number, seed)) if draw.random() < KEPT}
    return tuple(sorted(bought))


def entering(row: Row, seed: int = 1) -> Row:
    """The transaction that enters the window at a tick of the clock."""
    number = row["value"]
    return {"at": number, "items": list(transaction(number, seed)), "change": 1}


def leaving(row: Row, window: int, seed: int = 1) -> Row | None:
    """The transaction that leaves the window at a tick of the clock, if one does."""
    number = row["value"]
    if number < window:
        return None
    return {"at": number, "items": list(transaction(number - window, seed)), "change": -1}
