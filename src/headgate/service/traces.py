"""Analyse recorded performance of machines, as a Spark job."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from headgate.errors import unknown
from headgate.model.table import Table, TableColumn
from headgate.model.trace_statistics import MetricStatistics, TraceUnit
from headgate.simulation.traces import trace_files

__all__ = ["analyse_traces", "trace_table"]

_COLUMNS = (
    TableColumn("metric", "metric"),
    TableColumn("machines", "machines", form=","),
    TableColumn("measurements", "rows", form=","),
    TableColumn("median", "median", form=".3f"),
    TableColumn("below_08", "below 0.8", form=".1%"),
    TableColumn("change_above_02", "changes over 20 %", form=".1%"),
)


def analyse_traces(
    path: Path, unit: str, metrics: Sequence[str], slot_s: float, master: str, progress: Callable[[str], None]
) -> Sequence[MetricStatistics]:
    """How each metric is spread, how it changes from slot to slot, and how machines differ."""
    from headgate.runtime.batch.trace_analysis import analyse
    from headgate.runtime.spark_internals.session import open_session

    if unit not in list(TraceUnit):
        raise unknown("UNKNOWN_UNIT", f"unknown unit {unit[:60]!r}", unit, TraceUnit)
    files = trace_files(path)
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        spark = open_session(master, log=Path(folder) / "spark.log")
        return analyse(spark, files, TraceUnit(unit), metrics, slot_s, progress)


def trace_table(metrics: Sequence[MetricStatistics], slot: str) -> Table:
    """A row for each metric, with all its quantiles for programs."""
    rest = dict.fromkeys(key for each in metrics for key in each.as_dict())
    known = {column.key for column in _COLUMNS}
    columns = (*_COLUMNS, *(TableColumn(key) for key in rest if key not in known))
    rows = tuple(
        {
            **each.as_dict(),
            "median": each.performance[50],
            "change_above_02": each.change_above_02 if each.changes else None,
        }
        for each in metrics
    )
    short = any(not each.changes for each in metrics)
    note = f"No two slots of {slot} follow each other: measurements are farther apart. Try a longer --slot."
    return Table("Metrics", columns, rows, (note,) if short else ())
