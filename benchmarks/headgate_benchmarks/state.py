"""``headgate bench state``: windows and joins with state in chains, beside Spark's own stateful operators.

Everything is measured in one run, on one Spark, the two sides of each ratio taking turns on the same parquet files:

- ``state_WORKLOAD_vs_spark``: CPU of a dataflow over that of the same query written by hand, for a tumbling window, a
  sliding one, a session window and a join; ``state_WORKLOAD_cpu_s_per_million``, ``spark_WORKLOAD_cpu_s_per_million``:
  CPU seconds per million events;
- ``same_rows``: 1 if both put out the same rows, all workloads and rounds.
The files are small, so that there are many micro-batches, as in a stream that is kept up with.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.on_spark import on_spark
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import dataflow_of, parquet_sink

__all__ = ["STATE"]

COLUMNS = "auction bigint, price bigint, bid boolean, at timestamp"
RATE_PER_S = 10_000
"""Events in a second of event time."""

AUCTIONS = 20_000
LATE_S = 2
DISORDER_S = 1.0
FAR = 10**9
"""Seconds after the last event at which another one closes all windows."""

TOTALS = {"n": "count(*)", "most": "max(price)", "total": "sum(price)"}
WINDOWS: dict[str, dict[str, Any]] = {
    "tumbling": {"kind": "tumbling", "size": "10s"},
    "sliding": {"kind": "sliding", "size": "10s", "slide": "2s"},
    "session": {"kind": "session", "size": "2s"},
}
WORKLOADS = (*WINDOWS, "join")


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int = 3
    files: int = 20
    rows: int = 50_000


def _write_events(folder: Path, files: int, rows: int, seed: int) -> None:
    """Bids and, one in twelve, auctions, out of order by up to a second; then two events far in the future."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    draw = np.random.default_rng(seed)
    begin = 1_700_000_000_000_000
    for number in range(files):
        at = begin + (np.arange(number * rows, (number + 1) * rows) * 1_000_000) // RATE_PER_S
        at = at - draw.integers(0, int(DISORDER_S * 1e6), rows)
        columns = {
            "auction": draw.integers(0, AUCTIONS, rows),
            "price": draw.integers(1, 10_000, rows),
            "bid": draw.random(rows) < 11 / 12,
            "at": pa.array(at, pa.timestamp("us", "UTC")),
        }
        pq.write_table(pa.table(columns), folder / f"{number:06d}.parquet")
    for number in (files, files + 1):  # Spark closes windows a batch later
        at = pa.array([begin + (FAR + number) * 1_000_000], pa.timestamp("us", "UTC"))
        pq.write_table(
            pa.table({"auction": [-1], "price": [0], "bid": [True], "at": at}), folder / f"{number:06d}.parquet"
        )


def _dataflow(workload: str, data: Path, out: Path) -> Dataflow:
    source = {"path": str(data), "format": "parquet", "columns": COLUMNS, "files_per_batch": 1}
    tasks: list[dict[str, Any]] = [{"id": "events", "type": "read_files", "config": source}]
    if workload == "join":
        tasks += [
            {"id": "bids", "type": "filter", "config": {"where": "bid"}, "inputs": ["events"]},
            {"id": "auctions", "type": "filter", "config": {"where": "not bid"}, "inputs": ["events"]},
            {"id": "state", "type": "join", "config": _join(), "inputs": ["bids", "auctions"]},
        ]
    else:
        config = {"time": "at", "key": ["auction"], "columns": TOTALS, "late_by": f"{LATE_S}s", **WINDOWS[workload]}
        tasks.append({"id": "state", "type": "window", "config": config, "inputs": ["events"]})
    return dataflow_of(workload, [*tasks, {"id": "out", **parquet_sink(out), "inputs": ["state"]}])


def _join() -> dict[str, Any]:
    return {"on": ["auction"], "time": ["at", "at"], "within": "2s", "late_by": f"{LATE_S}s"}


def _under_headgate(spark: Any, workload: str, data: Path, place: Path) -> None:
    from headgate.runtime.engine.engine import Engine

    with Engine(place / "state", spark=spark, trigger_s=0.0) as engine:
        engine.submit(_dataflow(workload, data, place / "out"))
        engine.wait_until_idle()
        failed = engine.failures()
        assert not failed, failed


def _by_hand(spark: Any, workload: str, data: Path, place: Path) -> None:
    """The query as one would write it."""
    from pyspark.sql import functions as F

    events = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(data))
    if workload == "join":
        left = events.where("bid").withWatermark("at", f"{LATE_S} seconds").alias("l")
        right = events.where("not bid").withWatermark("at", f"{LATE_S} seconds").alias("r")
        within = "r.at >= l.at - interval 2 seconds and r.at <= l.at + interval 2 seconds"
        rows = left.join(right, F.expr(f"l.auction <=> r.auction and {within}"))
        rows = rows.selectExpr("l.*", "r.price as right_price", "r.bid as right_bid", "r.at as right_at")
    else:
        options = WINDOWS[workload]
        spans = [span.replace("s", " seconds") for span in (options["size"], options.get("slide")) if span is not None]
        window = F.session_window("at", *spans) if workload == "session" else F.window("at", *spans)
        rows = events.withWatermark("at", f"{LATE_S} seconds").groupBy(window.alias("w"), "auction")
        rows = rows.agg(*(F.expr(text).alias(name) for name, text in TOTALS.items()))
        rows = rows.selectExpr("w.start as window_start", "w.end as window_end", "auction", *TOTALS)
    writer = rows.writeStream.format("parquet").option("path", str(place / "out"))
    writer = writer.option("checkpointLocation", str(place / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def _rows(place: Path) -> Any:
    """What was put out, in an order that depends on nothing else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.read_table(file) for file in (place / "out").glob("*.parquet")]
    whole = pa.concat_tables([table.select(sorted(table.column_names)) for table in tables if len(table)])
    schema = pa.schema([(f.name, pa.timestamp("us", "UTC") if "time" in str(f.type) else f.type) for f in whole.schema])
    return whole.cast(schema).sort_by([(name, "ascending") for name in whole.column_names])


def _cost(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    sides: dict[str, Callable[[Any, str, Path, Path], None]] = {"spark": _by_hand, "state": _under_headgate}
    spent: dict[str, list[float]] = {f"{side}_{workload}": [] for workload in WORKLOADS for side in sides}
    same = 1
    with on_spark() as (spark, folder):
        progress("writing data")
        _write_events(folder / "data", sizes.files, sizes.rows, seed)
        for workload in WORKLOADS:
            for turn in range(sizes.rounds + 1):
                outcomes = []
                for side, run in sides.items():
                    progress(f"{workload}, {side}, round {turn} of {sizes.rounds}, 0 warms up")
                    place = folder / f"{side}-{workload}-{turn}"
                    before = cpu_seconds()
                    run(spark, workload, folder / "data", place)
                    if turn:
                        spent[f"{side}_{workload}"].append(cpu_seconds() - before)
                    outcomes.append(_rows(place))
                    shutil.rmtree(place, ignore_errors=True)
                same = same and int(outcomes[0].equals(outcomes[1]))
    million = sizes.files * sizes.rows / 1e6
    medians = {name: statistics.median(values) for name, values in spent.items()}
    figures: dict[str, Any] = {f"{name}_cpu_s_per_million": value / million for name, value in medians.items()}
    for workload in WORKLOADS:
        figures[f"state_{workload}_vs_spark"] = medians[f"state_{workload}"] / medians[f"spark_{workload}"]
    return Measured({**figures, "same_rows": same}, spent)


STATE = Benchmark(
    "state",
    "Windows and joins with state in chains, beside Spark's own operators.",
    {"cost": _cost},
    Sizes(),
    Sizes(1, 4, 2_000),
    "state_*_vs_spark state_*_cpu_s_per_million spark_*_cpu_s_per_million same_rows",
    spark=("local[2]", "3g"),
)
