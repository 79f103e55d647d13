"""``headgate bench observe``: the cost of measuring, and its error.

Everything is measured in one run, on one Spark:

- ``sampling``: CPU of four dataflows with all measuring on (rows counted in every batch, tasks measured by themselves
  in one batch of twenty, an observation every five seconds) over their CPU with all of it off. Two engines, one of
  each kind, take turns at the same files, a few at a time, so that other load on the machine affects both, once Spark
  is warm. ``sampled_share`` is the time that tasks were measured by themselves meanwhile, over that in which batches
  ran: half a percent in the long run. Every task has been measured before, and it begins when another measurement is
  due;
- ``cpu_error_*``: how far the profiled CPU time per row is from that of a micro-benchmark of the task by itself, by
  kind of task; the micro-benchmark reads the CPU time of all processes, with and without the task, over many rows,
  before the engine profiles and after, because the speed of a machine changes within minutes;
- ``events_behind_error``: how far the growth of a source's reported backlog is from the rows that became due less those
  that it took, while it gets twice as many as it may take;
- ``observe_ms`` and ``observation_latency_s``: how long an observation takes, and how old the newest batch in it is.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

from headgate.errors import HeadgateError
from headgate.model.dataflow import Dataflow
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.on_spark import drop, keeping_house, on_spark
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import dataflow_of, parquet_sink

__all__ = ["OBSERVE", "burn"]

COLUMNS = "id bigint, k string, v double, text string"
MICRO_HOSTED = 8
"""How many tasks more the one host has than the other."""

KEYS = 200


@dataclass(frozen=True, slots=True)
class Sizes:
    files: int = 800
    rows: int = 4_000
    warm_files: int = 200
    """So many that Spark has compiled everything."""

    at_once: int = 20
    at_first_s: float = 60.0
    """Enough for all tasks to be measured while Spark gets warm."""

    idle_s: float = 5.0
    times: int = 12
    """Measurements of a task before its profile is read: the last five count, and in the first ones Spark compiles."""

    profile_s: float = 600.0
    micro_rounds: int = 5
    """How often a task is measured with and without it, before and after."""

    micro_times: int = 3
    """How often in a row, where it costs little."""

    looks: int = 15
    look_s: float = 2.0


Part = Callable[[Any, Path, Progress, Sizes], Measured]

CHEAP = {"w": "v * 2 + id", "u": "concat(k, '-', v)"}
COSTLY = {"h": "sha2(concat(text, sha2(sha2(text, 512), 512)), 512)"}
BURN = "headgate_benchmarks.observe.burn"
KALMAN: dict[str, Any] = {"key": ["k"], "column": "v", "into": "s"}


def burn(row: dict[str, Any]) -> dict[str, Any]:
    """A Python function over rows that costs something: a sum over the letters of a text."""
    return {**row, "v": float(sum(ord(letter) for letter in row["text"]) % 9_973)}


def _run(parts: Sequence[Part], seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Some parts, on one Spark and the same data."""
    with on_spark() as (spark, folder):
        progress("writing data")
        _write(folder / "data", sizes.files, sizes.rows, seed)
        return reduce(Measured.__or__, (part(spark, folder, progress, sizes) for part in parts))


def _rows(count: int, draw: random.Random, first: int) -> str:
    made = (
        {"id": first + n, "k": f"k{(first + n) % KEYS}", "v": round(draw.uniform(-20, 60), 3), "text": _text(draw)}
        for n in range(count)
    )
    return "".join(json.dumps(row) + "\n" for row in made)


def _text(draw: random.Random) -> str:
    return " ".join(f"word{draw.randrange(10_000)}" for _ in range(6))


def _write(folder: Path, files: int, rows: int, seed: int) -> None:
    folder.mkdir(parents=True)
    for number in range(files):
        text = _rows(rows, random.Random(seed + number), number * rows)
        drop(folder, number, text)


def _flow(name: str, source: Mapping[str, Any], sink: Mapping[str, Any], *tasks: Mapping[str, Any]) -> Dataflow:
    made: list[dict[str, Any]] = [{"id": "in", **source}]
    for number, task in enumerate((*tasks, sink)):
        made.append({"id": f"t{number}", **task, "inputs": [made[-1]["id"]]})
    return dataflow_of(name, made)


def _flows(source: Mapping[str, Any], sink: Callable[[str], Mapping[str, Any]]) -> list[Dataflow]:
    """A cheap, a costly, a Python and a keyed task, each in a dataflow of its own behind a shared filter."""
    valid = {"type": "filter", "config": {"where": "v > -1000 and text is not null"}}
    return [
        _flow("cheap", source, sink("cheap"), valid, {"type": "derive", "config": {"columns": CHEAP}}),
        _flow("costly", source, sink("costly"), valid, {"type": "derive", "config": {"columns": COSTLY}}),
        _flow("python", source, sink("python"), valid, {"type": "python", "config": {"function": BURN}}),
        _flow("keyed", source, sink("keyed"), valid, {"type": "kalman", "config": KALMAN}),
    ]


# what measuring costs


def _cost(spark: Any, folder: Path, progress: Progress, sizes: Sizes) -> Measured:
    from headgate.runtime.engine.engine import Engine
    from headgate.runtime.observing.measuring import Measuring

    sides = {"off": Measuring(counting=False, sample_every=None), "on": Measuring(at_first_s=sizes.at_first_s)}
    spent: dict[str, list[float]] = {side: [] for side in sides}
    _warmed(spark, folder, progress, sizes)
    files = sorted((folder / "data").iterdir())
    with ExitStack() as ends:
        engines: dict[str, Any] = {}
        for side, measuring in sides.items():
            (folder / side / "in").mkdir(parents=True)
            config = {"path": str(folder / side / "in"), "columns": COLUMNS, "files_per_batch": 1}
            engine = Engine(folder / side / "state", spark=spark, trigger_s=0.1, measuring=measuring)
            engines[side] = ends.enter_context(engine)
            ends.enter_context(keeping_house(engine))  # which observes, where there is something to observe
            source = {"type": "read_files", "config": config}
            engine.submit(*_flows(source, lambda name, side=side: parquet_sink(folder / side / name)))  # type: ignore[misc]

        def work(side: str, some: Sequence[Path]) -> None:
            for path in some:
                os.link(path, folder / side / "in" / path.name)
            engines[side].wait_until_idle()
            engines[side].background.wait_until_idle()

        progress(f"four dataflows, {sizes.warm_files} files to warm up")
        for first in range(0, sizes.warm_files, sizes.at_once):
            for side in sides:
                work(side, files[first : first + sizes.at_once])
        profiler = engines["on"].profiler
        budget = profiler.budget
        # As in the midst of an engine's life, at the moment at which a measurement is due.
        budget.worked_s += (profiler.next_s - budget.left_s) / sides["on"].share
        spent_s, worked_s = budget.spent_s, budget.worked_s
        before = cpu_seconds()
        time.sleep(sizes.idle_s)
        idle = (cpu_seconds() - before) / sizes.idle_s / len(sides)  # what the one that is not at work uses, a second
        for turn, first in enumerate(range(sizes.warm_files, sizes.files, sizes.at_once)):
            for side in sides if turn % 2 else reversed(sides):
                before, began = cpu_seconds(), time.monotonic()
                work(side, files[first : first + sizes.at_once])
                spent[side].append(cpu_seconds() - before - idle * (time.monotonic() - began))
            ratio = sum(spent["on"]) / sum(spent["off"])
            progress(f"four dataflows, {first + sizes.at_once} of {sizes.files} files: on over off is {ratio:.3f}")
        share = (budget.spent_s - spent_s) / (budget.worked_s - worked_s)
        figures = {"sampling": ratio, "sampled_share": share, "idle_cpu": idle}
        figures["tasks_sampled"] = float(len(profiler.profiles()))
    return Measured(figures, {"sampling": spent})


def _warmed(spark: Any, folder: Path, progress: Progress, sizes: Sizes) -> None:
    """Let Spark compile what measuring tasks by themselves takes: in the life of an engine that happens once."""
    from headgate.runtime.engine.engine import Engine
    from headgate.runtime.observing.measuring import Measuring

    progress("tasks measured by themselves, to warm up")
    (folder / "warm" / "in").mkdir(parents=True)
    for path in sorted((folder / "data").iterdir())[: sizes.warm_files]:
        os.link(path, folder / "warm" / "in" / path.name)
    config = {"path": str(folder / "warm" / "in"), "columns": COLUMNS, "files_per_batch": 5}
    flows = _flows({"type": "read_files", "config": config}, lambda name: parquet_sink(folder / "warm" / name))
    measuring = Measuring(sample_every=2, share=2.0)
    with Engine(folder / "warm" / "state", spark=spark, trigger_s=0.1, measuring=measuring) as engine:
        engine.submit(*flows)
        engine.wait_until_idle()
        engine.background.wait_until_idle()


# how true it is


def _truth(spark: Any, folder: Path, progress: Progress, sizes: Sizes) -> Measured:
    spent = _micro_benchmarks(spark, folder / "before", folder / "data", progress, sizes)
    profiled = _profiled(spark, folder, progress, sizes)
    for kind, more in _micro_benchmarks(spark, folder / "after", folder / "data", progress, sizes).items():
        spent[kind] += more
    known = {kind: statistics.median(seconds) for kind, seconds in spent.items()}
    figures = {f"cpu_error_{kind}": abs(profiled[kind] / known[kind] - 1.0) for kind in known}
    figures |= {f"cpu_us_{kind}": 1e6 * value for kind, value in known.items()}
    return Measured(figures, {"profiled_s": profiled, "micro_s": spent})


def _profiled(spark: Any, folder: Path, progress: Progress, sizes: Sizes) -> dict[str, float]:
    """CPU seconds per row as the engine has them, once each kind of task has been measured often enough."""
    from headgate.runtime.engine.engine import Engine
    from headgate.runtime.observing.measuring import Measuring

    place = folder / "truth"
    recording = sorted((folder / "data").iterdir())[0]
    config = {"path": str(recording), "columns": COLUMNS, "rate_per_s": 4_000.0, "repeat": True}
    source = {"type": "replay", "config": config}
    with Engine(place / "state", spark=spark, trigger_s=0.5, measuring=Measuring(sample_every=2, share=2.0)) as engine:
        engine.submit(*_flows(source, lambda name: parquet_sink(place / name)))
        kinds = {task.signature: task.users[0] for task in engine.plan.tasks.values() if len(task.users) == 1}
        until, enough = time.monotonic() + sizes.profile_s, 0
        while enough < 4 and time.monotonic() < until:
            time.sleep(min(5.0, sizes.idle_s))
            often = {task for (task, _), times in engine.profiler.times().items() if times >= sizes.times}
            enough = sum(task in kinds for task in often & {task for task, _ in engine.profiler.samples()})
            progress(f"profiling: {enough} of 4 kinds of tasks have enough measurements")
        profiled: dict[str, float] = {
            kinds[task]: profile.cpu_s_per_row
            for (task, _), profile in engine.profiler.profiles().items()
            if task in kinds
        }
    if missing := sorted(set(kinds.values()) - profiled.keys()):
        raise HeadgateError("NOT_MEASURED", f"no profile of {', '.join(missing)} within {sizes.profile_s:g} s")
    return profiled


def _micro_benchmarks(spark: Any, place: Path, data: Path, progress: Progress, sizes: Sizes) -> dict[str, list[float]]:
    """CPU seconds per row of each kind of task, some times, by the CPU time of all processes over many rows."""
    from headgate.runtime.keyed.host import host, packed

    place.mkdir()
    rows = spark.read.schema(COLUMNS).json(str(data)).coalesce(2).persist()
    count = rows.count()
    hosted = rows.selectExpr("id", "k", "v", "0L as __ingest", "1 as __snapshot", "id as __order").limit(count // 8)
    hosted = hosted.repartition(2).persist()
    keyed = hosted.count()

    def spent(frame: Any, times: int) -> float:
        before = cpu_seconds()
        for _ in range(times):
            frame.write.format("noop").mode("append").save()
        return cpu_seconds() - before

    def differences(
        what: str, with_task: Callable[[], Any], without: Callable[[], Any], rows: int, times: int = 1
    ) -> list[float]:
        seconds = []
        for turn in range(1 + sizes.micro_rounds):  # the first warms up
            progress(f"micro-benchmark of the {what} task, round {turn} of {sizes.micro_rounds}")
            seconds.append((spent(with_task(), times) - spent(without(), times)) / times / rows)
        return seconds[1:]

    def derived(columns: Mapping[str, str]) -> Any:
        return rows.selectExpr("*", *(f"{text} as {name}" for name, text in columns.items()))

    def in_python(batches: Any) -> Any:
        for batch in batches:
            yield type(batch).from_pylist([burn(row) for row in batch.to_pylist()], schema=batch.schema)

    def hosting(tasks: int) -> Any:
        plans = place / f"plans-{tasks}"
        plans.mkdir(exist_ok=True)
        hosts = [
            {
                "task": f"t{n}",
                "type": "kalman",
                "config": {**KALMAN, "process_noise": 0.1 + n / 10},
                "life": f"t{n}@1",
                "alternate": "a",
            }
            for n in range(tasks)
        ]
        (plans / "1.json").write_text(json.dumps({"host": hosts}), encoding="utf-8")
        return host(packed(hosted, ("k",), 32), hosted.schema, ("k",), "host", plans)

    try:
        return {
            "cheap": differences("cheap", lambda: derived(CHEAP), lambda: rows, count, sizes.micro_times),
            "costly": differences("costly", lambda: derived(COSTLY), lambda: rows, count),
            "python": differences("Python", lambda: rows.mapInArrow(in_python, rows.schema), lambda: rows, count),
            "keyed": differences("keyed", lambda: hosting(1 + MICRO_HOSTED), lambda: hosting(1), MICRO_HOSTED * keyed),
        }
    finally:
        hosted.unpersist()
        rows.unpersist()


def _behind(spark: Any, folder: Path, progress: Progress, sizes: Sizes) -> Measured:
    """A source that gets 4,000 rows a second and may take half of that: its reported backlog."""
    from headgate.runtime.engine.engine import Engine

    progress("a source that falls behind")
    place = folder / "behind"
    recording = sorted((folder / "data").iterdir())[0]
    config = {"path": str(recording), "columns": COLUMNS, "rate_per_s": 4_000.0, "repeat": True}
    source = {"type": "replay", "config": config}
    looks: list[tuple[float, int, int]] = []
    looks_ms, ages = [], []
    with Engine(place / "state", spark=spark, trigger_s=0.5) as engine:
        engine.submit(_flow("one", source, {"type": "write_memory", "config": {"name": "one"}}))
        engine.limit("one", "in", 1_000)
        observer = engine.observer()
        taken = 0
        for _ in range(sizes.looks):
            time.sleep(sizes.look_s)
            before = time.monotonic()
            seen = observer.observe()
            looks_ms.append(1e3 * (time.monotonic() - before))
            (fragment,) = engine.fragments.values()
            ages.append(time.time() - (fragment.last.began + fragment.last.seconds))
            taken += seen.fragments[0].rows_in
            looks.append((before, taken, seen.fragments[0].rows_behind or 0))
    # What has come to be due since an early look, less what was taken since, must have been added to the backlog.
    errors = []
    began, taken, behind = looks[sizes.looks // 7]
    for at, taken_then, behind_then in looks[sizes.looks // 2 + 1 :]:
        grown = 4_000.0 * (at - began) - (taken_then - taken)
        errors.append(abs((behind_then - behind) - grown) / grown)
    figures = {
        "events_behind_error": statistics.median(errors),
        "observe_ms": statistics.median(looks_ms),
        "observation_latency_s": statistics.median(ages),
    }
    return Measured(figures, {"events_behind_errors": errors, "looks_ms": looks_ms})


OBSERVE = Benchmark(
    "observe",
    "The cost of measuring while dataflows run, and its error.",
    {"cost": partial(_run, (_cost,)), "truth": partial(_run, (_truth,)), "behind": partial(_run, (_behind,))},
    Sizes(),
    Sizes(8, 100, 2, 2, 0.5, 0.5, 1, 120.0, 1, 1, 4, 1.0),
    "sampling sampled_share idle_cpu tasks_sampled cpu_error_cheap cpu_error_costly cpu_error_python cpu_error_keyed "
    "cpu_us_* events_behind_error observe_ms observation_latency_s",
    whole=partial(_run, (_cost, _truth, _behind)),
)
