"""``headgate bench observe``: what measuring costs, and how true it is.

Everything is measured in one run, on one Spark:

- ``sampling``: CPU of four dataflows with all measuring on (rows counted in every batch, tasks measured by themselves
  in one batch of twenty, an observation every five seconds) over their CPU with all of it off. Two engines, one of
  each kind, take turns at the same files, a few at a time, so that what else the machine does falls on both, once
  Spark is warm. ``sampled_share`` is the time that tasks were measured by themselves meanwhile, over that in which
  batches were at work: half a percent in the long run. Every task has been measured before, and it begins when
  another measurement is due;
- ``cpu_error_*``: how far the profiled CPU time per row is from that of a micro-benchmark of the task alone, by kind of
  task; the micro-benchmark reads the CPU time of all processes, with and without the task, over many rows, before the
  engine profiles and after, because how fast a machine is changes within minutes;
- ``events_behind_error``: how far the growth of what a source is said to be behind is from the rows that came to be due
  less those that it took, while it gets twice as many as it may take;
- ``observe_ms`` and ``observation_latency_s``: how long a look takes, and how old the newest batch is that it has seen.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate_benchmarks.measured import Measured, cpu_seconds
from headgate_benchmarks.on_spark import drop, keeping_house, on_spark

__all__ = ["PARTS", "burn", "run"]

COLUMNS = "id bigint, k string, v double, text string"
FILES, ROWS = 800, 4_000
WARM_FILES, AT_ONCE = 200, 20
"""Files of which there are so many that Spark has compiled what it runs; and how many are a turn."""

AT_FIRST_S = 60.0
"""Enough for all tasks to be measured while Spark gets warm."""

IDLE_S = 5.0
TIMES = 12
"""Measurements of a task before its profile is looked at: the last five count, and in the first ones Spark compiles."""

MICRO_ROUNDS, MICRO_TIMES = 5, 3
"""How often it is measured with a task and without it, before and after; and how often in a row what is cheap."""

MICRO_HOSTED = 8
"""How many tasks more the one host has than the other."""

KEYS = 200

Progress = Callable[[str], None]
Part = Callable[[Any, Path, Progress], tuple[dict[str, float], dict[str, Any]]]

CHEAP = {"w": "v * 2 + id", "u": "concat(k, '-', v)"}
COSTLY = {"h": "sha2(concat(text, sha2(sha2(text, 512), 512)), 512)"}
BURN = "headgate_benchmarks.observe.burn"
KALMAN: dict[str, Any] = {"key": ["k"], "column": "v", "into": "s"}


def burn(row: dict[str, Any]) -> dict[str, Any]:
    """A Python function over rows that costs something: a sum over the letters of a text."""
    return {**row, "v": float(sum(ord(letter) for letter in row["text"]) % 9_973)}


def run(seed: int, progress: Progress) -> Measured:
    """All parts."""
    return _run((_cost, _truth, _behind), seed, progress)


def _run(parts: Sequence[Part], seed: int, progress: Progress) -> Measured:
    """Some parts, on one Spark."""
    figures: dict[str, float] = {}
    samples: dict[str, Any] = {}
    with on_spark() as (spark, folder):
        progress("writing data")
        _write(folder / "data", FILES, ROWS, seed)
        for part in parts:
            found, raw = part(spark, folder, progress)
            figures |= found
            samples |= raw
    return Measured({name: round(value, 4) for name, value in figures.items()}, samples)


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
    return parse(json.dumps({"name": name, "tasks": made}), "json").dataflow


def _flows(source: Mapping[str, Any], sink: Callable[[str], Mapping[str, Any]]) -> list[Dataflow]:
    """A cheap, a costly, a Python and a keyed task, each in a dataflow of its own behind a shared filter."""
    valid = {"type": "filter", "config": {"where": "v > -1000 and text is not null"}}
    return [
        _flow("cheap", source, sink("cheap"), valid, {"type": "derive", "config": {"columns": CHEAP}}),
        _flow("costly", source, sink("costly"), valid, {"type": "derive", "config": {"columns": COSTLY}}),
        _flow("python", source, sink("python"), valid, {"type": "python", "config": {"function": BURN}}),
        _flow("keyed", source, sink("keyed"), valid, {"type": "kalman", "config": KALMAN}),
    ]


def _parquet(folder: Path) -> dict[str, Any]:
    return {"type": "write_files", "config": {"path": str(folder), "format": "parquet"}}


# what measuring costs


def _cost(spark: Any, folder: Path, progress: Progress) -> tuple[dict[str, float], dict[str, Any]]:
    from headgate.runtime.engine.engine import Engine
    from headgate.runtime.observing.measuring import Measuring

    sides = {"off": Measuring(counting=False, sample_every=None), "on": Measuring(at_first_s=AT_FIRST_S)}
    spent: dict[str, list[float]] = {side: [] for side in sides}
    _warmed(spark, folder, progress)
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
            engine.submit(*_flows(source, lambda name, side=side: _parquet(folder / side / name)))  # type: ignore[misc]

        def work(side: str, some: Sequence[Path]) -> None:
            for path in some:
                os.link(path, folder / side / "in" / path.name)
            engines[side].wait_until_idle()
            engines[side].background.wait_until_idle()

        progress(f"four dataflows, {WARM_FILES} files to warm up")
        for first in range(0, WARM_FILES, AT_ONCE):
            for side in sides:
                work(side, files[first : first + AT_ONCE])
        profiler = engines["on"].profiler
        budget = profiler.budget
        # As in the midst of an engine's life, at the moment at which a measurement is due.
        budget.worked_s += (profiler.next_s - budget.left_s) / sides["on"].share
        spent_s, worked_s = budget.spent_s, budget.worked_s
        before = cpu_seconds()
        time.sleep(IDLE_S)
        idle = (cpu_seconds() - before) / IDLE_S / len(sides)  # what the one that is not at work uses, a second
        for turn, first in enumerate(range(WARM_FILES, FILES, AT_ONCE)):
            for side in sides if turn % 2 else reversed(sides):
                before, began = cpu_seconds(), time.monotonic()
                work(side, files[first : first + AT_ONCE])
                spent[side].append(cpu_seconds() - before - idle * (time.monotonic() - began))
            ratio = sum(spent["on"]) / sum(spent["off"])
            progress(f"four dataflows, {first + AT_ONCE} of {FILES} files: on over off is {ratio:.3f}")
        share = (budget.spent_s - spent_s) / (budget.worked_s - worked_s)
        figures = {"sampling": ratio, "sampled_share": share, "idle_cpu": idle}
        figures["tasks_sampled"] = float(len(profiler.profiles()))
    return figures, {"sampling": spent}


def _warmed(spark: Any, folder: Path, progress: Progress) -> None:
    """Let Spark compile what measuring tasks by themselves takes: in the life of an engine that happens once."""
    from headgate.runtime.engine.engine import Engine
    from headgate.runtime.observing.measuring import Measuring

    progress("tasks measured by themselves, to warm up")
    (folder / "warm" / "in").mkdir(parents=True)
    for path in sorted((folder / "data").iterdir())[:WARM_FILES]:
        os.link(path, folder / "warm" / "in" / path.name)
    config = {"path": str(folder / "warm" / "in"), "columns": COLUMNS, "files_per_batch": 5}
    flows = _flows({"type": "read_files", "config": config}, lambda name: _parquet(folder / "warm" / name))
    measuring = Measuring(sample_every=2, share=2.0)
    with Engine(folder / "warm" / "state", spark=spark, trigger_s=0.1, measuring=measuring) as engine:
        engine.submit(*flows)
        engine.wait_until_idle()
        engine.background.wait_until_idle()


# how true it is


def _truth(spark: Any, folder: Path, progress: Progress) -> tuple[dict[str, float], dict[str, Any]]:
    spent = _micro_benchmarks(spark, folder / "before", folder / "data", progress)
    told = _profiled(spark, folder, progress)
    for kind, more in _micro_benchmarks(spark, folder / "after", folder / "data", progress).items():
        spent[kind] += more
    known = {kind: statistics.median(seconds) for kind, seconds in spent.items()}
    figures = {f"cpu_error_{kind}": abs(told[kind] / known[kind] - 1.0) for kind in known}
    figures |= {f"cpu_us_{kind}": 1e6 * value for kind, value in known.items()}
    return figures, {"profiled_s": told, "micro_s": spent}


def _profiled(spark: Any, folder: Path, progress: Progress) -> dict[str, float]:
    """CPU seconds per row as the engine has them, once each kind of task has been measured often enough."""
    from headgate.runtime.engine.engine import Engine
    from headgate.runtime.observing.measuring import Measuring

    place = folder / "truth"
    recording = sorted((folder / "data").iterdir())[0]
    config = {"path": str(recording), "columns": COLUMNS, "rate_per_s": 4_000.0, "repeat": True}
    source = {"type": "replay", "config": config}
    with Engine(place / "state", spark=spark, trigger_s=0.5, measuring=Measuring(sample_every=2, share=2.0)) as engine:
        engine.submit(*_flows(source, lambda name: _parquet(place / name)))
        kinds = {task.signature: task.users[0] for task in engine.plan.tasks.values() if len(task.users) == 1}
        until, enough = time.monotonic() + 600, 0
        while enough < 4 and time.monotonic() < until:
            time.sleep(5)
            enough = sum(times >= TIMES for (task, _), times in engine.profiler.times().items() if task in kinds)
            progress(f"profiling: {enough} of 4 kinds of tasks have been measured often enough")
        return {
            kinds[task]: profile.cpu_s_per_row
            for (task, _), profile in engine.profiler.profiles().items()
            if task in kinds
        }


def _micro_benchmarks(spark: Any, place: Path, data: Path, progress: Progress) -> dict[str, list[float]]:
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
        found = []
        for turn in range(1 + MICRO_ROUNDS):  # of which the first is to get warm
            progress(f"micro-benchmark of the {what} task, round {turn} of {MICRO_ROUNDS}")
            found.append((spent(with_task(), times) - spent(without(), times)) / times / rows)
        return found[1:]

    def derived(columns: Mapping[str, str]) -> Any:
        return rows.selectExpr("*", *(f"{text} as {name}" for name, text in columns.items()))

    def in_python(batches: Any) -> Any:
        for batch in batches:
            yield type(batch).from_pylist([burn(row) for row in batch.to_pylist()], schema=batch.schema)

    def hosting(tasks: int) -> Any:
        plans = place / f"plans-{tasks}"
        plans.mkdir(exist_ok=True)
        found = [
            {
                "task": f"t{n}",
                "type": "kalman",
                "config": {**KALMAN, "process_noise": 0.1 + n / 10},
                "life": f"t{n}@1",
                "alternate": "a",
            }
            for n in range(tasks)
        ]
        (plans / "1.json").write_text(json.dumps({"host": found}), encoding="utf-8")
        return host(packed(hosted, ("k",), 32), hosted.schema, ("k",), "host", plans)

    try:
        return {
            "cheap": differences("cheap", lambda: derived(CHEAP), lambda: rows, count, MICRO_TIMES),
            "costly": differences("costly", lambda: derived(COSTLY), lambda: rows, count),
            "python": differences("Python", lambda: rows.mapInArrow(in_python, rows.schema), lambda: rows, count),
            "keyed": differences("keyed", lambda: hosting(1 + MICRO_HOSTED), lambda: hosting(1), MICRO_HOSTED * keyed),
        }
    finally:
        hosted.unpersist()
        rows.unpersist()


def _behind(spark: Any, folder: Path, progress: Progress) -> tuple[dict[str, float], dict[str, Any]]:
    """A source that gets 4,000 rows a second and may take half of that; what it says of its backlog."""
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
        for _ in range(15):
            time.sleep(2.0)
            before = time.monotonic()
            seen = observer.observe()
            looks_ms.append(1e3 * (time.monotonic() - before))
            (fragment,) = engine.fragments.values()
            ages.append(time.time() - (fragment.last.began + fragment.last.seconds))
            taken += seen.fragments[0].rows_in
            looks.append((before, taken, seen.fragments[0].rows_behind))
    # What has come to be due since an early look, less what was taken since, must have been added to the backlog.
    errors = []
    began, taken, behind = looks[2]
    for at, taken_then, behind_then in looks[8:]:
        grown = 4_000.0 * (at - began) - (taken_then - taken)
        errors.append(abs((behind_then - behind) - grown) / grown)
    figures = {
        "events_behind_error": statistics.median(errors),
        "observe_ms": statistics.median(looks_ms),
        "observation_latency_s": statistics.median(ages),
    }
    return figures, {"events_behind_errors": errors, "looks_ms": looks_ms}


PARTS: Mapping[str, Callable[[int, Progress], Measured]] = {
    "cost": lambda seed, progress: _run((_cost,), seed, progress),
    "truth": lambda seed, progress: _run((_truth,), seed, progress),
    "behind": lambda seed, progress: _run((_behind,), seed, progress),
}
"""What of it can be run alone."""
