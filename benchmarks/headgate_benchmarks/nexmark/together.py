"""The part *sharing* of ``headgate bench nexmark``: all nine queries on one source, submitted together.

Once merged, and once each as a unit of its own, on one Spark over the same events:

- ``sharing_tasks_merged``, ``sharing_tasks_separate``: tasks that the engine runs;
- ``sharing_spark_queries_merged``, ``..._separate``: Spark's streaming queries that it takes to run them;
- ``sharing_cpu_s_merged``, ``..._separate``: CPU seconds of all processes, from submission to the last answer;
- ``sharing_tasks_ratio``, ``sharing_cpu_ratio``: merged over separate.

Merged goes first: Spark gets faster from run to run.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass

from headgate.model.strategy import StrategyName
from headgate.model.table import Table
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.nexmark.events import Events
from headgate_benchmarks.nexmark.flows import QUERIES
from headgate_benchmarks.nexmark.on_headgate import is_right, make_data, run_under_headgate, written
from headgate_benchmarks.on_spark import on_spark
from headgate_benchmarks.study import Measured, Progress, columns

__all__ = ["SharingSizes", "measure_sharing"]

WAYS = {"merged": StrategyName.HOT, "separate": StrategyName.NONE}


@dataclass(frozen=True, slots=True)
class SharingSizes:
    events: int = 100_000
    files: int = 2
    per_s: int = 1_000
    queries: tuple[str, ...] = tuple(QUERIES)


def measure_sharing(seed: int, progress: Progress, sizes: SharingSizes) -> Measured:
    """All nine at once, merged and separate."""
    rows: dict[str, dict[str, float]] = {}
    wrong: dict[str, str] = {}
    with on_spark() as (spark, folder):
        progress(f"making {sizes.events:,} events, and their answers in batch")
        data = make_data(spark, folder / "events", Events(seed, sizes.per_s), sizes.events, sizes.files, sizes.queries)
        progress("warming up")
        run_under_headgate(spark, ["q0", "q5"], data.folder, folder / "warm")
        for way, strategy in WAYS.items():
            place = folder / way
            before = cpu_seconds()
            running = run_under_headgate(spark, sizes.queries, data.folder, place, strategy)
            rows[way] = {**asdict(running), "cpu_s": cpu_seconds() - before}
            progress(f"all nine, {way}: {running.tasks} tasks, {rows[way]['cpu_s']:.1f} CPU s")
            for query in sizes.queries:
                if not is_right(query, written(spark, query, place), data):
                    wrong[f"{query} {way}"] = "answers differ from batch SQL"
            shutil.rmtree(place, ignore_errors=True)
    figures = {f"sharing_{key}_{way}": float(value) for way, row in rows.items() for key, value in row.items()}
    for key in ("tasks", "cpu_s"):
        ratio = rows["merged"][key] / rows["separate"][key]
        figures[f"sharing_{key.removesuffix('_s')}_ratio"] = ratio
    figures["same_rows"] = float(not wrong)
    shown = columns(
        ("way", "all nine together"),
        ("tasks", "tasks", "", ".0f"),
        ("spark_queries", "Spark queries", "", ".0f"),
        ("cpu_s", "CPU", "s", ".1f"),
    )
    table = Table("", shown, tuple({"way": way, **row} for way, row in rows.items()))
    samples = {"sharing": {"events": sizes.events, "cpu_s": {way: [row["cpu_s"]] for way, row in rows.items()}}}
    return Measured(figures, samples, (table,), notes=wrong)
