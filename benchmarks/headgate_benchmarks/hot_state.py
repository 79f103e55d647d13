"""Windows and joins that are submitted beside running ones: how soon their first rows come out."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate_benchmarks.feeding import batches_of, fed, first_row
from headgate_benchmarks.on_spark import READINGS, on_spark
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import beside, dataflow_of, parquet_sink

__all__ = ["hot_state"]


def hot_state(seed: int, progress: Progress, warm: int, changes: int) -> Measured:
    """Windows and joins that are submitted beside running ones: from the request to the first row, over both hops."""
    took: dict[str, list[float]] = {"window": [], "join": []}
    with on_spark() as (spark, place), fed(spark, place, seed, sensors=200) as (engine, feeder):
        engine.submit(*(_timed(f"base_{kind}", kind, 0, feeder.source, place / f"base_{kind}") for kind in took))
        hosts = [f for f in engine.fragments.values() if f.fragment.kind == "chained"]
        for host in hosts:
            batches_of(host, feeder, warm=warm, wanted=1)
        for turn in range(changes):
            for kind, times in took.items():
                progress(f"hot {kind} {turn + 1} of {changes}")
                out = place / f"{kind}{turn}"
                flow = beside(_timed(f"{kind}{turn}", kind, turn + 1, feeder.source, out), f"base_{kind}")
                times.append(first_row(lambda flow=flow: engine.submit(flow), out, feeder))  # type: ignore[misc]
        now = [f for f in engine.fragments.values() if f.fragment.kind == "chained"]
        assert [f.query.runId for f in now] == [f.query.runId for f in hosts], "a query was started"
    figures = {f"hot_{kind}_s": statistics.median(times) for kind, times in took.items()}
    return Measured(figures, {f"hot_{kind}": times for kind, times in took.items()})


def _timed(name: str, kind: str, number: int, source: Path, out: Path) -> Dataflow:
    """A window or a join over the feed, whose events are a millisecond apart, so that windows close all the time."""
    tasks: list[dict[str, Any]] = [
        {"id": "lines", "type": "read_files", "config": {"path": str(source), "format": "text"}},
        {"id": "parse", "type": "parse_json", "config": {"columns": READINGS}, "inputs": ["lines"]},
        {"id": "timed", "type": "derive", "config": {"columns": {"at": "timestamp_millis(id)"}}, "inputs": ["parse"]},
    ]
    if kind == "window":
        columns = {"n": "count(*)", "mean": "avg(t)", "number": f"max({number})"}
        config: dict[str, Any] = {"time": "at", "size": "50ms", "key": ["zone"], "columns": columns}
        tasks.append({"id": "state", "type": "window", "config": config, "inputs": ["timed"]})
    else:
        config = {"on": ["zone"], "time": ["at", "at"], "within": f"{5 + number}ms"}
        low, high = {"from": "timed", "where": "t < 20"}, {"from": "timed", "where": "t >= 20"}
        tasks.append({"id": "state", "type": "join", "config": config, "inputs": [low, high]})
    return dataflow_of(name, [*tasks, {"id": "out", **parquet_sink(out), "inputs": ["state"]}])
