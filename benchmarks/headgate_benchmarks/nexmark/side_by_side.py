"""The part *queries* of ``headgate bench nexmark``: each query on Headgate, by hand in PySpark, and in Flink SQL.

Every system runs each query twice over the same files: over few events and over many. The difference of the two runs is
the cost of events beyond start-up:

- ``qN_events_per_s_SYSTEM`` by the clock;
- ``qN_cpu_s_per_million_SYSTEM`` in CPU seconds of all processes;
- ``cpu_vs_SYSTEM``, ``rate_vs_SYSTEM``: Headgate's over the system's, the geometric mean of all queries of both.

All are warm: each has answered the query once, over few events, before a run that is counted. Both runs' answers are
compared with batch SQL. ``notes`` name queries that a system cannot do, and figures that got lost in noise.
"""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.model.table import Table
from headgate_benchmarks.beyond_start_up import Cost
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.nexmark import flink
from headgate_benchmarks.nexmark.by_hand import run_by_hand
from headgate_benchmarks.nexmark.events import Events
from headgate_benchmarks.nexmark.flows import QUERIES
from headgate_benchmarks.nexmark.on_headgate import Data, is_right, make_data, run_under_headgate, written
from headgate_benchmarks.on_spark import on_spark
from headgate_benchmarks.study import Measured, Progress, columns

__all__ = ["QuerySizes", "measure_queries"]


@dataclass(frozen=True, slots=True)
class QuerySizes:
    """Events of the two runs, in a file (a micro-batch) and in a second of event time; and which queries.

    Short: no run to warm up, and no Flink unless it is installed.
    """

    few: int = 100_000
    many: int = 1_000_000
    per_file: int = 100_000
    per_s: int = 1_000
    queries: tuple[str, ...] = tuple(QUERIES)
    short: bool = False


Way = Callable[[str, Path, Path], object]
"""Runs a query over a folder of events and writes its answers below another one."""


@dataclass
class _System:
    """A system, the costs of queries on it, and what it could not do."""

    name: str
    way: Way
    sizes: QuerySizes
    read: Callable[[Any, str, Path], Any] = written
    costs: dict[str, Cost] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    wrong: int = 0

    def measure(self, spark: Any, query: str, sizes: tuple[Data, Data], folder: Path, progress: Progress) -> None:
        """Run a query over few events to warm up, over few again, and over many."""
        about, cpu_s, wall_s = f"{query} {self.name}", [], []
        for turn, data in enumerate((sizes[0], *sizes)):
            if self.sizes.short and not turn:
                continue
            place = folder / f"{self.name}-{query}-{turn}"
            before, began = cpu_seconds(), time.monotonic()
            try:
                self.way(query, data.folder, place)
            except Exception as error:  # whatever it is, the other queries and systems can go on
                self.notes[about] = f"cannot be run: {_first_words(error)}"
                self.wrong += self.name != "flink"
                progress(f"{about}: {self.notes[about]}")
                return
            if not turn:
                shutil.rmtree(place, ignore_errors=True)
                continue
            wall_s.append(time.monotonic() - began)
            cpu_s.append(cpu_seconds() - before)
            if not is_right(query, self.read(spark, query, place), data):
                self.notes[about] = f"answers over {data.count:,} events differ from batch SQL"
                self.wrong += 1
            shutil.rmtree(place, ignore_errors=True)
        cost = Cost((cpu_s[0], cpu_s[1]), (wall_s[0], wall_s[1]), (sizes[0].count, sizes[1].count))
        self.costs[query] = cost
        if not cost.is_clear:
            self.notes.setdefault(about, "no figure: the difference between few and many events is within noise")
        progress(f"{about}: {wall_s[0]:.1f} s and {wall_s[1]:.1f} s, {cpu_s[0]:.1f} and {cpu_s[1]:.1f} CPU s")

    @property
    def clear(self) -> dict[str, Cost]:
        """Costs above noise; in the short form all."""
        return {query: cost for query, cost in self.costs.items() if cost.is_clear or self.sizes.short}


def measure_queries(seed: int, progress: Progress, sizes: QuerySizes) -> Measured:
    """Each query on every system."""
    notes: dict[str, str] = {}
    with on_spark() as (spark, folder):
        progress(f"making {sizes.few:,} and {sizes.many:,} events, and their answers in batch")
        events = Events(seed, sizes.per_s)
        few, many = (
            make_data(spark, folder / f"events-{count}", events, count, max(1, count // sizes.per_file), sizes.queries)
            for count in (sizes.few, sizes.many)
        )
        systems = [
            _System("headgate", lambda query, source, place: run_under_headgate(spark, [query], source, place), sizes),
            _System("pyspark", lambda query, source, place: run_by_hand(spark, query, source, place), sizes),
        ]
        with _flink(folder / "flink.log", progress, notes, sizes) as peer:
            if peer is not None:
                systems.append(_System("flink", peer.run, sizes, flink.answers))
            for query in sizes.queries:
                for system in systems:
                    system.measure(spark, query, (few, many), folder, progress)
    for system in systems:
        notes |= system.notes
    samples: dict[str, Any] = {
        system.name: {query: {"cpu_s": cost.cpu_s, "wall_s": cost.wall_s} for query, cost in system.costs.items()}
        for system in systems
    }
    samples = {"queries": {"events": [sizes.few, sizes.many], **samples}}
    return Measured(_figures(systems), samples, (_table(systems),), flink.versions(peer is not None), notes)


@contextmanager
def _flink(log: Path, progress: Progress, notes: dict[str, str], sizes: QuerySizes) -> Iterator[flink.Flink | None]:
    """A Flink; none where there is none, which is noted."""
    peer = None
    try:
        python = flink.installed() if sizes.short else flink.available(progress)
        if python is None:
            notes["flink"] = "left out: it is not installed"
        else:
            progress("starting flink")
            peer = flink.Flink(python, log)
    except Exception as error:
        notes["flink"] = f"left out: {_first_words(error)}"
        progress(f"flink: {notes['flink']}")
    try:
        yield peer
    finally:
        if peer is not None:
            peer.stop()


def _first_words(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _figures(systems: list[_System]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for system in systems:
        for query, cost in system.clear.items():
            figures[f"{query}_events_per_s_{system.name}"] = round(cost.events_per_s, 0)
            figures[f"{query}_cpu_s_per_million_{system.name}"] = round(cost.cpu_s_per_million, 2)
    ours = systems[0].clear
    for system in systems[1:]:
        both = [(ours[query], cost) for query, cost in system.clear.items() if query in ours]
        if both:
            figures[f"queries_compared_{system.name}"] = float(len(both))
            figures[f"cpu_vs_{system.name}"] = _mean([a.cpu_s_per_million / b.cpu_s_per_million for a, b in both])
            figures[f"rate_vs_{system.name}"] = _mean([a.events_per_s / b.events_per_s for a, b in both])
    figures["same_rows"] = float(not any(system.wrong for system in systems))
    return figures


def _mean(ratios: list[float]) -> float:
    """The geometric mean: of ratios, the one that does not depend on which side is below."""
    return math.exp(statistics.fmean(math.log(max(each, 1e-9)) for each in ratios))


def _table(systems: list[_System]) -> Table:
    names = [system.name for system in systems]
    shown = columns(
        ("query", "query"),
        *((f"rate_{name}", name, "events/s", ",.0f") for name in names),
        *((f"cpu_{name}", name, "CPU s per million", ".1f") for name in names),
    )
    rows = []
    for query in systems[0].sizes.queries:
        row: dict[str, object] = {"query": query}
        for system in systems:
            if query in system.clear:
                row[f"rate_{system.name}"] = system.clear[query].events_per_s
                row[f"cpu_{system.name}"] = system.clear[query].cpu_s_per_million
        rows.append(row)
    return Table("Nexmark, beyond start-up", shown, tuple(rows))
