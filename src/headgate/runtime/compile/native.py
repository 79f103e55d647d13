"""Event-time windows and stream-stream joins, as Spark's own stateful operators."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from headgate.errors import InputError
from headgate.model.task_type import TaskConfig
from headgate.runtime.compile.plan import CompiledTask
from headgate.runtime.spark_internals.internals import internals
from headgate.tasks.rowwise import quoted
from headgate.tasks.stateful import Join, Window

__all__ = ["native", "native_stream"]

_UNITS = {"ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours", "d": "days"}


def spark_span(span: str) -> str:
    """A span of time in Spark's words.

    >>> spark_span("5min"), spark_span("1.5 s")
    ('5 minutes', '1500 milliseconds')
    """
    number, unit = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", span.strip()).groups()  # type: ignore[union-attr]
    if "." in number:
        factor = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]
        return f"{round(float(number) * factor)} milliseconds"
    return f"{number} {_UNITS[unit]}"


def native_stream(task: CompiledTask, sides: Sequence[DataFrame]) -> DataFrame:
    """The stream of a window or join task; raises :class:`InputError` for what Spark does not do on streams.

    Spark itself says so only when the query is started, which is too late to leave everything as it was.
    """
    try:
        stream = native(task.options, sides)
        internals(stream.sparkSession).check_streaming(stream)
    except PySparkException as error:
        reason = " ".join(str(error).split("\n")[0].split())[:300]
        raise InputError("TASK_REFUSED", f"task '{task.name}': Spark does not accept it: {reason}") from None
    return stream


def native(options: TaskConfig, sides: Sequence[DataFrame]) -> DataFrame:
    """The stream that a window or join makes of its inputs."""
    if isinstance(options, Window):
        return _window(options, sides[0])
    assert isinstance(options, Join)
    return _join(options, sides[0], sides[1])


def _watermarked(rows: DataFrame, time: str, late_by: str) -> DataFrame:
    kinds = {field.name.casefold(): field.dataType for field in rows.schema.fields}
    kind = kinds.get(time.casefold(), TimestampType())
    if not isinstance(kind, TimestampType):
        told = f"event time '{time}' is of type {kind.simpleString()}; cast it to timestamp before"
        raise InputError("TASK_REFUSED", told)
    return rows.withWatermark(time, spark_span(late_by))


def _window(options: Window, rows: DataFrame) -> DataFrame:
    rows = _watermarked(rows, options.time, options.late_by)
    time = F.col(quoted(options.time))
    if options.kind == "session":
        window = F.session_window(time, spark_span(options.size))
    else:
        slide = spark_span(options.slide) if options.slide is not None else None
        window = F.window(time, spark_span(options.size), slide)
    grouped = rows.groupBy(window.alias("__window"), *(F.col(quoted(name)) for name in options.key))
    made = grouped.agg(*(F.expr(text).alias(name) for name, text in options.columns.items()))
    bounds = [F.col("__window.start").alias("window_start"), F.col("__window.end").alias("window_end")]
    return made.select(*bounds, *(quoted(name) for name in (*options.key, *options.columns)))


def _join(options: Join, left: DataFrame, right: DataFrame) -> DataFrame:
    left = _watermarked(left, options.time[0], options.late_by).alias("l")
    right = _watermarked(right, options.time[1], options.late_by).alias("r")
    within = f"interval {spark_span(options.within)}"
    times = f"l.{quoted(options.time[0])}", f"r.{quoted(options.time[1])}"
    tests = [f"l.{quoted(name)} = r.{quoted(name)}" for name in options.on]
    tests += [f"{times[1]} >= {times[0]} - {within}", f"{times[1]} <= {times[0]} + {within}"]
    joined = left.join(right, F.expr(" and ".join(tests)), "left" if options.kind == "left" else "inner")
    keys = {name.casefold() for name in options.on}
    taken = {name.casefold() for name in left.columns}
    columns = [F.col(f"l.{quoted(name)}") for name in left.columns]
    for name in right.columns:
        if name.casefold() not in keys:
            alias = f"right_{name}" if name.casefold() in taken else name
            columns.append(F.col(f"r.{quoted(name)}").alias(alias))
    return joined.select(*columns)
