"""The cost of reading files: our source beside Spark's own reader, both feeding the same dataflow on this engine.

``etl`` is RIoTBench's ETL, whose source reads lines of text; ``json`` reads the same records as JSON with nested
columns.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.model.work import SourceContext, SourceWork
from headgate.tasks.registry import Registry, default_registry
from headgate.tasks.sources import ReadFiles
from headgate_benchmarks.beyond_start_up import Cost
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.on_spark import on_spark
from headgate_benchmarks.riotbench.data import put_records
from headgate_benchmarks.riotbench.on_headgate import application
from headgate_benchmarks.study import Measured, Progress

__all__ = ["cost_of_reading"]

ENTRIES = "bt bigint, e array<struct<n: string, u: string, v: string, sv: string>>"


def cost_of_reading(seed: int, progress: Progress, rounds: int, events: tuple[int, int]) -> Measured:
    """CPU seconds for a million records beyond start-up, by reader, in turns; the first round warms up."""
    spent: dict[str, list[float]] = {}
    costs: dict[str, list[Cost]] = {}
    with on_spark() as (spark, folder):
        for count in events:
            progress(f"writing {count:,} records")
            put_records(folder / str(count), count, seed, min(events))
        for turn in range(rounds + 1):
            for app, flow in APPLICATIONS.items():
                for reader, registry in (("spark", _with_sparks_reader()), ("own", default_registry())):
                    progress(f"{app} with files read by {reader}, round {turn} of {rounds}, 0 warms up")
                    runs = [_run(spark, folder / "run", registry, flow, folder / str(count)) for count in events]
                    cost = Cost((runs[0][0], runs[1][0]), (runs[0][1], runs[1][1]), events)
                    spent.setdefault(f"rows_{app}", []).append(runs[1][2])
                    if turn:
                        costs.setdefault(f"{app}_{reader}", []).append(cost)
    for app in APPLICATIONS:
        assert len(set(spent[f"rows_{app}"])) == 1, f"the readers put out different numbers of rows: {spent}"
    each = {name: [cost.cpu_s_per_million for cost in some] for name, some in costs.items()}
    figures = {f"files_{name}_cpu_s_per_million": statistics.median(some) for name, some in each.items()}
    for app in APPLICATIONS:
        ratios = [own / max(spark, 1e-9) for own, spark in zip(each[f"{app}_own"], each[f"{app}_spark"], strict=True)]
        figures[f"files_{app}_cpu"] = statistics.median(ratios)
    return Measured(figures, {"files_cpu": each} | spent)


def _run(
    spark: Any, place: Path, registry: Registry, flow: Callable[[Path, Path], dict[str, Any]], source: Path
) -> tuple[float, float, int]:
    """CPU, time and rows of one run over all files of a folder."""
    from headgate.runtime.engine.engine import Engine

    before, began = cpu_seconds(), time.monotonic()
    dataflow: Dataflow = parse(json.dumps(flow(source, place)), "json", registry=registry).dataflow
    with Engine(place / "state", spark=spark, trigger_s=0.0, registry=registry) as engine:
        engine.submit(dataflow)
        engine.wait_until_idle()
    cost = cpu_seconds() - before, time.monotonic() - began
    rows = sum(text.read_bytes().count(b"\n") for text in (place / "rows").iterdir())
    shutil.rmtree(place)
    return *cost, rows


def _etl(source: Path, out: Path) -> dict[str, Any]:
    return application("etl_wide", source, out)


def _json(source: Path, out: Path) -> dict[str, Any]:
    config = {"path": str(source), "format": "json", "columns": ENTRIES, "files_per_batch": 2}
    text = "concat(bt, ' ', size(e), ' ', e[0].sv)"
    tasks: list[dict[str, Any]] = [
        {"id": "read", "type": "read_files", "config": config, "on_error": "skip"},
        # Spark's reader makes rows of nulls of broken lines.
        {"id": "some", "type": "filter", "config": {"where": "bt is not null"}, "inputs": ["read"]},
        {"id": "made", "type": "derive", "config": {"columns": {"line": text}}, "inputs": ["some"]},
        {"id": "kept", "type": "select", "config": {"columns": ["line"]}, "inputs": ["made"]},
        {
            "id": "out",
            "type": "write_files",
            "config": {"path": str(out / "rows"), "format": "text"},
            "inputs": ["kept"],
        },
    ]
    return {"name": "json", "tasks": tasks}


APPLICATIONS = {"etl": _etl, "json": _json}


def _with_sparks_reader() -> Registry:
    """The task types, ``read_files`` with Spark's reader as it was before it had a source of its own."""
    from dataclasses import replace

    work = SourceWork(_sparks_files, _file_time, by_row=True)
    return Registry(_replaced(default_registry().values(), lambda kind: replace(kind, work=work)))


def _replaced(kinds: Iterable[Any], new: Callable[[Any], Any]) -> Iterable[Any]:
    return [new(kind) if kind.name == "read_files" else kind for kind in kinds]


def _sparks_files(options: ReadFiles, context: SourceContext) -> Any:
    from headgate.tasks.frames import declared_schema

    reader = context.spark.readStream.format(options.format).schema(declared_schema(options))
    return reader.option("maxFilesPerTrigger", options.files_per_batch).load(options.path)


def _file_time() -> str:
    # A file that was there long before waited for nobody until now.
    return f"greatest(unix_micros(_metadata.file_modification_time), {time.time_ns() // 1_000}L)"
