"""The Spark part of ``headgate bench sharing``: the 21 RIoTBench-like dataflows, run for real under every strategy.

Each strategy gets an engine of its own on one Spark, in turn, over the same rows:

1. *submissions*: the dataflows are submitted one after the other, each when all before it are at rest, and a few rows
   come for every source; an operation lasts from the request until the first row of the new dataflow is at a sink of
   its own;
2. *rows*: a fixed number of rows is handed to all 21, twice, until the last of them is at its sinks; ``same_rows``
   tells whether every strategy puts out as many for each;
3. *withdrawals*: a few rows come, and a dataflow is withdrawn; the operation lasts until the last row of it is
   at its sinks, and the request is answered.

``cpu_ratio`` is the CPU of all processes over all of that, by strategy, over that of separate queries: what it costs to
take dataflows in, to run them and to let them go. ``rows_cpu_ratio`` is that of the rows alone, the better of two
turns: there ``replace-prune`` and ``hot`` run the same tasks in the same queries, and differ by noise. ``hot`` goes
first: Spark gets quicker from trial to trial.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.model.strategy import StrategyName
from headgate.report.text_table import text_table
from headgate_benchmarks.measured import Measured, cpu_seconds
from headgate_benchmarks.on_spark import READINGS, drop, keeping_house, on_spark, readings
from headgate_benchmarks.share.collections import riotbench_like

__all__ = ["run", "runnable"]

FEW_ROWS = 50
"""How many rows each source gets with every operation that is timed."""

FILES, ROWS, TURNS = 4, 20_000, 2
"""For the cost: files of each source, their rows, and how often."""

FIRST_ROW = 1_000_000_000
"""Rows of the part that is compared are numbered from here on."""

DATAFLOWS, WITHDRAWALS, WARM = 21, 6, 6
"""How many dataflows are submitted and withdrawn, and how many before that, to warm Spark up."""

PATIENCE_S = 240.0

Progress = Callable[[str], None]

WORKS: tuple[dict[str, Any], ...] = (
    {"type": "filter", "config": {"where": "t > -15"}},
    {"type": "derive", "config": {"columns": {"zone": "regexp_replace(lower(zone), '[aeiou]', '*')"}}},
    {"type": "derive", "config": {"columns": {"sensor": "substr(sha2(concat(sensor, zone), 256), 1, 16)"}}},
    {"type": "filter", "config": {"where": "h < 95"}},
    {"type": "derive", "config": {"columns": {"t": "t * 0.5 + sqrt(abs(h))"}}},
    {"type": "moving_average", "config": {"key": ["zone"], "column": "t", "size": 5, "into": "p"}},
    {"type": "filter", "config": {"where": "pmod(xxhash64(id), 10) < 9"}},
    {"type": "derive", "config": {"columns": {"h": "100 * exp(-t * t / 900) * log(2 + abs(h))"}}},
    {"type": "select", "config": {"columns": ["id", "sensor", "t", "h", "p", "zone"]}},
    {"type": "range_filter", "config": {"ranges": {"p": [-1e9, 1e9]}}},
    {"type": "derive", "config": {"columns": {"zone": "upper(concat(zone, substr(sensor, 1, 2)))"}}},
    {"type": "derive", "config": {"columns": {"p": "p + sin(t) * cos(h)"}}},
    {"type": "derive", "config": {"columns": {"sensor": "md5(concat(sensor, cast(t as string)))"}}},
)
"""What the collection's kinds of steps do; each hands on the columns that it gets, so any may follow any.

Which rows pass does not depend on the moving average, which depends on the order in which rows of several sources come.
"""


def runnable(flow: Dataflow, sources: Path, sinks: Path) -> Dataflow:
    """A dataflow of the collection with work in place of labels, and a sink behind every task that nothing reads."""
    inputs: dict[str, list[str]] = {task.id: [] for task in flow.tasks}
    for stream in flow.streams:
        inputs[stream.target].append(stream.source)
    read = {stream.source for stream in flow.streams}
    tasks: list[dict[str, Any]] = []
    for task in flow.tasks:
        label = str(task.config["label"])
        if label.startswith("source"):
            config = {"path": str(sources / label), "columns": READINGS}
            tasks.append({"id": task.id, "type": "read_files", "config": config})
        else:
            work = WORKS[int(label.removeprefix("step"))]
            tasks.append({"id": task.id, **work, "inputs": inputs[task.id]})
        if task.id not in read:
            config = {"path": str(sinks / flow.name / task.id), "format": "parquet"}
            tasks.append({"id": f"{task.id}_out", "type": "write_files", "config": config, "inputs": [task.id]})
    document = {"name": flow.name, "owner": flow.owner, "tasks": tasks}
    return parse(json.dumps(document), "json").dataflow


def run(seed: int, progress: Progress) -> Measured:
    """Run every strategy on one Spark; one before them is not counted, since Spark gets warm only at work."""
    found: dict[StrategyName, _Found] = {}
    with on_spark() as (spark, folder):
        flows = riotbench_like(seed).dataflows[:DATAFLOWS]
        if WARM:
            _Trial(spark, folder / "warm", StrategyName.HOT, flows[:WARM], seed, progress).run(withdrawals=2)
        for strategy in reversed(StrategyName):
            trial = _Trial(spark, folder / strategy.value, strategy, flows, seed, progress)
            found[strategy] = trial.run(WITHDRAWALS)
            shutil.rmtree(folder / strategy.value, ignore_errors=True)
    found = {strategy: found[strategy] for strategy in StrategyName}
    figures = _figures(found)
    return Measured(figures, {"spark": {s.value: one.samples() for s, one in found.items()}}, _table(figures, found))


@dataclass
class _Found:
    """What one strategy took."""

    submit_s: list[float] = field(default_factory=list)
    withdraw_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    """From the first submission to the last withdrawal."""

    rows_cpu_s: list[float] = field(default_factory=list)
    queries: int = 0
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def operation_s(self) -> float:
        return statistics.fmean([*self.submit_s, *self.withdraw_s])

    def samples(self) -> dict[str, Any]:
        times = {"submit_s": self.submit_s, "withdraw_s": self.withdraw_s}
        cpu = {"cpu_s": self.cpu_s, "rows_cpu_s": self.rows_cpu_s}
        return {**times, **cpu, "queries": self.queries, "rows": self.rows}


class _Trial:
    """One strategy, from the first submission to the last withdrawal."""

    def __init__(
        self,
        spark: Any,
        place: Path,
        strategy: StrategyName,
        flows: tuple[Dataflow, ...],
        seed: int,
        progress: Progress,
    ) -> None:
        self.spark, self.place, self.strategy, self.progress = spark, place, strategy, progress
        self.draw = random.Random(seed)
        self.feeder = _Feeder(place / "in", random.Random(seed))
        self.flows = [runnable(flow, place / "in", place / "out") for flow in flows]

    def run(self, withdrawals: int) -> _Found:
        from headgate.runtime.engine.engine import Engine

        found = _Found()
        before = cpu_seconds()
        with Engine(self.place / "state", spark=self.spark, trigger_s=0.5, strategy=self.strategy) as engine:
            with keeping_house(engine):
                for number, flow in enumerate(self.flows, 1):
                    found.submit_s.append(self._submitted(engine, flow))
                    took = f"{found.submit_s[-1]:.1f} s"
                    self.progress(f"{self.strategy.value}: submission {number} of {len(self.flows)}, {took}")
            found.queries = len(engine.fragments)
            self._cost(engine, found)
            gone = self.draw.sample(self.flows, withdrawals)
            with keeping_house(engine):
                for flow in gone:
                    found.withdraw_s.append(self._withdrawn(engine, flow))
                    self.progress(f"{self.strategy.value}: withdrawal, {found.withdraw_s[-1]:.1f} s")
            failed = engine.failures()
            assert not failed, failed
            found.cpu_s = cpu_seconds() - before
        return found

    def _parts(self, flow: Dataflow) -> list[Path]:
        return list((self.place / "out" / flow.name).glob("*/*.parquet"))

    def _submitted(self, engine: Any, flow: Dataflow) -> float:
        # One after the other: with a query for every dataflow, two cores could not keep up with a steady stream.
        engine.wait_until_idle()
        began = time.monotonic()
        engine.submit(flow)
        self.feeder.drop_small()
        while not self._parts(flow):
            time.sleep(0.01)
            assert time.monotonic() - began < PATIENCE_S, f"no row of {flow.name}: {engine.failures()}"
        return time.monotonic() - began

    def _withdrawn(self, engine: Any, flow: Dataflow) -> float:
        engine.wait_until_idle()
        self.feeder.drop_small()
        wall, began = time.time(), time.monotonic()
        engine.withdraw(flow.name)
        answered = time.monotonic() - began
        # Whatever is on its way to the sinks when the request is answered comes with the epochs under way.
        quiet, before = time.monotonic(), len(self._parts(flow))
        while time.monotonic() - quiet < 4.0:
            time.sleep(0.05)
            if len(self._parts(flow)) != before:
                quiet, before = time.monotonic(), len(self._parts(flow))
        last = max((part.stat().st_ctime for part in self._parts(flow)), default=wall) - wall
        return max(answered, last)

    def _cost(self, engine: Any, found: _Found) -> None:
        for turn in range(TURNS):
            told = f"{3 * FILES * ROWS:,} rows through {len(self.flows)} dataflows, turn {turn + 1} of {TURNS}"
            self.progress(f"{self.strategy.value}: {told}")
            engine.wait_until_idle()
            before = cpu_seconds()
            self.feeder.drop_large(FIRST_ROW + turn * FILES * ROWS)
            engine.wait_until_idle()
            found.rows_cpu_s.append(cpu_seconds() - before)
        for flow in self.flows:
            found.rows[flow.name] = sum(map(_large_rows, self._parts(flow)))


def _large_rows(part: Path) -> int:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    return int(pc.sum(pc.greater_equal(pq.read_table(part, columns=["id"]).column("id"), FIRST_ROW)).as_py() or 0)


class _Feeder:
    """Puts files of rows into the folders of the three sources."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.folders = [folder / f"source{number}" for number in range(3)]
        self.draw, self.number = draw, 0
        for source in self.folders:
            source.mkdir(parents=True)
        self._drop(FEW_ROWS, 0)

    def drop_small(self) -> None:
        """A few rows for every source."""
        self._drop(FEW_ROWS, self.number * FEW_ROWS)

    def drop_large(self, first: int) -> None:
        for number in range(FILES):
            self._drop(ROWS, first + number * ROWS, random.Random(number))

    def _drop(self, rows: int, first: int, draw: random.Random | None = None) -> None:
        for source in self.folders:
            drop(source, self.number, readings(rows, draw or self.draw, first, zones=200))
        self.number += 1


def _figures(found: Mapping[StrategyName, _Found]) -> dict[str, float]:
    alone = found[StrategyName.NONE]
    figures = {
        "cpu_ratio": found[StrategyName.HOT].cpu_s / alone.cpu_s,
        "operation_s": found[StrategyName.HOT].operation_s,
    }
    for strategy, one in found.items():
        figures |= {
            f"cpu_ratio_{strategy.value}": one.cpu_s / alone.cpu_s,
            f"cpu_s_{strategy.value}": one.cpu_s,
            f"rows_cpu_ratio_{strategy.value}": min(one.rows_cpu_s) / min(alone.rows_cpu_s),
            f"operation_s_{strategy.value}": one.operation_s,
            f"submit_s_{strategy.value}": statistics.median(one.submit_s),
            f"withdraw_s_{strategy.value}": statistics.median(one.withdraw_s),
            f"queries_{strategy.value}": float(one.queries),
        }
    others = [one for strategy, one in found.items() if strategy is not StrategyName.HOT]
    figures["same_rows"] = float(all(one.rows == alone.rows for one in others))
    figures["hot_is_best_in_cpu"] = float(found[StrategyName.HOT].cpu_s < min(one.cpu_s for one in others))
    figures["hot_is_best_in_operations"] = float(figures["operation_s"] < min(one.operation_s for one in others))
    return {name: round(value, 4) for name, value in figures.items()}


def _table(figures: Mapping[str, float], found: Mapping[StrategyName, _Found]) -> str:
    rows = [
        ["on Spark", "queries", "CPU s", "of none's", "rows alone", "operation s", "submit s (p50)", "withdraw s (p50)"]
    ]
    rows += [
        [
            strategy.value,
            str(one.queries),
            f"{one.cpu_s:.1f}",
            *(f"{figures[f'{name}_{strategy.value}']:.2f}" for name in ("cpu_ratio", "rows_cpu_ratio")),
            *(f"{figures[f'{name}_{strategy.value}']:.2f}" for name in ("operation_s", "submit_s", "withdraw_s")),
        ]
        for strategy, one in found.items()
    ]
    return text_table(rows, right=range(1, len(rows[0])))
