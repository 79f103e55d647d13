"""The detector of frequent patterns against miners, whatever the order in which rows reach it."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

HERE = Path(__file__).parents[2] / "examples" / "patterns"
WINDOW, THRESHOLD, COUNT = 12, 3, 30


def example(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(HERE)
        return importlib.import_module(name)


FOUND, MADE, CHECK = (example(name) for name in ("frequent_patterns", "transactions", "check_patterns"))

Rows = list[dict[str, Any]]


def drained(rows: Rows, threshold: int, pick: Callable[[Rows], int], horizon: int = 1_000) -> Rows:
    """What is reported once all rows, and those that lead back, are through the detector, in the order picked."""
    waiting = [candidate for row in rows for candidate in FOUND.candidates(row)]
    states: dict[str, Any] = {}
    report: Rows = []
    while waiting:
        row = waiting.pop(pick(waiting))
        states[row["pattern"]], told = FOUND.detect(states.get(row["pattern"]), row, threshold, horizon)
        for change in FOUND.changes({"pattern": row["pattern"], **told}) if told else ():
            (report if change["of"] == "maximal" else waiting).append(change)
    return report


def events(transactions: list[tuple[str, ...]], window: int) -> Rows:
    found = []
    for at, items in enumerate(transactions):
        found.append({"at": at, "items": list(items), "change": 1})
        if at >= window:
            found.append({"at": at, "items": list(transactions[at - window]), "change": -1})
    return found


def by_definition(transactions: list[tuple[str, ...]], threshold: int) -> set[str]:
    """All patterns counted, those kept that no larger one beats: the definition, and nothing clever."""
    items = sorted({item for one in transactions for item in one})
    sets = [frozenset(some) for size in range(1, len(items) + 1) for some in combinations(items, size)]
    frequent = [one for one in sets if sum(one <= set(t) for t in transactions) >= threshold]
    return {" ".join(sorted(one)) for one in frequent if not any(one < other for other in frequent)}


SMALL = st.lists(st.sets(st.sampled_from("abcde"), min_size=1, max_size=4).map(sorted).map(tuple), max_size=14)


@settings(deadline=None, max_examples=60)
@given(SMALL, st.integers(1, 4), st.integers(1, 6), st.randoms(use_true_random=False))
def test_any_order_gives_the_answer_of_the_definition_at_every_point(
    transactions: list[tuple[str, ...]], threshold: int, window: int, draw: random.Random
) -> None:
    report = drained(events(transactions, window), threshold, lambda waiting: draw.randrange(len(waiting)))
    for point in range(len(transactions)):
        there = transactions[max(0, point - window + 1) : point + 1]
        assert FOUND.maximal_at(report, point) == by_definition(there, threshold) == CHECK.maximal(there, threshold)


def test_what_comes_later_than_the_horizon_counts_from_there_on() -> None:
    rows = events([("a", "b")] * 9, 4)
    now = drained(rows, 2, lambda waiting: len(waiting) - 1, horizon=1)
    assert FOUND.maximal_at(now, 8) == {"a b"}


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_shorter_candidates_give_the_patterns_up_to_that_length(longest: int) -> None:
    row = {"at": 0, "items": ["c", "a", "b", "a"], "change": 1}
    made = [candidate["pattern"] for candidate in FOUND.candidates(row, longest=longest)]
    assert made == [pattern for pattern in ["a", "b", "c", "a b", "a c", "b c", "a b c"] if len(pattern) < 2 * longest]


def test_transactions_can_be_made_again_and_hold_what_was_planted() -> None:
    again = [MADE.transaction(number) for number in range(MADE.PHASE)]
    assert again == [MADE.transaction(number) for number in range(MADE.PHASE)]
    assert all(1 <= len(items) <= 7 and list(items) == sorted(set(items)) for items in again)
    for pattern in MADE.known(0):
        assert sum(set(pattern) <= set(items) for items in again) >= 0.15 * MADE.PHASE
    assert MADE.leaving({"value": 5}, window=6) is None
    assert MADE.leaving({"value": 7}, window=6)["items"] == list(again[1])
