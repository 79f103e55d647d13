"""Observations as parquet tables, for the simulator's replay and for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.model.cluster.observation import Figures, Observation

__all__ = ["export_observations"]

_TYPES = {
    "text": pa.string(),
    "int": pa.int64(),
    "real": pa.float64(),
    "texts": pa.list_(pa.string()),
    "bool": pa.bool_(),
}

_FIGURES = (
    " omega:real kept_up:real gamma:real cost_per_h:real theta:real sojourn_mean_s:real sojourn_p50_s:real "
    "sojourn_p95_s:real sojourn_p99_s:real within:bool unknown:texts"
)

_COLUMNS = {
    "tasks": "task:text name:text type:text alternate:text dataflows:texts partitions:int rows_in:int rows_out:int "
    "errors:int profile_rows:int profile_cpu_s_per_row:real profile_sojourn_s_per_row:real "
    "profile_transfer_s_per_row:real profile_memory_bytes:int profile_spread:real rows_waiting:real "
    "inputs:texts value:real routed:bool",
    "sinks": "task:text name:text dataflows:texts rows:int sojourn_mean_s:real sojourn_p50_s:real sojourn_p95_s:real "
    "sojourn_p99_s:real inputs:texts routed:bool",
    "fragments": "id:text kind:text tasks:texts batches:int rows_in:int rows_behind:int batch_s:real planning_s:real "
    "scheduling_s:real execution_s:real commit_s:real bytes_behind:int rows_arrived:real work_s:real row_s:real "
    "parts:int driver_s:real",
    "machines": "name:text vm_class:text state:text cores:int speed:real busy:real asked:real ready:real gone:real "
    "price_per_h:real key:text pool:text workers:int",
    "sources": "task:text name:text dataflows:texts rows_taken:int rows_arrived:real rows_waiting:real "
    "bytes_waiting:int unknown:text",
    "dataflows": f"name:text owner:text paused:bool tasks:int{_FIGURES.replace(' ', ' figures_')}",
    "together": _FIGURES.strip(),
    "costs": "task:text alternate:text cpu_s:real wait_s:real origin:text spread:real selectivity:real",
}
"""The columns of each table: fields of its observations, those of a nested value with its name before theirs."""


def _schema(columns: str) -> pa.Schema:
    pairs = (column.split(":") for column in f"ended:real seconds:real {columns}".split())
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


SCHEMAS = {name: _schema(columns) for name, columns in _COLUMNS.items()}


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}_")
        else:
            yield before + name, float(value) if isinstance(value, Decimal) else value


def _each(table: Any) -> Iterable[Any]:
    """The rows of a table; the figures of all dataflows together are one, where they are known."""
    return (table,) if isinstance(table, Figures) else table or ()


def export_observations(observations: Iterable[Observation], folder: Path) -> dict[str, int]:
    """Write a parquet file for each of the tables of an observation; returns their rows."""
    folder.mkdir(parents=True, exist_ok=True)
    writers = {name: pq.ParquetWriter(folder / f"{name}.parquet", schema) for name, schema in SCHEMAS.items()}
    written = dict.fromkeys(SCHEMAS, 0)
    try:
        for seen in observations:
            for name, schema in SCHEMAS.items():
                rows = [
                    {"ended": seen.ended, "seconds": seen.seconds, **dict(_flat(asdict(each)))}
                    for each in _each(getattr(seen, name))
                ]
                if rows:
                    writers[name].write_table(pa.Table.from_pylist(rows, schema))
                    written[name] += len(rows)
    finally:
        for writer in writers.values():
            writer.close()
    return written
