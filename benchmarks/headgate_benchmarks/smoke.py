"""The short forms of all benchmarks, one after the other on one Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from headgate.model.table import Table
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.on_spark import one_spark
from headgate_benchmarks.study import Progress, columns

__all__ = ["smoke_all"]


def smoke_all(benchmarks: Iterable[Benchmark[Any]], seed: int, progress: Progress) -> Table:
    """Run all short forms; a row for each with its seconds and, if it failed, the reason."""
    listed = list(benchmarks)
    with one_spark(quick=True):
        rows = [_smoke(each, seed, progress) for each in listed if not each.own_cluster]
    rows += [_smoke(each, seed, progress) for each in listed if each.own_cluster]
    shown = columns(
        ("bench", "benchmark"), ("seconds", "time", "s", ".1f"), ("figures", "figures"), ("error", "failure")
    )
    return Table("Short forms", shown, tuple(rows))


def _smoke(benchmark: Benchmark[Any], seed: int, progress: Progress) -> dict[str, object]:
    began = time.monotonic()
    row: dict[str, object] = {"bench": benchmark.name, "figures": None, "error": None}
    try:
        row["figures"] = len(benchmark.run(seed, progress, smoke=True).figures)
    except Exception as error:  # the others still run, and all failures are reported together
        row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    row["seconds"] = time.monotonic() - began
    progress(f"{benchmark.name}: {row['seconds']:.1f} s {row['error'] or ''}")
    return row
