"""The part *sharing* of ``headgate bench nexmark``: all nine queries on one source, submitted together.

Once merged, and once each as a unit of its own, on one Spark over the same events:

- ``sharing_tasks_merged``, ``sharing_tasks_separate``: tasks that the engine runs;
- ``sharing_spark_queries_merged``, ``..._separate``: Spark's streaming queries that it takes to run them;
- ``sharing_cpu_s_merged``, ``..._separate``: CPU seconds of all processes, from submission to the last answer;
- ``sharing_tasks_ratio``, ``sharing_cpu_ratio``: merged over separate.

Merged goes first in each turn: Spark gets quicker from run to run.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable

from headgate.model.strategy import StrategyName
from headgate.report.text_table import text_table
from headgate_benchmarks.measured import Measured, cpu_seconds
from headgate_benchmarks.nexmark.events import Events
from headgate_benchmarks.nexmark.flows import QUERIES
from headgate_benchmarks.nexmark.on_headgate import Running, is_right, make_data, run_under_headgate, written
from headgate_benchmarks.on_spark import on_spark

__all__ = ["sharing"]

EVENTS, FILES, PER_S, ROUNDS = 100_000, 2, 1_000, 1
"""So many events in so many files, events in a second of event time, and how often."""

WAYS = {"merged": StrategyName.HOT, "separate": StrategyName.NONE}

Progress = Callable[[str], None]


def sharing(seed: int, progress: Progress) -> Measured:
    """All nine at once, merged and separate."""
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    running: dict[str, Running] = {}
    wrong: dict[str, str] = {}
    with on_spark() as (spark, folder):
        progress(f"making {EVENTS:,} events, and their answers in batch")
        data = make_data(spark, folder / "events", Events(seed, PER_S), EVENTS, FILES)
        progress("warming up")
        run_under_headgate(spark, ["q0", "q5"], data.folder, folder / "warm")
        for turn in range(ROUNDS):
            for way, strategy in WAYS.items():
                place = folder / f"{way}-{turn}"
                before = cpu_seconds()
                running[way] = run_under_headgate(spark, list(QUERIES), data.folder, place, strategy)
                spent[way].append(cpu_seconds() - before)
                progress(f"all nine, {way}: {running[way].tasks} tasks, {spent[way][-1]:.1f} CPU s")
                for query in QUERIES:
                    if not is_right(query, written(spark, query, place), data):
                        wrong[f"{query} {way}"] = "answers differ from batch SQL"
                shutil.rmtree(place, ignore_errors=True)
    cpu_s = {way: statistics.median(values) for way, values in spent.items()}
    figures: dict[str, float] = {}
    for way, ran in running.items():
        figures[f"sharing_tasks_{way}"] = float(ran.tasks)
        figures[f"sharing_spark_queries_{way}"] = float(ran.spark_queries)
        figures[f"sharing_cpu_s_{way}"] = round(cpu_s[way], 2)
    figures |= {
        "sharing_tasks_ratio": round(running["merged"].tasks / running["separate"].tasks, 4),
        "sharing_cpu_ratio": round(cpu_s["merged"] / cpu_s["separate"], 4),
        "same_rows": float(not wrong),
    }
    return Measured(figures, {"sharing": {"events": EVENTS, "cpu_s": spent}}, _table(running, cpu_s), notes=wrong)


def _table(running: dict[str, Running], cpu_s: dict[str, float]) -> str:
    rows = [("all nine together", "tasks", "Spark queries", "CPU s")]
    rows += [(way, str(one.tasks), str(one.spark_queries), f"{cpu_s[way]:.1f}") for way, one in running.items()]
    return text_table(rows, right=(1, 2, 3))
