"""Measure what each operator costs and how many rows go round, and write a file for `headgate size`.

    .venv/bin/python examples/patterns/measure_patterns.py --write examples/sizing/patterns_measured.yaml

Also what shorter candidates would be worth: the F1 score of the patterns found when candidates have at most so many
items. Times are processor seconds in one process, without Spark, with the state packed and unpacked as the host does.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from collections import deque
from pathlib import Path
from typing import Any

from check_patterns import THRESHOLD, WINDOW, maximal
from frequent_patterns import candidates, changes, detect, maximal_at
from transactions import entering, leaving, transaction

__all__ = ["Measured", "main", "stream"]

RATE_PER_S = 3_200
"""Transactions in a second that enter, ten times the paper's; as many leave."""


class Measured:
    """Rows and processor seconds of each operator."""

    def __init__(self) -> None:
        self.rows = {"generator": 0, "detector": 0, "reporter": 0}
        self.seconds = dict.fromkeys(self.rows, 0.0)
        self.made = {"candidates": 0, "again": 0}

    def per_s(self, operator: str) -> float:
        return self.rows[operator] / self.seconds[operator]


def stream(count: int, longest: int | None = None) -> tuple[list[dict[str, Any]], Measured]:
    """What is reported of the first transactions, and what it took."""
    measured, report = Measured(), list[dict[str, Any]]()
    states: dict[str, bytes] = {}
    clock = time.process_time
    for number in range(count):
        waiting: deque[dict[str, Any]] = deque()
        for event in (entering({"value": number}), leaving({"value": number}, WINDOW)):
            if event is not None:
                began = clock()
                waiting += candidates(event, longest)
                measured.seconds["generator"] += clock() - began
                measured.rows["generator"] += 1
        measured.made["candidates"] += len(waiting)
        while waiting:
            row = waiting.popleft()
            began = clock()
            stored = states.get(row["pattern"])
            state, result = detect(None if stored is None else pickle.loads(stored), row, THRESHOLD)
            states[row["pattern"]] = pickle.dumps(state, 5)
            reported = changes({"pattern": row["pattern"], **result}) if result else []
            measured.seconds["detector"] += clock() - began
            measured.rows["detector"] += 1
            began = clock()
            mine = [json.dumps(change) for change in reported if change["of"] == "maximal"]
            if mine:
                measured.seconds["reporter"] += clock() - began
                measured.rows["reporter"] += len(mine)
                report += map(json.loads, mine)
            waiting += [change for change in reported if change["of"] != "maximal"]
            measured.made["again"] += len(reported) - len(mine)
    return report, measured


def value(report: list[dict[str, Any]], count: int) -> float:
    """The mean F1 score of what is reported, over points of the stream."""
    scores = []
    for point in range(WINDOW, count, 50):
        reported = maximal_at(report, point)
        wanted = maximal([transaction(n) for n in range(point - WINDOW + 1, point + 1)], THRESHOLD)
        scores.append(2 * len(reported & wanted) / (len(reported) + len(wanted)))
    return sum(scores) / len(scores)


def _rounded(rate: float) -> int:
    return int(float(f"{rate:.2g}"))


def sizing(measured: Measured) -> str:
    """The operators as `headgate size` reads them."""
    rows, made = measured.rows, measured.made
    each, again = made["candidates"] / rows["generator"], made["again"] / rows["detector"]
    result = rows["reporter"] / rows["detector"]
    generator, detector, reporter = (f"service_rate_per_s: {_rounded(measured.per_s(name))}" for name in rows)
    return f"""\
# Frequent patterns as examples/patterns finds them; the detector sends some rows to itself. Service rates are those of
# one processor of the machine that examples/patterns/measure_patterns.py ran on, without Spark.
name: patterns_measured
processors: 8
operators:
  - {{name: generator, arrival_rate_per_s: {2 * RATE_PER_S}, {generator}, to: {{detector: {each:.3g}}}}}
  - {{name: detector, {detector}, to: {{detector: {again:.3g}, reporter: {result:.3g}}}}}
  - {{name: reporter, {reporter}}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure cost, rows and the value of shorter candidates.")
    parser.add_argument("--count", type=int, default=1_000, help="how many transactions enter")
    parser.add_argument("--write", type=Path, help="where to write the file for headgate size")
    given = parser.parse_args()
    for longest in (None, 3, 2):
        report, measured = stream(given.count, longest)
        rows, most = measured.rows, "all" if longest is None else f"up to {longest}"
        print(
            f"candidates: {most}; value {value(report, given.count):.2f}; {rows['detector'] / given.count:.0f} rows "
            f"into the detector for each transaction, {measured.made['again']} of {rows['detector']} by the loop; "
            f"{len(report)} reported"
        )
        if longest is None and given.write is not None:
            given.write.write_text(sizing(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
