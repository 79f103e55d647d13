"""Check what the dataflow has reported against a miner that looks at each window as a whole.

    .venv/bin/python examples/patterns/check_patterns.py out/patterns

The miner knows nothing of changes or of loops: it grows patterns item by item, with the transactions that have them as
the bits of a number, and keeps those that have no frequent pattern above them. A stream that is stopped in its course
leaves rows on their way, so the last transactions are left out. Exit status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from frequent_patterns import maximal_at
from transactions import PHASE, known, transaction

__all__ = ["maximal", "wrong_at"]

WINDOW, THRESHOLD = 200, 12


def maximal(transactions: Sequence[Iterable[str]], threshold: int) -> set[str]:
    """The maximal frequent patterns of some transactions.

    >>> sorted(maximal([{"a", "b"}, {"a", "b", "c"}, {"c"}], 2))
    ['a b', 'c']
    """
    having: dict[str, int] = {}
    for bit, items in enumerate(transactions):
        for item in set(items):
            having[item] = having.get(item, 0) | 1 << bit
    singles = [(item, bits) for item, bits in sorted(having.items()) if bits.bit_count() >= threshold]
    frequent: set[frozenset[str]] = set()

    def grow(pattern: tuple[str, ...], bits: int, rest: Sequence[tuple[str, int]]) -> None:
        for place, (item, own) in enumerate(rest):
            both = bits & own
            if both.bit_count() >= threshold:
                frequent.add(frozenset((*pattern, item)))
                grow((*pattern, item), both, rest[place + 1 :])

    grow((), (1 << len(transactions)) - 1, singles)
    beaten = {larger - {item} for larger in frequent for item in larger}
    return {" ".join(sorted(pattern)) for pattern in frequent - beaten}


def wrong_at(reported: Sequence[dict[str, object]], points: Iterable[int], window: int, threshold: int) -> list[int]:
    """The points at which the report and the miner differ."""
    wrong_points = []
    for point in points:
        there = [transaction(number) for number in range(max(0, point - window + 1), point + 1)]
        if maximal_at(reported, point) != maximal(there, threshold):
            wrong_points.append(point)
    return wrong_points


def main() -> int:
    parser = argparse.ArgumentParser(description="Check reported patterns against a miner.")
    parser.add_argument("folder", type=Path, help="what the dataflow wrote")
    parser.add_argument("--every", type=int, default=25, help="look at every so many transactions")
    parser.add_argument("--leave-out", type=int, default=WINDOW, help="so many of the last, still on their way")
    given = parser.parse_args()
    lines = [line for file in sorted(given.folder.glob("*.json")) for line in file.read_text().splitlines()]
    reported = [json.loads(line) for line in lines]
    last = max((row["at"] for row in reported), default=-1)
    points = range(given.every - 1, last + 1 - given.leave_out, given.every)
    wrong = wrong_at(reported, points, WINDOW, THRESHOLD)
    now = maximal_at(reported, last)
    print(f"{len(points)} points up to transaction {last}, {len(wrong)} of them wrong {wrong or ''}".rstrip())
    print(f"{len(reported)} changes reported; now maximal: {', '.join(sorted(now)) or 'nothing'}")
    print(f"planted in this phase (of {PHASE} transactions): {', '.join(map(' '.join, known(last)))}")
    return 1 if wrong or not points else 0


if __name__ == "__main__":
    sys.exit(main())
