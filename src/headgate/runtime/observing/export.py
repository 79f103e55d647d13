"""Observations as parquet tables, for the simulator's replay and for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.model.cluster.observation import Observation

__all__ = ["export_observations"]

_TYPES = {"text": pa.string(), "int": pa.int64(), "real": pa.float64(), "texts": pa.list_(pa.string())}

_COLUMNS = {
    "tasks": "task:text name:text type:text alternate:text dataflows:texts partitions:int rows_in:int rows_out:int "
    "errors:int profile_rows:int profile_cpu_s_per_row:real profile_sojourn_s_per_row:real "
    "profile_transfer_s_per_row:real profile_memory_bytes:int profile_spread:real",
    "sinks": "task:text name:text dataflows:texts rows:int sojourn_mean_s:real sojourn_p50_s:real sojourn_p95_s:real "
    "sojourn_p99_s:real",
    "fragments": "id:text kind:text tasks:texts batches:int rows_in:int rows_behind:int batch_s:real planning_s:real "
    "scheduling_s:real execution_s:real commit_s:real bytes_behind:int",
    "workers": "id:text machine:text cores:int busy:real speed:real vm_class:text",
}
"""The columns of each table: fields of its observations, those of a nested value with its name before theirs."""


def _schema(columns: str) -> pa.Schema:
    pairs = (column.split(":") for column in f"ended:real seconds:real {columns}".split())
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


SCHEMAS = {name: _schema(columns) for name, columns in _COLUMNS.items()}


def _row(observed: Any) -> dict[str, Any]:
    row = asdict(observed)
    for name, nested in [(name, value) for name, value in row.items() if isinstance(value, dict)]:
        row |= {f"{name}_{key}": value for key, value in nested.items()}
    return row


def export_observations(observations: Iterable[Observation], folder: Path) -> dict[str, int]:
    """Write ``tasks.parquet``, ``sinks.parquet``, ``fragments.parquet`` and ``workers.parquet``; returns their rows."""
    folder.mkdir(parents=True, exist_ok=True)
    writers = {name: pq.ParquetWriter(folder / f"{name}.parquet", schema) for name, schema in SCHEMAS.items()}
    written = dict.fromkeys(SCHEMAS, 0)
    try:
        for seen in observations:
            for name, schema in SCHEMAS.items():
                rows = [{"ended": seen.ended, "seconds": seen.seconds, **_row(each)} for each in getattr(seen, name)]
                if rows:
                    writers[name].write_table(pa.Table.from_pylist(rows, schema))
                    written[name] += len(rows)
    finally:
        for writer in writers.values():
            writer.close()
    return written
