"""``headgate bench join``: dataflows that join a running source and catch up with what it has read.

Three parts:

- ``cost``: a dataflow joins after a number of rows. ``catch_up_cost`` is the CPU of its catch-up over that of one plain
  Spark batch job that reads the same files and writes the same rows; ``catch_up_rows_per_s`` its speed;
- ``shared``: eight dataflows with a common filter join in one request. ``shared_catch_up`` is the CPU of that over
  eight times that of one; ``leftover_tasks`` how many tasks there are more than after a submission at the beginning;
- ``neighbours``: small files come all the time. ``neighbour_p99`` is the 99th percentile of the time from a file to its
  rows in the sink of a running dataflow, while another catches up, over that before; ``join_pause_ms`` how much later
  than usual (in the median) the latest file came that was under way when the catch-up began or ended.

All processes are counted; both sides of a ratio are measured in one run.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.on_spark import READINGS, drop, keeping_house, meanwhile, on_spark, readings
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import dataflow_of

__all__ = ["JOIN"]

PATIENCE_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows that have passed, in how many files; and seconds of small files before a neighbour comes."""

    rows: int = 5_000_000
    shared_rows: int = 1_000_000
    neighbour_rows: int = 1_000_000
    file_rows: int = 100_000
    quiet_s: float = 60.0
    together: int = 8


def _flow(name: str, folder: Path, least: int = 0) -> Dataflow:
    tasks: list[dict[str, Any]] = [
        {"id": "read", "type": "read_files", "config": {"path": str(folder / "in"), "columns": READINGS}},
        {"id": "warm", "type": "filter", "config": {"where": "t > 20"}, "inputs": ["read"]},
        {"id": "some", "type": "filter", "config": {"where": f"h >= {least}"}, "inputs": ["warm"]},
        {"id": "out", "type": "write_files", "config": {"path": str(folder / "out" / name)}, "inputs": ["some"]},
    ]
    return dataflow_of(name, tasks)


def _fill(folder: Path, rows: int, file_rows: int, seed: int) -> int:
    """Put files into a folder; returns how many."""
    (folder / "in").mkdir(parents=True)
    draw, number = random.Random(seed), 0
    for number, first in enumerate(range(0, rows, file_rows), 1):
        drop(folder / "in", number, readings(min(file_rows, rows - first), draw, first))
    return number


def _read(engine: Any) -> None:
    engine.wait_until_idle()
    assert not engine.failures(), engine.failures()


def _joined(engine: Any, *flows: Dataflow) -> tuple[float, float]:
    """CPU seconds and seconds until dataflows have caught up."""
    began, before = time.monotonic(), cpu_seconds()
    engine.submit(*flows)
    _read(engine)
    assert not engine.snapshot.catch_ups
    return cpu_seconds() - before, time.monotonic() - began


def _lines(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("part-*"))


def _cost(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate.runtime.engine.engine import Engine

    with on_spark() as (spark, folder):
        _fill(folder, sizes.rows, sizes.file_rows, seed)
        with Engine(folder / "state", spark=spark, trigger_s=0.5) as engine:
            progress(f"{sizes.rows:,} rows are read for a first dataflow")
            engine.submit(_flow("base", folder))
            _read(engine)
            _joined(engine, _flow("trial", folder))
            progress("another one catches up")
            cpu_s, seconds = _joined(engine, _flow("late", folder))
        progress("the same as a batch job")
        before = cpu_seconds()
        rows = spark.read.schema(READINGS).json(str(folder / "in")).where("t > 20").where("h >= 0")
        rows.write.json(str(folder / "out" / "batch"))
        batch_s = cpu_seconds() - before
        same = {_lines(folder / "out" / name) for name in ("base", "late", "batch")}
    figures = {
        "catch_up_cost": cpu_s / batch_s,
        "catch_up_rows_per_s": sizes.rows / seconds,
        "same_rows": int(len(same) == 1),
    }
    return Measured({**figures, "catch_up_cpu_s": cpu_s, "batch_cpu_s": batch_s})


def _shared(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate.runtime.engine.engine import Engine

    with on_spark() as (spark, folder):
        _fill(folder, sizes.shared_rows, sizes.file_rows, seed + 1)
        with Engine(folder / "state", spark=spark, trigger_s=0.5) as engine:
            engine.submit(_flow("base", folder))
            _read(engine)
            _joined(engine, _flow("trial", folder))
            progress("one catches up")
            one_s, _ = _joined(engine, _flow("one", folder, 1))
            progress(f"{sizes.together} catch up together")
            flows = [_flow(f"late{number}", folder, 10 + number) for number in range(sizes.together)]
            many_s, _ = _joined(engine, *flows)
            tasks = len(engine.plan.tasks)
        with Engine(folder / "again", spark=spark, trigger_s=0.5) as engine:
            engine.submit(_flow("base", folder), _flow("trial", folder), _flow("one", folder, 1), *flows)
            left = tasks - len(engine.plan.tasks)
    return Measured({"shared_catch_up": many_s / (sizes.together * one_s), "leftover_tasks": left})


def _neighbours(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    from headgate.runtime.engine.engine import Engine

    draw = random.Random(seed)
    with on_spark() as (spark, folder):
        number = _fill(folder, sizes.neighbour_rows, sizes.file_rows, seed + 2)
        with Engine(folder / "state", spark=spark, trigger_s=0.5) as engine:
            base = _flow("base", folder)
            engine.submit(base)
            _read(engine)
            _joined(engine, _flow("trial", folder))
            dropped: list[tuple[float, int]] = []

            def put() -> None:
                at = number + 1 + len(dropped)
                text = readings(20, draw, first=10**9 + 20 * len(dropped)).replace('"t": -', '"t": ')
                dropped.append((time.time(), 10**9 + 20 * len(dropped)))
                drop(folder / "in", at, text)

            with keeping_house(engine), meanwhile(put, 0.25):
                progress("small files come")
                time.sleep(sizes.quiet_s)
                began = time.time()
                progress("a neighbour catches up")
                engine.submit(_flow("late", folder))
                until = time.monotonic() + PATIENCE_S
                while engine.snapshot.catch_ups and time.monotonic() < until:
                    time.sleep(0.05)
                ended = time.time()
                time.sleep(5.0)
            _read(engine)
        waits = _waits(folder / "out" / "base", dropped)
    quiet = [wait for at, wait in waits if at < began - 2]
    busy = [wait for at, wait in waits if began <= at <= ended] or quiet
    usual = statistics.median(quiet)
    around = [wait for at, wait in waits if min(abs(at - began), abs(at - ended)) < 2.0]
    pause_ms = 1000 * max(max(around, default=usual) - usual, 0.0)
    figures = {"neighbour_p99": _p99(busy) / _p99(quiet), "join_pause_ms": pause_ms}
    return Measured({**figures, "quiet_p99_s": _p99(quiet), "busy_p99_s": _p99(busy)})


def _waits(out: Path, dropped: list[tuple[float, int]]) -> list[tuple[float, float]]:
    """When each small file came, and after how long its first row that passes was in the sink."""
    import json

    there: dict[int, float] = {}
    for file in out.glob("part-*"):
        at = file.stat().st_ctime
        for line in file.read_text(encoding="utf-8").splitlines():
            first = json.loads(line)["id"] // 20 * 20
            there[first] = min(there.get(first, at), at)
    return [(at, there[first] - at) for at, first in dropped if first in there]


def _p99(waits: list[float]) -> float:
    ordered = sorted(waits)
    return ordered[min(int(0.99 * len(ordered)), len(ordered) - 1)]


JOIN = Benchmark(
    "join",
    "Dataflows that join a running source and catch up.",
    {"cost": _cost, "shared": _shared, "neighbours": _neighbours},
    Sizes(),
    Sizes(rows=4_000, shared_rows=2_000, neighbour_rows=2_000, file_rows=1_000, quiet_s=5.0, together=3),
    "catch_up_cost catch_up_rows_per_s neighbour_p99 join_pause_ms shared_catch_up leftover_tasks",
)
