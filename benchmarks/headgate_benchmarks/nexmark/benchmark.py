"""``headgate bench nexmark``: Nexmark's queries 0 to 8, side by side, and all of them merged.

- *queries*: each query on Headgate, as Structured Streaming written by hand, and in Flink SQL, in turns over the same
  files of events (:mod:`headgate_benchmarks.nexmark.side_by_side`);
- *sharing*: all nine on one source, under one engine, merged and not (:mod:`headgate_benchmarks.nexmark.together`).

``same_rows`` is 1 if every answer of every system is that of plain batch SQL over the same events. ``notes`` name what
a system could not do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.figures import bars, dress, picture
from headgate_benchmarks.nexmark.flows import QUERIES
from headgate_benchmarks.nexmark.side_by_side import QuerySizes, measure_queries
from headgate_benchmarks.nexmark.together import SharingSizes, measure_sharing
from headgate_benchmarks.study import Measured, Progress

__all__ = ["NEXMARK"]

SYSTEMS = {
    "headgate": ("Headgate", "#1b6ca8"),
    "pyspark": ("PySpark by hand", "#b8b8b8"),
    "flink": ("Flink SQL", "#e07b39"),
}
HEIGHTS = {"cpu_s_per_million": "CPU seconds for a million events", "events_per_s": "events a second"}


@dataclass(frozen=True, slots=True)
class Sizes:
    queries: QuerySizes = field(default_factory=QuerySizes)
    sharing: SharingSizes = field(default_factory=SharingSizes)


def _queries(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return measure_queries(seed, progress, sizes.queries)


def _sharing(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return measure_sharing(seed, progress, sizes.sharing)


def _whole(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Both parts; the answers of both must be right."""
    one, two = _queries(seed, progress, sizes), _sharing(seed, progress, sizes)
    return one | two | Measured({"same_rows": min(one.figures["same_rows"], two.figures["same_rows"])})


def _plot(measured: Measured, folder: Path) -> list[Path]:
    """CPU and events a second of all queries and systems."""
    there = [name for name in SYSTEMS if any(f"{q}_events_per_s_{name}" in measured.figures for q in QUERIES)]

    def draw(figure: Any) -> None:
        panels = figure.subplots(2, 1, sharex=True)
        for axes, (height, title) in zip(panels, HEIGHTS.items(), strict=True):
            series = {
                SYSTEMS[name][0]: [measured.figures.get(f"{query}_{height}_{name}") for query in QUERIES]
                for name in there
            }
            bars(axes, list(QUERIES), series, [SYSTEMS[name][1] for name in there])
            dress(axes, y=title, legend=int(axes is panels[0]))
        figure.suptitle("Nexmark beyond start-up, one machine; without a bar, a system cannot run the query")

    return [picture(folder / "nexmark.png", (9, 6), draw)]


NEXMARK = Benchmark(
    "nexmark",
    "Nexmark's queries beside Spark by hand and Flink, and all of them merged.",
    {"queries": _queries, "sharing": _sharing},
    Sizes(),
    Sizes(QuerySizes(500, 1_000, 1_000, 50, ("q0", "q5"), short=True), SharingSizes(500, 1, 50, ("q0", "q1", "q5"))),
    "q0_events_per_s_headgate q0_cpu_s_per_million_headgate q5_events_per_s_pyspark q5_cpu_s_per_million_pyspark "
    "queries_compared_pyspark cpu_vs_pyspark rate_vs_pyspark sharing_tasks_* sharing_spark_queries_* sharing_cpu_s_* "
    "sharing_tasks_ratio sharing_cpu_ratio same_rows",
    _plot,
    _whole,
)
