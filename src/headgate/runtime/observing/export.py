"""Observations as parquet tables, for the simulator's replay and for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.model.cluster.observation import Observation

__all__ = ["export_observations"]

_TIME = [("ended", pa.float64()), ("seconds", pa.float64())]
_TEXTS = pa.list_(pa.string())

TABLES: dict[str, tuple[Callable[[Observation], Iterable[dict[str, Any]]], pa.Schema]] = {
    "tasks": (
        lambda seen: (
            {k: v for k, v in asdict(task).items() if k != "profile"}
            | {f"profile_{k}": v for k, v in (asdict(task.profile) if task.profile else {}).items()}
            for task in seen.tasks
        ),
        pa.schema(
            [
                *_TIME,
                ("task", pa.string()),
                ("name", pa.string()),
                ("type", pa.string()),
                ("alternate", pa.string()),
                ("dataflows", _TEXTS),
                ("partitions", pa.int64()),
                ("rows_in", pa.int64()),
                ("rows_out", pa.int64()),
                ("errors", pa.int64()),
                ("profile_rows", pa.int64()),
                ("profile_cpu_s_per_row", pa.float64()),
                ("profile_sojourn_s_per_row", pa.float64()),
                ("profile_transfer_s_per_row", pa.float64()),
                ("profile_memory_bytes", pa.int64()),
                ("profile_spread", pa.float64()),
            ]
        ),
    ),
    "sinks": (
        lambda seen: (
            {k: v for k, v in asdict(sink).items() if k != "sojourn"}
            | {f"sojourn_{k}": v for k, v in (asdict(sink.sojourn) if sink.sojourn else {}).items()}
            for sink in seen.sinks
        ),
        pa.schema(
            [
                *_TIME,
                ("task", pa.string()),
                ("name", pa.string()),
                ("dataflows", _TEXTS),
                ("rows", pa.int64()),
                ("sojourn_mean_s", pa.float64()),
                ("sojourn_p50_s", pa.float64()),
                ("sojourn_p95_s", pa.float64()),
                ("sojourn_p99_s", pa.float64()),
            ]
        ),
    ),
    "fragments": (
        lambda seen: (asdict(fragment) for fragment in seen.fragments),
        pa.schema(
            [
                *_TIME,
                ("id", pa.string()),
                ("kind", pa.string()),
                ("tasks", _TEXTS),
                ("batches", pa.int64()),
                ("rows_in", pa.int64()),
                ("rows_behind", pa.int64()),
                ("batch_s", pa.float64()),
                ("planning_s", pa.float64()),
                ("scheduling_s", pa.float64()),
                ("execution_s", pa.float64()),
                ("commit_s", pa.float64()),
            ]
        ),
    ),
    "workers": (
        lambda seen: (asdict(worker) for worker in seen.workers),
        pa.schema(
            [
                *_TIME,
                ("id", pa.string()),
                ("machine", pa.string()),
                ("cores", pa.int64()),
                ("busy", pa.float64()),
                ("speed", pa.float64()),
                ("vm_class", pa.string()),
            ]
        ),
    ),
}
"""What each table has of an observation, row by row, and its columns."""


def export_observations(observations: Iterable[Observation], folder: Path) -> dict[str, int]:
    """Write ``tasks.parquet``, ``sinks.parquet``, ``fragments.parquet`` and ``workers.parquet``; returns their rows."""
    folder.mkdir(parents=True, exist_ok=True)
    writers = {name: pq.ParquetWriter(folder / f"{name}.parquet", schema) for name, (_, schema) in TABLES.items()}
    written = dict.fromkeys(TABLES, 0)
    try:
        for seen in observations:
            for name, (rows_of, schema) in TABLES.items():
                rows = [{"ended": seen.ended, "seconds": seen.seconds, **row} for row in rows_of(seen)]
                if rows:
                    writers[name].write_table(pa.Table.from_pylist(rows, schema))
                    written[name] += len(rows)
    finally:
        for writer in writers.values():
            writer.close()
    return written
