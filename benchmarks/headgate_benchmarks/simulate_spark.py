"""``headgate bench simulate --only spark``: a live run on Spark, and the same run simulated.

Rows come at 120, 500 and 80 a second, 40, 40 and 100 seconds long, to a task that waits for each of them, may take 150
a trigger and so serves about 250 a second; behind it a filter with a state for each sensor, in a fragment of its own.
So rows pile up, and the pile is worked off again. What was observed every two seconds, from when Spark has started, is
replayed fragment by fragment: ``throughput_gap`` is the relative difference of rows that were processed,
``backlog_gap`` that of the rows that waited, moment by moment, and ``spark_gap`` the larger of the two.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.on_spark import keeping_house, on_spark
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import dataflow_of, poisson_times

if TYPE_CHECKING:
    from headgate.adaptation.cluster import Cluster
    from headgate.model.cluster.observation import Observation
    from headgate.model.dataflow import Dataflow

__all__ = ["LiveSizes", "compare_live"]

COLUMNS = "at double, sensor string, v double"
WAIT_S, PARTITIONS, LIMIT = 0.01, 4, 150
SENSORS = 50


@dataclass(frozen=True, slots=True)
class LiveSizes:
    """The rates and for how many seconds each (the first while Spark starts), and how often the run is observed.

    With ``from_start``, observations begin before Spark's workers have started.
    """

    steps: tuple[tuple[float, float], ...] = ((40.0, 25.0), (120.0, 40.0), (500.0, 40.0), (80.0, 100.0))
    look_s: float = 2.0
    from_start: bool = False


def compare_live(seed: int, progress: Progress, sizes: LiveSizes) -> Measured:
    """Run on Spark, replay, compare."""
    from headgate.sharing.signature import sign
    from headgate.simulation.replay import gap

    seen, flow = _live(seed, progress, sizes)
    signatures = sign(flow)
    streams = [(signatures[stream.source], signatures[stream.target]) for stream in flow.streams]
    distance = gap(seen, streams)
    figures = {
        "spark_gap": distance.spark_gap,
        "throughput_gap": distance.throughput,
        "backlog_gap": distance.backlog,
        "rows_behind_max": max(fragment.rows_behind or 0 for each in seen for fragment in each.fragments),
    }
    behind = {
        fragment.id: [next((f.rows_behind or 0 for f in each.fragments if f.id == fragment.id), 0) for each in seen]
        for fragment in seen[-1].fragments
    }
    samples = {"seconds": [each.seconds for each in seen], "rows_behind": behind}
    return Measured(figures, samples)


def _live(seed: int, progress: Progress, sizes: LiveSizes) -> tuple[list[Observation], Dataflow]:
    """A run on Spark until all rows are through, as it was observed."""
    from headgate.adaptation.actions import SetPartitions
    from headgate.runtime.engine.cluster import SparkCluster
    from headgate.runtime.engine.engine import Engine

    progress("starting Spark")
    with on_spark("local[16]") as (spark, folder):
        rows = _record(folder / "recording.json", sizes.steps, seed)
        flow = _flow(folder / "recording.json")
        seen: list[Observation] = []
        with Engine(folder / "state", spark=spark, trigger_s=0.5) as engine, keeping_house(engine):
            engine.submit(flow)
            cluster = SparkCluster(engine)
            waits = next(task for task, each in engine.plan.tasks.items() if each.name.endswith("ask"))
            cluster.apply([SetPartitions(waits, PARTITIONS)])
            engine.limit("live", "in", LIMIT)
            done = 0 if sizes.from_start else _started(cluster, progress, sizes.look_s)
            until = time.monotonic() + 4 * sum(seconds for _, seconds in sizes.steps)
            while done < rows and time.monotonic() < until:
                time.sleep(sizes.look_s)
                seen.append(cluster.observe())
                done += sum(sink.rows for sink in seen[-1].sinks)
                behind = ", ".join(f"{fragment.rows_behind or 0:,}" for fragment in seen[-1].fragments)
                progress(f"{done:,} of {rows:,} rows are through, {behind} wait")
    return seen, flow


def _started(cluster: Cluster, progress: Progress, look_s: float) -> int:
    """Wait until rows get through and none wait but those of the moment; returns how many have got through."""
    progress("first batches, in which Spark's workers start")
    done = 0
    while True:
        time.sleep(look_s)
        seen = cluster.observe()
        done += sum(sink.rows for sink in seen.sinks)
        if done and sum(fragment.rows_behind or 0 for fragment in seen.fragments) < LIMIT:
            return done


def _record(path: Path, steps: Sequence[tuple[float, float]], seed: int) -> int:
    draw = random.Random(seed)
    lines = []
    for at in poisson_times(steps, draw):
        row = {"at": round(at, 4), "sensor": f"s{draw.randrange(SENSORS)}", "v": round(draw.gauss(20, 4), 2)}
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def _flow(recording: Path) -> Dataflow:
    config = {"path": str(recording), "columns": COLUMNS, "time_column": "at"}
    wait = {"function": "headgate_benchmarks.waiting.wait", "options": {"seconds": WAIT_S}}
    smooth = {"key": ["sensor"], "column": "v", "into": "s"}
    tasks: list[dict[str, Any]] = [
        {"id": "in", "type": "replay", "config": config},
        {"id": "ask", "type": "python", "config": wait, "inputs": ["in"]},
        {"id": "smooth", "type": "kalman", "config": smooth, "inputs": ["ask"]},
        {"id": "out", "type": "write_memory", "config": {"name": "out"}, "inputs": ["smooth"]},
    ]
    return dataflow_of("live", tasks)
