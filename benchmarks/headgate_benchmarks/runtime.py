"""``headgate bench runtime``: the cost of running dataflows beside plain PySpark, and the time of changes.

Everything is measured in one run, on one Spark, the two sides of each ratio taking turns on the same data:

- ``overhead``: CPU of one dataflow under Headgate over that of the same pipeline written by hand;
- ``shared``: CPU of 8 dataflows with a common prefix, merged, over that of 8 queries written by hand;
- ``floor_ms``: median time of a micro-batch with 50 tiny dataflows on one source at 1,000 rows/s; ``floor_one_ms``:
  with one of them alone, measured after the 50; ``floor_vs_one``: their ratio;
- ``hot_merge_s``, ``hot_switch_s``, ``hot_keyed_s``: from the request to the first row under the new plan, p50;
  ``hot_merge_ratio`` and so on: over one trigger (``trigger_s``) and one batch (``floor_ms``; for keyed tasks
  ``keyed_batch_ms``, the source's median batch of that part);
- ``hot_pause_ms``, ``hot_pause_worst_ms``: how much longer the first batch under a new plan took than the median of the
  batches before it, p50 and the worst; ``jitter_worst_ms`` is the same of batches under which nothing changed, and
  ``jitter_ratio`` is that over ``floor_ms``;
- ``hot_window_s``, ``hot_join_s``: from the request for a window or a join beside a running one to its first row, p50,
  over both hops; a window is 50 ms of event time, and no query is started (:mod:`headgate_benchmarks.hot_state`);
- ``keyed_rows_per_s``: throughput of a keyed host with three tasks over 5,000 keys;
- ``files_etl_cpu``, ``files_json_cpu``: CPU of dataflows that read files over that of the same with Spark's own reader
  (:mod:`headgate_benchmarks.file_reading`).
"""

from __future__ import annotations

import random
import shutil
import statistics
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.feeding import TRIGGER_S, Feeder, batches_of, fed, first_row
from headgate_benchmarks.file_reading import cost_of_reading
from headgate_benchmarks.hot_state import hot_state
from headgate_benchmarks.on_spark import READINGS, drop, on_spark, readings
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import beside, dataflow_of, parquet_sink

__all__ = ["RUNTIME", "tiny_dataflows", "tiny_floor"]

BEFORE = 5
"""Batches before a change that its first batch is compared with."""


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int = 3
    files: int = 6
    rows: int = 60_000
    large: tuple[int, int] = (8, 150_000)
    """Files and rows for the cost of one dataflow: enough that starting a query counts for little on either side."""

    tiny: int = 50
    warm: int = 15
    steady: int = 40
    changes: int = 12
    records: tuple[int, int] = (200_000, 1_000_000)
    """In the files that are read by our source and by Spark's, in a short run and a long one."""


# data and dataflows


def _write_files(folder: Path, files: int, rows: int, seed: int) -> None:
    folder.mkdir(parents=True)
    for number in range(files):
        drop(folder, number, readings(rows, random.Random(seed + number), number * rows))


def _prefix(source: Path, files_per_batch: int | None = 1) -> list[dict[str, Any]]:
    """Read text, parse and clean: what the dataflows have in common."""
    config: dict[str, Any] = {"path": str(source), "format": "text"}
    if files_per_batch is not None:
        config["files_per_batch"] = files_per_batch
    return [
        {"id": "lines", "type": "read_files", "config": config},
        {"id": "parse", "type": "parse_json", "config": {"columns": READINGS}, "inputs": ["lines"]},
        {"id": "clean", "type": "filter", "config": {"where": CLEAN}, "inputs": ["parse"]},
    ]


CLEAN = "t between -10 and 50 and h between 5 and 95 and sensor is not null"


def _tail(number: int) -> tuple[str, dict[str, str], list[str]]:
    """The part of a dataflow that is its own: filter, new columns, columns kept."""
    made = {"heat": f"t * {1 + number / 10} + h / {2 + number}", "place": f"upper(concat(zone, '-{number}'))"}
    return f"t > {number % 40 - 10}", made, ["id", "sensor", "heat", "place"]


def _dataflow(name: str, source: Path, number: int, sink: dict[str, Any], files_per_batch: int | None = 1) -> Dataflow:
    where, made, kept = _tail(number)
    tasks = [
        *_prefix(source, files_per_batch),
        {"id": "mine", "type": "filter", "config": {"where": where}, "inputs": ["clean"]},
        {"id": "made", "type": "derive", "config": {"columns": made}, "inputs": ["mine"]},
        {"id": "kept", "type": "select", "config": {"columns": kept}, "inputs": ["made"]},
        {"id": "out", **sink, "inputs": ["kept"]},
    ]
    return dataflow_of(name, tasks)


# what running costs


def _costs(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    spent: dict[str, list[float]] = {"hand_1": [], "headgate_1": [], "hand_8": [], "headgate_8": []}
    with on_spark() as (spark, folder):
        progress("writing data")
        _write_files(folder / "data", sizes.files, sizes.rows, seed)
        _write_files(folder / "large", *sizes.large, seed)
        for turn in range(sizes.rounds + 1):
            for count, data in ((1, "large"), (8, "data")):
                for side, measure in (("hand", _by_hand), ("headgate", _under_headgate)):
                    progress(f"cost of {count} dataflow(s), {side}, round {turn} of {sizes.rounds}, 0 warms up")
                    place = folder / f"{side}-{count}-{turn}"
                    used, rows = measure(spark, place, folder / data, count)
                    if turn:
                        spent[f"{side}_{count}"].append(used)
                    spent.setdefault(f"rows_{count}", []).append(rows)
                    shutil.rmtree(place, ignore_errors=True)
    for count in (1, 8):
        assert len(set(spent[f"rows_{count}"])) == 1, "the two sides put out different numbers of rows"
    medians = {name: statistics.median(values) for name, values in spent.items()}
    million = sizes.large[0] * sizes.large[1] / 1e6
    figures = {
        "overhead": medians["headgate_1"] / medians["hand_1"],
        "shared": medians["headgate_8"] / medians["hand_8"],
        "hand_cpu_s_per_million": medians["hand_1"] / million,
        "headgate_cpu_s_per_million": medians["headgate_1"] / million,
    }
    return Measured(figures, spent)


def _by_hand(spark: Any, place: Path, data: Path, count: int) -> tuple[float, float]:
    """The pipelines as one would write them: a query each."""
    before = cpu_seconds()
    queries = []
    for number in range(count):
        where, made, kept = _tail(number)
        rows = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(data))
        rows = rows.selectExpr(f"from_json(value, '{READINGS}') as row").select("row.*").where(CLEAN).where(where)
        rows = rows.selectExpr("*", *(f"{text} as {name}" for name, text in made.items())).select(*kept)
        writer = rows.writeStream.format("parquet").option("path", str(place / f"out{number}"))
        queries.append(
            writer.option("checkpointLocation", str(place / f"check{number}")).trigger(availableNow=True).start()
        )
    for query in queries:
        query.awaitTermination()
    return cpu_seconds() - before, _rows_in(place, count)


def _under_headgate(spark: Any, place: Path, data: Path, count: int) -> tuple[float, float]:
    from headgate.runtime.engine.engine import Engine

    before = cpu_seconds()
    flows = [_dataflow(f"flow{n}", data, n, parquet_sink(place / f"out{n}")) for n in range(count)]
    with Engine(place / "state", spark=spark, trigger_s=0.0) as engine:
        engine.submit(*flows)
        engine.wait_until_idle()
    return cpu_seconds() - before, _rows_in(place, count)


def _rows_in(place: Path, count: int) -> float:
    import pyarrow.parquet as pq

    files = [file for n in range(count) for file in (place / f"out{n}").glob("*.parquet")]
    return float(sum(pq.read_metadata(file).num_rows for file in files))


# many tiny dataflows, and changes while they run


def tiny_dataflows(source: Path, place: Path, count: int) -> list[Dataflow]:
    """The dataflows of ``floor_ms``."""
    return [_dataflow(f"tiny{n}", source, n, parquet_sink(place / f"out{n}"), None) for n in range(count)]


def _floor(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Many tiny dataflows beside one, and changes while the many run."""
    with on_spark() as (spark, place):
        many = _hot_changes(spark, place / "many", seed, progress, sizes)
        progress("one tiny dataflow at 1,000 rows/s")
        alone = tiny_floor(spark, place / "one", seed, 1, sizes.warm, sizes.steady)
    one, floor = statistics.median(alone), many.figures["floor_ms"]
    return many | Measured({"floor_one_ms": one, "floor_vs_one": floor / one}, {"floor_one": alone})


def tiny_floor(spark: Any, place: Path, seed: int, count: int, warm: int, steady: int) -> list[float]:
    """Milliseconds of the micro-batches of so many tiny dataflows at 1,000 rows/s."""
    with fed(spark, place, seed + 6) as (engine, feeder):
        engine.submit(*tiny_dataflows(feeder.source, place, count))
        (fragment,) = engine.fragments.values()
        return list(batches_of(fragment, feeder, warm, steady).values())


def _hot_changes(spark: Any, place: Path, seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Tiny dataflows at 1,000 rows/s; then dataflows are submitted and alternates are switched while they run."""
    merges, switches, pauses = [], [], []
    with fed(spark, place, seed + 6) as (engine, feeder):
        source = feeder.source
        progress(f"{sizes.tiny} tiny dataflows at 1,000 rows/s")
        engine.submit(*tiny_dataflows(source, place, sizes.tiny), _switchable(source, place / "switched"))
        fragment = next(iter(engine.fragments.values()))
        records = engine.records.taken()
        steady = list(batches_of(fragment, feeder, sizes.warm, sizes.steady).values())
        for turn in range(sizes.changes):
            progress(f"hot change {turn + 1} of {sizes.changes}")
            out = place / f"merged{turn}"
            flow = beside(
                _dataflow(f"merged{turn}", source, 60 + turn, parquet_sink(out), None), engine.dataflows[0].name
            )
            merges.append(first_row(lambda flow=flow: engine.submit(flow), out, feeder))  # type: ignore[misc]
            pauses.append(_pause(fragment, feeder, engine.plan.number, records))
            wanted = "b" if turn % 2 == 0 else "a"
            out = place / "switched" / wanted
            before = len(list(out.glob("*"))) if out.exists() else 0
            switch = lambda wanted=wanted: engine.switch("switchable", "either", wanted)  # noqa: E731
            switches.append(first_row(switch, out, feeder, before))
            pauses.append(_pause(fragment, feeder, engine.plan.number, records))
        failed = engine.failures()
        assert not failed, failed
    jitter = [now - statistics.median(steady[at - BEFORE : at]) for at, now in enumerate(steady) if at >= BEFORE]
    floor, merged, switched = (statistics.median(samples) for samples in (steady, merges, switches))
    figures = {
        "floor_ms": floor,
        "trigger_s": TRIGGER_S,
        "hot_merge_s": merged,
        "hot_merge_ratio": merged / _trigger_and_batch_s(floor),
        "hot_switch_s": switched,
        "hot_switch_ratio": switched / _trigger_and_batch_s(floor),
        "hot_pause_ms": statistics.median(pauses),
        "hot_pause_worst_ms": max(pauses),
        "jitter_worst_ms": max(jitter),
        "jitter_ratio": max(jitter) / floor,
    }
    return Measured(figures, {"floor": steady, "hot_merge": merges, "hot_switch": switches, "hot_pauses": pauses})


def _trigger_and_batch_s(batch_ms: float) -> float:
    return TRIGGER_S + batch_ms / 1000


def _switchable(source: Path, out: Path) -> Dataflow:
    """A dataflow with two alternates, whose rows show which one made them: they go to one of two sinks."""
    tasks = [
        *_prefix(source, None),
        {
            "id": "either",
            "inputs": ["clean"],
            "alternates": [
                {"name": "a", "type": "derive", "config": {"columns": {"way": "'a'"}}},
                {"name": "b", "type": "derive", "config": {"columns": {"way": "'b'"}}, "value": 0.5},
            ],
        },
        {"id": "out_a", **parquet_sink(out / "a"), "inputs": [{"from": "either", "where": "way = 'a'"}]},
        {"id": "out_b", **parquet_sink(out / "b"), "inputs": [{"from": "either", "where": "way = 'b'"}]},
    ]
    return dataflow_of("switchable", tasks)


def _pause(fragment: Any, feeder: Feeder, number: int, records: deque[Any]) -> float:
    """How much longer the first batch under a plan took than the median of those before it, in milliseconds."""
    batches_of(fragment, feeder, warm=0, wanted=BEFORE + 1)
    plans = {
        each.epoch: each.snapshot for each in list(records) if each.fragment == fragment.fragment.id and each.rows_in
    }
    recent = [p for p in fragment.query.recentProgress if p["batchId"] in plans]
    took = {p["batchId"]: float(p["durationMs"]["triggerExecution"]) for p in recent}
    first = min(batch for batch in took if plans[batch] == number)
    return took[first] - statistics.median([ms for batch, ms in took.items() if batch < first][-BEFORE:])


# keyed tasks


def _keyed_tasks(number: int) -> list[dict[str, Any]]:
    return [
        {"type": "kalman", "config": {"key": ["sensor"], "column": "t", "sensor_noise": 0.3 + number / 100}},
        {"type": "moving_average", "config": {"key": ["sensor"], "column": "t", "size": 5 + number}},
        {"type": "difference", "config": {"key": ["sensor"], "column": "t", "lag": 1 + number}},
    ]


def _keyed_flow(name: str, source: Path, works: list[dict[str, Any]], out: Path, files: int | None) -> Dataflow:
    tasks = _prefix(source, files)
    tasks.append({"id": "few", "type": "select", "config": {"columns": ["id", "sensor", "t"]}, "inputs": ["clean"]})
    for n, work in enumerate(works):
        tasks.append({"id": f"keyed{n}", **work, "inputs": ["few"]})
        tasks.append({"id": f"out{n}", **parquet_sink(out / str(n)), "inputs": [f"keyed{n}"]})
    return dataflow_of(name, tasks)


def _keyed(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return _hot_keyed(seed, progress, sizes) | _keyed_throughput(seed, progress, sizes)


def _hot_keyed(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Keyed tasks that join a running host: from the request to the first row, over both hops."""
    took = []
    with on_spark() as (spark, place), fed(spark, place, seed + 7, sensors=200) as (engine, feeder):
        engine.submit(_keyed_flow("base", feeder.source, _keyed_tasks(0), place / "base", None))
        host = next(f for f in engine.fragments.values() if f.fragment.kind == "keyed")
        source = next(f for f in engine.fragments.values() if f.fragment.kind == "source")
        batches_of(host, feeder, warm=2 * sizes.warm // 3, wanted=1)
        batch = statistics.median(batches_of(source, feeder, 0, sizes.steady).values())
        for turn in range(sizes.changes):
            progress(f"hot keyed change {turn + 1} of {sizes.changes}")
            out = place / f"more{turn}"
            work = _keyed_tasks(turn + 1)[turn % 3]
            flow = beside(_keyed_flow(f"more{turn}", feeder.source, [work], out, None), "base")
            took.append(first_row(lambda flow=flow: engine.submit(flow), out / "0", feeder))  # type: ignore[misc]
            batches_of(host, feeder, warm=0, wanted=2)
    keyed = statistics.median(took)
    ratio = keyed / _trigger_and_batch_s(batch)
    figures = {"hot_keyed_s": keyed, "keyed_batch_ms": batch, "hot_keyed_ratio": ratio}
    return Measured(figures, {"hot_keyed": took})


def _keyed_throughput(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Rows per second through a host with three tasks and 5,000 keys, warm."""
    from headgate.runtime.engine.engine import Engine

    with on_spark() as (spark, place), Engine(place / "state", spark=spark, trigger_s=0.0) as engine:
        _write_files(place / "data", sizes.files, sizes.rows, seed)
        records = engine.records.taken()
        engine.submit(_keyed_flow("keyed", place / "data", _keyed_tasks(0), place / "out", 1))
        host = next(f for f in engine.fragments.values() if f.fragment.kind == "keyed")
        progress("keyed host, 5,000 keys, three tasks")
        engine.wait_until_idle()
        # A host reads packs of rows, so Spark's own count of its input is not that of rows.
        epochs = [each for each in records if each.fragment == host.fragment.id and each.rows_in > sizes.rows / 60]
    rates = [each.rows_in / (each.ended - each.began) for each in epochs[1:] or epochs]
    return Measured({"keyed_rows_per_s": statistics.median(rates)}, {"keyed_rates": rates})


def _state(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return hot_state(seed, progress, sizes.warm, sizes.changes)


def _files(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    return cost_of_reading(seed, progress, sizes.rounds, sizes.records)


RUNTIME = Benchmark(
    "runtime",
    "The cost of running dataflows on Spark, and the time of changes.",
    {"cost": _costs, "floor": _floor, "keyed": _keyed, "state": _state, "files": _files},
    Sizes(),
    Sizes(1, 3, 300, (2, 500), 4, 1, BEFORE + 1, 2, (20, 60)),
    "overhead shared hand_cpu_s_per_million headgate_cpu_s_per_million floor_ms floor_one_ms floor_vs_one trigger_s "
    "hot_merge_s hot_merge_ratio hot_switch_s hot_switch_ratio hot_pause_ms hot_pause_worst_ms jitter_worst_ms "
    "jitter_ratio hot_keyed_s keyed_batch_ms hot_keyed_ratio keyed_rows_per_s hot_window_s hot_join_s "
    "files_*_cpu files_*_cpu_s_per_million",
    spark=("local[2]", "3g"),
)
