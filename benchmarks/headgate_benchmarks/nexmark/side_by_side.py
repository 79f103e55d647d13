"""The part *queries* of ``headgate bench nexmark``: each query on Headgate, by hand in PySpark, and in Flink SQL.

Every system runs each query twice over the same files: over few events and over many. What the second run takes more
than the first is what events cost beyond start-up:

- ``qN_events_per_s_SYSTEM`` by the clock;
- ``qN_cpu_s_per_million_SYSTEM`` in CPU seconds of all processes;
- ``cpu_vs_SYSTEM``, ``rate_vs_SYSTEM``: Headgate's over the system's, the geometric mean of all queries of both.

All are warm: each has answered the query once, over few events, before a run that is counted. Both runs' answers are
compared with batch SQL. A query that a system cannot do, or a figure that got lost in noise, is told in ``notes``.
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

from headgate.report.text_table import text_table
from headgate_benchmarks.beyond_start_up import Cost
from headgate_benchmarks.measured import Measured, cpu_seconds
from headgate_benchmarks.nexmark import flink
from headgate_benchmarks.nexmark.by_hand import run_by_hand
from headgate_benchmarks.nexmark.events import Events
from headgate_benchmarks.nexmark.flows import QUERIES
from headgate_benchmarks.nexmark.on_headgate import Data, is_right, make_data, run_under_headgate, written
from headgate_benchmarks.on_spark import on_spark

__all__ = ["queries"]

FEW, MANY, PER_FILE, PER_S = 100_000, 1_000_000, 100_000, 1_000
"""Events of the two runs, how many are in a file, which is a micro-batch, and in a second of event time."""

Progress = Callable[[str], None]
Way = Callable[[str, Path, Path], object]
"""Runs a query over a folder of events and writes its answers below another one."""


@dataclass
class _System:
    """A system, what queries took on it, and what it could not do."""

    name: str
    way: Way
    read: Callable[[Any, str, Path], Any] = written
    costs: dict[str, Cost] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    wrong: int = 0

    def measure(self, spark: Any, query: str, sizes: tuple[Data, Data], folder: Path, progress: Progress) -> None:
        """Run a query over few events to warm up, over few again, and over many."""
        about, cpu_s, wall_s = f"{query} {self.name}", [], []
        for turn, data in enumerate((sizes[0], *sizes)):
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
            self.notes.setdefault(about, "no figure: more events took no longer, so the events are too few to tell")
        progress(f"{about}: {wall_s[0]:.1f} s and {wall_s[1]:.1f} s, {cpu_s[0]:.1f} and {cpu_s[1]:.1f} CPU s")

    @property
    def clear(self) -> dict[str, Cost]:
        return {query: cost for query, cost in self.costs.items() if cost.is_clear}


def queries(seed: int, progress: Progress) -> Measured:
    """Each query on every system."""
    notes: dict[str, str] = {}
    with on_spark() as (spark, folder):
        progress(f"making {FEW:,} and {MANY:,} events, and their answers in batch")
        events = Events(seed, PER_S)
        few, many = (
            make_data(spark, folder / f"events-{count}", events, count, max(1, count // PER_FILE))
            for count in (FEW, MANY)
        )
        systems = [
            _System("headgate", lambda query, source, place: run_under_headgate(spark, [query], source, place)),
            _System("pyspark", lambda query, source, place: run_by_hand(spark, query, source, place)),
        ]
        with _flink(folder / "flink.log", progress, notes) as peer:
            if peer is not None:
                systems.append(_System("flink", peer.run, flink.answers))
            for query in QUERIES:
                for system in systems:
                    system.measure(spark, query, (few, many), folder, progress)
    for system in systems:
        notes |= system.notes
    return Measured(_figures(systems), _samples(systems), _table(systems), flink.versions(peer is not None), notes)


@contextmanager
def _flink(log: Path, progress: Progress, notes: dict[str, str]) -> Iterator[flink.Flink | None]:
    """A Flink; none where it cannot be had, which is noted."""
    peer = None
    try:
        progress("starting flink")
        peer = flink.Flink(flink.at_hand(progress), log)
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
    return round(math.exp(statistics.fmean(map(math.log, ratios))), 4)


def _samples(systems: list[_System]) -> dict[str, Any]:
    found = {
        system.name: {query: {"cpu_s": cost.cpu_s, "wall_s": cost.wall_s} for query, cost in system.costs.items()}
        for system in systems
    }
    return {"queries": {"events": [FEW, MANY], **found}}


def _table(systems: list[_System]) -> str:
    def cells(query: str, told: Callable[[Cost], str]) -> list[str]:
        return [told(system.clear[query]) if query in system.clear else "-" for system in systems]

    names = [system.name for system in systems]
    rows = [["query", *(f"events/s {name}" for name in names), *(f"CPU s per million {name}" for name in names)]]
    for query in QUERIES:
        rates = cells(query, lambda cost: f"{cost.events_per_s:,.0f}")
        rows.append([query, *rates, *cells(query, lambda cost: f"{cost.cpu_s_per_million:.1f}")])
    return text_table(rows, right=range(1, len(rows[0])))
