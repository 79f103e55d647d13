"""The distributions of PLAN-AHEAD's Fig. 1 and 2, computed by Spark over traces of any size."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from headgate.errors import InputError, nearest, os_reason, unknown
from headgate.model.trace_statistics import LEVELS, MetricStatistics, Quartiles, TraceUnit

__all__ = ["analyse"]

ACCURACY = 10_000
BOXES = 40


def analyse(
    spark: SparkSession,
    files: Sequence[Path],
    unit: TraceUnit = TraceUnit.RATE,
    metrics: Sequence[str] = (),
    slot_s: float = 300.0,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[MetricStatistics, ...]:
    """One value for each metric: those asked for in their order, otherwise by name."""
    progress(f"reading {len(files):,} files")
    measured = _measured(spark, files, metrics).persist()
    try:
        _check(measured, unit)
        progress("how performance is spread")
        shares = _normalised(measured, unit)
        slots = _slots(shares, slot_s).persist()
        try:
            performance = _performance(shares)
            progress("how it changes")
            changes = _changes(slots)
            progress("how machines differ")
            boxes = _boxes(slots, {metric: row[-1] for metric, row in performance.items()})
        finally:
            slots.unpersist()
    finally:
        measured.unpersist()
    statistics = []
    for metric, (machines, rows, quantiles, below, _) in performance.items():
        spread, above, gaps = changes.get(metric, ((), 0.0, 0))
        statistics.append(
            MetricStatistics(
                metric, machines, rows, quantiles, below, spread, above, gaps, tuple(boxes.get(metric, ()))
            )
        )
    order = {name: place for place, name in enumerate(metrics)}
    return tuple(sorted(statistics, key=lambda each: (order.get(each.metric, len(order)), each.metric)))


def _measured(spark: SparkSession, files: Sequence[Path], metrics: Sequence[str]) -> DataFrame:
    """All tables as rows of vm, t_s, metric and value."""
    parts = []
    tables = [file for file in files if file.name.endswith(".parquet")]
    texts = [file for file in files if not file.name.endswith(".parquet")]
    for kind, group in (("parquet", tables), ("csv", texts)):
        # Files of one header are one table; those of another are read separately.
        headers: dict[tuple[str, ...], list[str]] = {}
        for file in group:
            columns = _columns(spark, kind, file)
            headers.setdefault(columns, []).append(str(file))
        for paths in headers.values():
            reader = spark.read.option("header", True) if kind == "csv" else spark.read
            parts.append(_long(reader.format(kind).load(paths), metrics, paths[0]))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole


def _columns(spark: SparkSession, kind: str, file: Path) -> tuple[str, ...]:
    """The header of a file; read here, since a Spark job for each of many files would take longer than the rest."""
    if kind == "parquet":
        return tuple(spark.read.parquet(str(file)).columns)
    try:
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            return tuple(lines.readline().strip().split(","))
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise InputError("BAD_TRACE", f"cannot read {file}: {os_reason(error)}") from None


def _long(table: DataFrame, metrics: Sequence[str], where: str) -> DataFrame:
    if "t_s" not in table.columns:
        near = nearest("t_s", table.columns)
        hint = f"; is it '{near}'?" if near else ""
        raise InputError("BAD_TRACE", f"{where} has no column t_s, the seconds of each measurement{hint}")
    if "vm" not in table.columns:
        names = [name for name in table.columns if name != "t_s"]
        doubles = [F.col(f"`{name}`").cast("double").alias(name) for name in names]
        wide = table.select(F.col("t_s").cast("double").alias("t_s"), *doubles)
        return wide.unpivot("t_s", tuple(names), "vm", "value").select(
            "vm", "t_s", F.lit("value").alias("metric"), "value"
        )
    others = [name for name in table.columns if name not in ("vm", "t_s")]
    for name in metrics:
        if name not in others:
            raise unknown("BAD_TRACE", f"{where} has no metric '{name[:60]}'", name, others)
    chosen = list(metrics) or _numeric(table, others)
    if not chosen:
        raise InputError("BAD_TRACE", f"{where} has no column of numbers beside vm and t_s")
    doubles = [F.expr(f"try_cast(`{name}` as double)").alias(name) for name in chosen]
    narrow = table.select(F.col("vm").cast("string").alias("vm"), F.col("t_s").cast("double").alias("t_s"), *doubles)
    return narrow.unpivot(["vm", "t_s"], tuple(chosen), "metric", "value").select("vm", "t_s", "metric", "value")


def _numeric(table: DataFrame, names: Sequence[str]) -> list[str]:
    sample = table.limit(200).select([F.max(F.expr(f"try_cast(`{name}` as double)")).alias(name) for name in names])
    row = sample.first()
    return [name for name in names if row is not None and row[name] is not None]


def _check(measured: DataFrame, unit: TraceUnit) -> None:
    bad = measured.where("value is null or isnan(value) or value < 0 or t_s is null").limit(1).collect()
    if bad:
        row = bad[0]
        message = f"machine '{row['vm']}' at {row['t_s']} s has {row['metric']} {row['value']}"
        raise InputError(
            "BAD_TRACE", f"{message}; expected numbers of at least 0, and no row where nothing was measured"
        )
    limit = {TraceUnit.SHARE: 1.0, TraceUnit.PERCENT: 100.0, TraceUnit.USED_PERCENT: 100.0}.get(unit)
    if limit is not None:
        beyond = measured.where(F.col("value") > limit * (1 + 1e-9)).limit(1).collect()
        if beyond:
            row = beyond[0]
            message = f"{row['metric']} of machine '{row['vm']}' is {row['value']:g} at {row['t_s']:g} s"
            raise InputError("MIXED_UNITS", f"{message}, which is not of unit '{unit}' (at most {limit:g}); see --unit")
    if unit is TraceUnit.TIME:
        nothing = measured.where("value = 0").limit(1).collect()
        if nothing:
            message = f"{nothing[0]['metric']} of machine '{nothing[0]['vm']}' is 0 at {nothing[0]['t_s']:g} s"
            raise InputError("MIXED_UNITS", f"{message}, which is not of unit '{unit}'; see --unit and --metric")


def _normalised(measured: DataFrame, unit: TraceUnit) -> DataFrame:
    value = F.col("value")
    if unit in (TraceUnit.RATE, TraceUnit.TIME):
        best = measured.groupBy("metric").agg((F.max if unit is TraceUnit.RATE else F.min)("value").alias("best"))
        joined = measured.join(F.broadcast(best), "metric")
        share = value / F.col("best") if unit is TraceUnit.RATE else F.col("best") / value
        return joined.select("vm", "t_s", "metric", share.alias("share"))
    share = {TraceUnit.SHARE: value, TraceUnit.PERCENT: value / 100, TraceUnit.USED_PERCENT: 1 - value / 100}[unit]
    return measured.select("vm", "t_s", "metric", share.alias("share"))


def _slots(shares: DataFrame, slot_s: float) -> DataFrame:
    slot = F.floor(F.col("t_s") / slot_s).alias("slot")
    return shares.groupBy("metric", "vm", slot).agg(F.avg("share").alias("share"))


def _performance(shares: DataFrame) -> dict[str, tuple[int, int, tuple[float, ...], float, list[str]]]:
    levels = F.array(*[F.lit(level) for level in LEVELS])
    rows = (
        shares.groupBy("metric")
        .agg(
            F.countDistinct("vm").alias("machines"),
            F.count("*").alias("rows"),
            F.percentile_approx("share", levels, ACCURACY).alias("quantiles"),
            F.avg((F.col("share") < 0.8).cast("double")).alias("below"),
            F.slice(F.sort_array(F.collect_set("vm")), 1, BOXES).alias("first"),
        )
        .collect()
    )
    return {
        row["metric"]: (row["machines"], row["rows"], tuple(row["quantiles"]), row["below"], row["first"])
        for row in rows
    }


def _changes(slots: DataFrame) -> dict[str, tuple[tuple[float, ...], float, int]]:
    order = Window.partitionBy("metric", "vm").orderBy("slot")
    stepped = slots.select(
        "metric",
        (F.col("slot") - F.lag("slot").over(order)).alias("distance"),
        F.abs(F.col("share") / F.nullif(F.lag("share").over(order), F.lit(0.0)) - 1).alias("change"),
    ).where("distance is not null")
    levels = F.array(*[F.lit(level) for level in LEVELS])
    near = F.when(F.col("distance") == 1, F.col("change"))
    rows = (
        stepped.groupBy("metric")
        .agg(
            F.percentile_approx(near, levels, ACCURACY).alias("quantiles"),
            F.avg((near > 0.2).cast("double")).alias("above"),
            F.sum((F.col("distance") > 1).cast("long")).alias("gaps"),
        )
        .collect()
    )
    return {row["metric"]: (tuple(row["quantiles"] or ()), row["above"] or 0.0, row["gaps"]) for row in rows}


def _boxes(slots: DataFrame, machines: Mapping[str, Sequence[str]]) -> dict[str, list[Quartiles]]:
    """Those of a few machines of each metric: so few that their slots fit in this process."""
    chosen = [(metric, vm) for metric, names in machines.items() for vm in names]
    wanted = slots.sparkSession.createDataFrame(chosen, "metric string, vm string")
    table = slots.join(F.broadcast(wanted), ["metric", "vm"]).select("metric", "vm", "share").toArrow()
    metrics, names, shares = (table.column(name).to_numpy() for name in ("metric", "vm", "share"))
    boxes: dict[str, list[Quartiles]] = {}
    for metric, vm in chosen:
        boxes.setdefault(metric, []).append(_box(vm, shares[(metrics == metric) & (names == vm)]))
    return boxes


def _box(vm: str, shares: npt.NDArray[np.float64]) -> Quartiles:
    q1, median, q3 = (float(each) for each in np.quantile(shares, (0.25, 0.5, 0.75)))
    reach = 1.5 * (q3 - q1)
    inside = shares[(shares >= q1 - reach) & (shares <= q3 + reach)]
    return Quartiles(vm, float(inside.min()), q1, median, q3, float(inside.max()), len(shares) - len(inside))
