"""``headgate bench nexmark``: Nexmark's queries 0 to 8, side by side, and all of them merged.

Everything is measured in one run, over the same files of events, a file a micro-batch:

- *queries*: each query under Headgate and as Structured Streaming written by hand, in turns on one Spark, then in Flink
  SQL where Flink is at hand; events per second and CPU seconds of all processes per million events, each from the start
  of the query to its last answer;
- *sharing*: all nine under one engine, without merging (a unit of their own each) and merged; ``tasks_separate`` and
  ``tasks_merged`` count tasks, ``cpu_ratio_shared`` is the CPU of the merged nine over that of the separate nine.

``same_rows`` is 1 if every side's answers are those of plain batch SQL over the same events.
"""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.bench.measured import Measured, cpu_seconds
from headgate.bench.nexmark import flink
from headgate.bench.nexmark.batch import answer, fingerprint
from headgate.bench.nexmark.by_hand import run_by_hand
from headgate.bench.nexmark.events import Events, write_files
from headgate.bench.nexmark.flows import QUERIES, flow
from headgate.bench.on_spark import on_spark
from headgate.model.registry import default_registry
from headgate.sharing.shared_set import SharedSet
from headgate.sharing.strategy import Strategy

__all__ = ["PARTS", "queries", "run", "sharing"]

EVENTS, FILES = 200_000, 4
"""For each query: so many events, in so many files."""

SHARED_EVENTS, SHARED_FILES = 100_000, 2
"""For all nine at once."""

ROUNDS = 1
PER_S = 1_000
"""Events in a second of event time."""

Progress = Callable[[str], None]
Answers = dict[str, tuple[int, int]]


def run(seed: int, progress: Progress) -> Measured:
    """Run both parts, each on a Spark of its own."""
    one, two = queries(seed, progress), sharing(seed, progress)
    figures = {**one.figures, **two.figures, "same_rows": min(one.figures["same_rows"], two.figures["same_rows"])}
    return Measured(figures, {**one.samples, **two.samples}, f"{one.table}\n{two.table}")


def queries(seed: int, progress: Progress) -> Measured:
    """Each query under Headgate, by hand and in Flink."""
    sides: dict[str, _Side] = {}
    with on_spark() as (spark, folder):
        events, wanted = _events(spark, folder, Events(seed, PER_S), EVENTS, FILES, progress)
        ways: dict[str, Callable[[str, Path], object]] = {
            "headgate": lambda query, place: _under_headgate(spark, [query], events, place),
            "hand": lambda query, place: run_by_hand(spark, query, events, place),
        }
        with _flink(events, folder / "flink.log", progress) as peer:
            if peer is not None:
                ways["flink"] = peer.run
            sides = {name: _Side(name, way) for name, way in ways.items()}
            for name in ("headgate", "hand"):
                progress(f"warming up: {name}")
                ways[name]("q0", folder / f"warm-{name}")
            for turn in range(ROUNDS):
                for query in QUERIES:
                    for side in sides.values():
                        if side.name != "flink" or query in flink.QUERIES:
                            side.measure(spark, query, folder / f"{side.name}-{query}-{turn}", wanted, progress)
    figures = _figures(sides)
    samples = {"queries": {name: side.samples() for name, side in sides.items()}}
    return Measured(figures, samples, _table(sides))


def sharing(seed: int, progress: Progress) -> Measured:
    """All nine at once, separate and merged."""
    figures: dict[str, float] = _tasks()
    spent: dict[Strategy, list[float]] = {Strategy.NONE: [], Strategy.HOT: []}
    fragments: dict[Strategy, int] = {}
    same = True
    with on_spark() as (spark, folder):
        events, wanted = _events(spark, folder, Events(seed, PER_S), SHARED_EVENTS, SHARED_FILES, progress)
        progress("warming up")
        _under_headgate(spark, ["q0"], events, folder / "warm")
        for turn in range(ROUNDS):
            for strategy in spent:
                progress(f"all nine, {'merged' if strategy is Strategy.HOT else 'separate'}")
                place = folder / f"{strategy.value}-{turn}"
                before = cpu_seconds()
                fragments[strategy] = _under_headgate(spark, list(QUERIES), events, place, strategy)
                spent[strategy].append(cpu_seconds() - before)
                same &= all(fingerprint(query, _written(spark, query, place)) == wanted[query] for query in QUERIES)
                shutil.rmtree(place, ignore_errors=True)
    separate, merged = (statistics.median(spent[one]) for one in (Strategy.NONE, Strategy.HOT))
    million = SHARED_EVENTS / 1e6
    figures |= {
        "queries_separate": float(fragments[Strategy.NONE]),
        "queries_merged": float(fragments[Strategy.HOT]),
        "cpu_s_per_million_separate": round(separate / million, 2),
        "cpu_s_per_million_merged": round(merged / million, 2),
        "cpu_ratio_shared": round(merged / separate, 4),
        "same_rows": float(same),
    }
    table = "".join(f"{name:<28} {value:>10,.2f}\n" for name, value in figures.items())
    return Measured(figures, {"sharing": {one.value: values for one, values in spent.items()}}, table)


PARTS: Mapping[str, Callable[[int, Progress], Measured]] = {"queries": queries, "sharing": sharing}


@contextmanager
def _flink(events: Path, log: Path, progress: Progress) -> Iterator[flink.Flink | None]:
    """A Flink that has answered a query already; none where it cannot be had, which is told."""
    python, peer = flink.at_hand(progress), None
    if python is not None:
        try:
            progress("warming up: flink")
            peer = flink.Flink(python, events, log)
            peer.run("q0", log.parent / "warm-flink")
        except (OSError, RuntimeError) as error:
            progress(f"Flink's figures are left out: {error}")
            peer = None
    try:
        yield peer
    finally:
        if peer is not None:
            peer.stop()


def _events(
    spark: Any, folder: Path, events: Events, count: int, files: int, progress: Progress
) -> tuple[Path, Answers]:
    """The folder of events, and what each query's answers are to be."""
    progress(f"making {count:,} events, and their answers in batch")
    write_files(events, folder / "events", count, files)
    return folder / "events", {query: fingerprint(query, answer(spark, folder / "events", query)) for query in QUERIES}


def _under_headgate(spark: Any, some: list[str], events: Path, place: Path, strategy: Strategy = Strategy.HOT) -> int:
    """Run queries until all events are answered; returns how many Spark queries it took."""
    from headgate.runtime.engine import Engine

    flows = [flow(query, str(events), str(place / "out"), files_per_batch=1) for query in some]
    with Engine(place / "state", spark=spark, trigger_s=0.0, strategy=strategy) as engine:
        engine.submit(*flows)
        engine.wait_until_idle()
        return len(engine.fragments)


def _written(spark: Any, query: str, place: Path) -> Any:
    return spark.read.parquet(str(place / "out" / query))


@dataclass
class _Side:
    """One way to run a query, and what it took."""

    name: str
    way: Callable[[str, Path], object]
    wall_s: dict[str, list[float]] = field(default_factory=dict)
    cpu_s: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def measure(self, spark: Any, query: str, place: Path, wanted: Answers, progress: Progress) -> None:
        before, began = cpu_seconds(), time.monotonic()
        try:
            self.way(query, place)
        except RuntimeError as error:  # another system's failure is told, and its figure left out
            if self.name != "flink":
                raise
            progress(f"{query} {self.name}: {error}")
            return
        wall_s, cpu_s = time.monotonic() - began, cpu_seconds() - before
        self.wall_s.setdefault(query, []).append(wall_s)
        self.cpu_s.setdefault(query, []).append(cpu_s)
        found = flink.answers(spark, query, place) if self.name == "flink" else _written(spark, query, place)
        is_right = fingerprint(query, found) == wanted[query]
        if not is_right:
            self.wrong.append(query)
        told = "" if is_right else ", answers differ from batch"
        progress(f"{query} {self.name}: {EVENTS / wall_s:,.0f} events/s, {cpu_s:.1f} CPU s{told}")
        shutil.rmtree(place, ignore_errors=True)

    def events_per_s(self, query: str) -> float:
        return EVENTS / statistics.median(self.wall_s[query])

    def cpu_s_per_million(self, query: str) -> float:
        return statistics.median(self.cpu_s[query]) / EVENTS * 1e6

    def samples(self) -> dict[str, Any]:
        return {"wall_s": self.wall_s, "cpu_s": self.cpu_s, "wrong": self.wrong}


def _figures(sides: Mapping[str, _Side]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, side in sides.items():
        ending = "" if name == "headgate" else f"_{name}"
        for query in side.wall_s:
            figures[f"{query}_events_per_s{ending}"] = round(side.events_per_s(query), 0)
            figures[f"{query}_cpu_s_per_million{ending}"] = round(side.cpu_s_per_million(query), 2)
    ours = sides["headgate"]
    for name, side in sides.items():
        if side is not ours and side.cpu_s:
            figures[f"cpu_ratio_to_{name}"] = _mean(
                [ours.cpu_s_per_million(q) / side.cpu_s_per_million(q) for q in side.cpu_s]
            )
            figures[f"rate_ratio_to_{name}"] = _mean([ours.events_per_s(q) / side.events_per_s(q) for q in side.cpu_s])
    figures["same_rows"] = float(not any(side.wrong for side in sides.values()))
    return figures


def _mean(ratios: list[float]) -> float:
    """The geometric mean: of ratios, the one that does not depend on which side is below."""
    return round(math.exp(statistics.fmean(map(math.log, ratios))), 4)


def _tasks() -> dict[str, float]:
    """How many tasks all nine have, separate and merged."""
    flows = [flow(query) for query in QUERIES]
    shared = SharedSet(default_registry())
    for one in flows:
        shared, _ = shared.submit(one)
    return {
        "tasks_separate": float(sum(len(one.tasks) for one in flows)),
        "tasks_merged": float(len(shared.running.tasks)),
    }


def _table(sides: Mapping[str, _Side]) -> str:
    heads = [f"events/s {name}" for name in sides] + [f"CPU s per million {name}" for name in sides]
    rows = [["query", *heads]]
    for query in QUERIES:
        there = [side if query in side.wall_s else None for side in sides.values()]
        rates = ["-" if side is None else f"{side.events_per_s(query):,.0f}" for side in there]
        costs = ["-" if side is None else f"{side.cpu_s_per_million(query):.1f}" for side in there]
        rows.append([query, *rates, *costs])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) + "\n" for row in rows)
