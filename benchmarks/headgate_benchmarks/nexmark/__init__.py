"""``headgate bench nexmark``: Nexmark's queries 0 to 8, side by side, and all of them merged.

- *queries*: each query on Headgate, as Structured Streaming written by hand, and in Flink SQL, in turns over the same
  files of events (:mod:`headgate_benchmarks.nexmark.side_by_side`);
- *sharing*: all nine on one source, under one engine, merged and not (:mod:`headgate_benchmarks.nexmark.together`).

``same_rows`` is 1 if every answer of every system is that of plain batch SQL over the same events. What a system could
not do is told in ``notes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headgate_benchmarks.measured import Measured
from headgate_benchmarks.nexmark.side_by_side import queries
from headgate_benchmarks.nexmark.together import sharing

__all__ = ["PARTS", "run"]

Progress = Callable[[str], None]


def run(seed: int, progress: Progress) -> Measured:
    """Run both parts, each on a Spark of its own."""
    one, two = queries(seed, progress), sharing(seed, progress)
    same = min(one.figures["same_rows"], two.figures["same_rows"])
    return Measured(
        {**one.figures, **two.figures, "same_rows": same},
        {**one.samples, **two.samples},
        f"{one.table}\n{two.table}",
        one.versions,
        {**one.notes, **two.notes},
    )


PARTS: Mapping[str, Callable[[int, Progress], Measured]] = {"queries": queries, "sharing": sharing}
