"""Part ``spark`` of ``headgate bench sharing``: the 21 RIoTBench-like dataflows, run for real under every strategy.

Each strategy gets an engine of its own on one Spark, in turn, over the same rows:

1. *submissions*: the dataflows are submitted one after the other, each when all before it are idle, and a few rows
   come for every source; an operation lasts from the request until the first row of the new dataflow is at a sink of
   its own;
2. *rows*: a fixed number of rows is handed to all 21, twice, until the last of them is at its sinks; ``same_rows``
   is 1 if every strategy puts out as many for each;
3. *withdrawals*: a few rows come, and a dataflow is withdrawn; the operation lasts until its last row is
   at its sinks, and the request is answered.

``cpu_ratio`` is the CPU of all processes over all of that, by strategy, over that of separate queries.
``rows_cpu_ratio`` is that of the rows only, the better of two turns: there ``replace-prune`` and ``hot`` run the same
tasks in the same queries, and differ by noise. ``hot`` goes first: Spark gets faster from trial to trial.
"""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate.model.strategy import StrategyName
from headgate.model.table import Table
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.on_spark import READINGS, drop, keeping_house, on_spark, readings
from headgate_benchmarks.share.collections import riotbench_like
from headgate_benchmarks.study import Measured, Progress, columns
from headgate_benchmarks.workloads import beside, dataflow_of, parquet_sink

__all__ = ["SparkSizes", "run_strategies", "runnable"]

FEW_ROWS = 50
"""How many rows each source gets with every operation that is timed."""

FIRST_ROW = 1_000_000_000
"""Rows of the part that is compared are numbered from here on."""

PATIENCE_S = 240.0


@dataclass(frozen=True, slots=True)
class SparkSizes:
    """How many dataflows are submitted and withdrawn, how many before that to warm Spark up, and the rows."""

    dataflows: int = 21
    withdrawals: int = 6
    warm: int = 6
    files: int = 4
    rows: int = 20_000
    turns: int = 2
    quiet_s: float = 4.0
    """A withdrawn dataflow without new output for so long has ended."""


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
            sink = parquet_sink(sinks / flow.name / task.id)
            tasks.append({"id": f"{task.id}_out", **sink, "inputs": [task.id]})
    return dataflow_of(flow.name, tasks, owner=flow.owner)


def run_strategies(seed: int, progress: Progress, sizes: SparkSizes) -> Measured:
    """Run every strategy on one Spark, after a trial that warms Spark up and is not counted."""
    costs: dict[StrategyName, _Costs] = {}
    with on_spark() as (spark, folder):
        flows = riotbench_like(seed).dataflows[: sizes.dataflows]
        if sizes.warm:
            _Trial(spark, folder / "warm", StrategyName.HOT, flows[: sizes.warm], seed, progress, sizes).run(
                withdrawals=2
            )
        for strategy in reversed(StrategyName):
            trial = _Trial(spark, folder / strategy.value, strategy, flows, seed, progress, sizes)
            costs[strategy] = trial.run(sizes.withdrawals)
            shutil.rmtree(folder / strategy.value, ignore_errors=True)
    costs = {strategy: costs[strategy] for strategy in StrategyName}
    figures = _figures(costs)
    return Measured(figures, {"spark": {s.value: asdict(one) for s, one in costs.items()}}, (_table(figures),))


@dataclass
class _Costs:
    """The costs of one strategy."""

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
        sizes: SparkSizes,
    ) -> None:
        self.spark, self.place, self.strategy, self.progress, self.sizes = spark, place, strategy, progress, sizes
        self.draw = random.Random(seed)
        self.feeder = _Feeder(place / "in", random.Random(seed))
        self.flows = [runnable(flow, place / "in", place / "out") for flow in flows]

    def run(self, withdrawals: int) -> _Costs:
        from headgate.runtime.engine.engine import Engine

        costs = _Costs()
        before = cpu_seconds()
        with Engine(self.place / "state", spark=self.spark, trigger_s=0.5, strategy=self.strategy) as engine:
            with keeping_house(engine):
                for number, flow in enumerate(self.flows, 1):
                    costs.submit_s.append(self._submitted(engine, flow))
                    took = f"{costs.submit_s[-1]:.1f} s"
                    self.progress(f"{self.strategy.value}: submission {number} of {len(self.flows)}, {took}")
            costs.queries = len(engine.fragments)
            self._cost(engine, costs)
            gone = self.draw.sample(self.flows, withdrawals)
            with keeping_house(engine):
                for flow in gone:
                    costs.withdraw_s.append(self._withdrawn(engine, flow))
                    self.progress(f"{self.strategy.value}: withdrawal, {costs.withdraw_s[-1]:.1f} s")
            failed = engine.failures()
            assert not failed, failed
            costs.cpu_s = cpu_seconds() - before
        return costs

    def _parts(self, flow: Dataflow) -> list[Path]:
        return list((self.place / "out" / flow.name).glob("*/*.parquet"))

    def _submitted(self, engine: Any, flow: Dataflow) -> float:
        # One after the other: with a query for every dataflow, two cores could not keep up with a steady stream.
        engine.wait_until_idle()
        began = time.monotonic()
        # It joins where the others are: what is timed is the change, not the past.
        engine.submit(beside(flow, engine.dataflows[-1].name) if engine.dataflows else flow)
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
        while time.monotonic() - quiet < self.sizes.quiet_s:
            time.sleep(0.05)
            if len(self._parts(flow)) != before:
                quiet, before = time.monotonic(), len(self._parts(flow))
        last = max((part.stat().st_ctime for part in self._parts(flow)), default=wall) - wall
        return max(answered, last)

    def _cost(self, engine: Any, costs: _Costs) -> None:
        sizes = self.sizes
        handed = sizes.files * sizes.rows
        for turn in range(sizes.turns):
            through = f"{3 * handed:,} rows through {len(self.flows)} dataflows, turn {turn + 1} of {sizes.turns}"
            self.progress(f"{self.strategy.value}: {through}")
            engine.wait_until_idle()
            before = cpu_seconds()
            self.feeder.drop_large(FIRST_ROW + turn * handed, sizes)
            engine.wait_until_idle()
            costs.rows_cpu_s.append(cpu_seconds() - before)
        for flow in self.flows:
            costs.rows[flow.name] = sum(map(_large_rows, self._parts(flow)))


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

    def drop_large(self, first: int, sizes: SparkSizes) -> None:
        for number in range(sizes.files):
            self._drop(sizes.rows, first + number * sizes.rows, random.Random(number))

    def _drop(self, rows: int, first: int, draw: random.Random | None = None) -> None:
        for source in self.folders:
            drop(source, self.number, readings(rows, draw or self.draw, first, zones=200))
        self.number += 1


def _figures(costs: Mapping[StrategyName, _Costs]) -> dict[str, float]:
    separate = costs[StrategyName.NONE]
    figures = {
        "cpu_ratio": costs[StrategyName.HOT].cpu_s / separate.cpu_s,
        "operation_s": costs[StrategyName.HOT].operation_s,
    }
    for strategy, one in costs.items():
        figures |= {
            f"cpu_ratio_{strategy.value}": one.cpu_s / separate.cpu_s,
            f"cpu_s_{strategy.value}": one.cpu_s,
            f"rows_cpu_ratio_{strategy.value}": min(one.rows_cpu_s) / min(separate.rows_cpu_s),
            f"operation_s_{strategy.value}": one.operation_s,
            f"submit_s_{strategy.value}": statistics.median(one.submit_s),
            f"withdraw_s_{strategy.value}": statistics.median(one.withdraw_s),
            f"queries_{strategy.value}": float(one.queries),
        }
    others = [one for strategy, one in costs.items() if strategy is not StrategyName.HOT]
    figures["same_rows"] = float(all(one.rows == separate.rows for one in costs.values()))
    figures["hot_is_best_in_cpu"] = float(costs[StrategyName.HOT].cpu_s < min(one.cpu_s for one in others))
    figures["hot_is_best_in_operations"] = float(figures["operation_s"] < min(one.operation_s for one in others))
    return figures


def _table(figures: Mapping[str, float]) -> Table:
    shown = columns(
        ("strategy", "strategy"),
        ("queries", "queries", "", ".0f"),
        ("cpu_s", "CPU", "s", ".1f"),
        ("cpu_ratio", "of none's", "", ".2f"),
        ("rows_cpu_ratio", "rows only", "", ".2f"),
        ("operation_s", "operation", "s", ".2f"),
        ("submit_s", "submit p50", "s", ".2f"),
        ("withdraw_s", "withdraw p50", "s", ".2f"),
    )
    keys = [column.key for column in shown[1:]]
    rows = ({"strategy": s.value} | {key: figures[f"{key}_{s.value}"] for key in keys} for s in StrategyName)
    return Table("On Spark", shown, tuple(rows))
