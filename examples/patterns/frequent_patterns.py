"""Frequent patterns over a sliding window: candidates, a detector that learns from itself, and what it reports.

A pattern is a set of items, written in order with blanks between. It is *frequent* while at least ``threshold``
transactions of the window have it, and *maximal* while it is frequent and no pattern with one item more is. (If any
larger one is frequent, then so is one with a single item more.)

Everything is a change: a row says that from the transaction ``at`` on something counts so many more or fewer. The
detector keeps the changes of each pattern by ``at``, whatever the order in which they come, and tells by how much the
answer changes, also in the past. So the answer for a point of the stream is the sum of the changes up to that point,
and it is complete as soon as all rows up to there have been once around the loop; micro-batches do not matter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

__all__ = ["BEGIN", "candidates", "changes", "detect", "maximal_at"]

Row = dict[str, Any]
Level = tuple[int, int, int]
"""From which transaction on, how many of the window's have the pattern, and how many larger ones are frequent."""

BEGIN = -1
"""Before the first transaction."""


def candidates(row: Row, longest: int | None = None) -> list[Row]:
    """A change of the count of every pattern that a transaction has; with ``longest``, of those up to so many items.

    >>> [made["pattern"] for made in candidates({"at": 7, "items": ["b", "a"], "change": 1})]
    ['a', 'b', 'a b']
    """
    items = sorted(set(row["items"]))
    most = len(items) if longest is None else min(longest, len(items))
    return [
        {"pattern": " ".join(some), "of": "count", "at": row["at"], "change": row["change"]}
        for size in range(1, most + 1)
        for some in combinations(items, size)
    ]


def detect(
    state: list[Level] | None, row: Row, threshold: int, horizon: int = 1_000
) -> tuple[list[Level], dict[str, list[Row]] | None]:
    """Take in a change of one pattern, and tell what that changes about its being frequent and maximal.

    What comes more than ``horizon`` transactions after a later one counts from there on: the answer for now is right,
    that for the time between is not corrected.

    >>> levels, result = detect(None, {"of": "count", "at": 5, "change": 1}, threshold=1)
    >>> result["changes"]
    [{'of': 'frequent', 'at': 5, 'change': 1}, {'of': 'maximal', 'at': 5, 'change': 1}]
    >>> levels, result = detect(levels, {"of": "supersets", "at": 9, "change": 1}, threshold=1)
    >>> result["changes"]
    [{'of': 'maximal', 'at': 9, 'change': -1}]
    """
    levels = state or [(BEGIN, 0, 0)]
    at, change = max(row["at"], levels[0][0]), row["change"]
    first = bisect_right(levels, at, key=lambda level: level[0]) - 1
    if levels[first][0] != at:
        first += 1
        levels.insert(first, (at, *levels[first - 1][1:]))
    more, larger = (change, 0) if row["of"] == "count" else (0, change)
    made: list[Row] = []
    was_off = [0, 0]
    for place in range(first, len(levels)):
        begins, count, supersets = levels[place]
        levels[place] = (begins, count + more, supersets + larger)
        before = _answers(count, supersets, threshold)
        after = _answers(count + more, supersets + larger, threshold)
        for kind, of in enumerate(("frequent", "maximal")):
            off = after[kind] - before[kind]
            if off != was_off[kind]:
                made.append({"of": of, "at": begins, "change": off - was_off[kind]})
                was_off[kind] = off
    return _recent(levels, horizon), {"changes": made} if made else None


def _answers(count: int, supersets: int, threshold: int) -> tuple[bool, bool]:
    """Whether a pattern is frequent, and whether it is maximal too."""
    return count >= threshold, count >= threshold and supersets <= 0


def _recent(levels: list[Level], horizon: int) -> list[Level]:
    """The levels of the last so many transactions, and the one that they begin with."""
    old = bisect_right(levels, levels[-1][0] - horizon, key=lambda level: level[0]) - 1
    return levels[old:] if old > 0 else levels


def changes(row: Row) -> list[Row]:
    """What the detector found, as rows for those who must know: for the report, and for patterns with an item less.

    >>> changed = [{"of": "frequent", "at": 5, "change": 1}, {"of": "maximal", "at": 5, "change": 1}]
    >>> [(made["pattern"], made["of"]) for made in changes({"pattern": "a b", "changes": changed})]
    [('b', 'supersets'), ('a', 'supersets'), ('a b', 'maximal')]
    """
    items = row["pattern"].split(" ")
    smaller = [" ".join(items[:at] + items[at + 1 :]) for at in range(len(items))] if len(items) > 1 else []
    made: list[Row] = []
    for changed in row["changes"]:
        result = {"at": changed["at"], "change": changed["change"]}
        if changed["of"] == "maximal":
            made.append({"pattern": row["pattern"], "of": "maximal", **result})
        else:
            made += [{"pattern": pattern, "of": "supersets", **result} for pattern in smaller]
    return made


def maximal_at(reported: Iterable[Row], point: int) -> set[str]:
    """The maximal frequent patterns after a transaction, from the rows of the report.

    >>> reported = [{"pattern": "a", "at": 2, "change": 1}, {"pattern": "a", "at": 4, "change": -1}]
    >>> maximal_at(reported, 3), maximal_at(reported, 4)
    ({'a'}, set())
    """
    sums: Counter[str] = Counter()
    for row in reported:
        if row["at"] <= point:
            sums[row["pattern"]] += row["change"]
    return {pattern for pattern, total in sums.items() if total > 0}
