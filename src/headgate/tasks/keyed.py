"""Task types that remember something of each key: counts, averages, differences, filters, the highest values."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from headgate.model.task_type import ColumnName
from headgate.model.work import Index, Result
from headgate.tasks.keyed_base import KeyedColumn, KeyedConfig, Row, Step, Stepped, as_json, keyed

__all__ = ["TYPES", "Count", "Dedup", "Difference", "Distinct", "KalmanFilter", "MovingAverage", "Running", "TopK"]


class Count(KeyedConfig):
    """Count the rows of each key so far."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["word"]}
    makes: ClassVar[Mapping[str, str]] = {"into": "bigint"}

    into: ColumnName = Field("count", description="The name of the new column.")


def _count(options: Count, index: Index) -> Step:
    del options, index

    def step(state: Any, row: Row) -> Stepped:
        del row
        count = (state or 0) + 1
        return count, float(count)

    return step


class MovingAverage(KeyedColumn):
    """Average the last values of each key."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "column": "temperature", "size": 5}
    makes: ClassVar[Mapping[str, str]] = {"into": "double"}

    column: ColumnName = Field(description="The column to average.")
    size: PositiveInt = Field(10, le=100_000, description="How many values to average over.")
    into: ColumnName = Field("average", description="The name of the new column.")


def _moving_average(options: MovingAverage, index: Index) -> Step:
    column, size = index(options.column), options.size

    def step(state: Any, row: Row) -> Stepped:
        value = row[column]
        if value is None:
            return state, None
        last = (*(state or ()), float(value))[-size:]
        return last, sum(last) / len(last)

    return step


class Running(KeyedColumn):
    """Count, sum or average the values of each key so far, or keep the least or greatest.

    It remembers four numbers for each key. A row whose value is null passes with what there was before it.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "key": ["category"],
        "column": "price",
        "columns": {"average": "mean", "sold": "count"},
    }

    column: ColumnName = Field(description="The column of the values.")
    columns: dict[ColumnName, Literal["count", "sum", "mean", "min", "max"]] = Field(
        min_length=1, description="What each new column holds; but for a count, null until there is a value."
    )

    def added(self) -> Mapping[str, str]:
        return {name: "bigint" if of == "count" else "double" for name, of in self.columns.items()}


def _running(options: Running, index: Index) -> Step:
    """The step of a running task; it remembers how many values there were, their sum, the least and the greatest."""
    column, wanted = index(options.column), tuple(options.columns.items())

    def result(state: Any) -> Result:
        if state is None:
            known: dict[str, float | None] = {"count": 0}
        else:
            count, total, least, most = state
            known = {"count": count, "sum": total, "mean": total / count, "min": least, "max": most}
        if len(wanted) > 1:
            return as_json({name: known.get(of) for name, of in wanted})
        return known.get(wanted[0][1])

    def step(state: Any, row: Row) -> Stepped:
        if row[column] is not None:
            value = float(row[column])
            count, total, least, most = state or (0, 0.0, value, value)
            state = (count + 1, total + value, min(least, value), max(most, value))
        return state, result(state)

    return step


class Difference(KeyedColumn):
    """Subtract from each value the one that came some rows before it for the same key."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "column": "temperature"}
    makes: ClassVar[Mapping[str, str]] = {"into": "double"}

    column: ColumnName = Field(description="The column to subtract in.")
    lag: PositiveInt = Field(1, le=100_000, description="How many rows before.")
    into: ColumnName = Field("difference", description="The name of the new column; null until enough rows came.")


def _difference(options: Difference, index: Index) -> Step:
    column, lag = index(options.column), options.lag

    def step(state: Any, row: Row) -> Stepped:
        value = row[column]
        if value is None:
            return state, None
        last = state or ()
        before = last[-lag] if len(last) >= lag else None
        return (*last, float(value))[-lag:], None if before is None else float(value) - before

    return step


class KalmanFilter(KeyedColumn):
    """Smooth the values of each key by a one-dimensional Kalman filter.

    The defaults are RIoTBench's.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "column": "temperature"}
    makes: ClassVar[Mapping[str, str]] = {"into": "double"}

    column: ColumnName = Field(description="The column to smooth.")
    process_noise: PositiveFloat = Field(0.125, description="Variance of the true value's change from row to row.")
    sensor_noise: PositiveFloat = Field(0.32, description="Variance of the measurement.")
    first_error: NonNegativeFloat = Field(30.0, description="Variance of the first estimate.")
    into: ColumnName = Field("smoothed", description="The name of the new column.")


def _kalman(options: KalmanFilter, index: Index) -> Step:
    """One-dimensional Kalman filter as in RIoTBench, which starts at an estimate of 0."""
    column, process, sensor, first = (
        index(options.column),
        options.process_noise,
        options.sensor_noise,
        options.first_error,
    )

    def step(state: Any, row: Row) -> Stepped:
        value = row[column]
        if value is None:
            return state, None
        estimate, error = state or (0.0, first)
        error += process
        gain = error / (error + sensor)
        estimate += gain * (float(value) - estimate)
        return (estimate, (1.0 - gain) * error), estimate

    return step


class Dedup(KeyedConfig):
    """Pass the first row of each key and drop its repetitions."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["message_id"]}

    @property
    def sparse(self) -> bool:
        return True


def _dedup(options: Dedup, index: Index) -> Step:
    del options, index

    def step(state: Any, row: Row) -> Stepped:
        del row
        return True, None if state else 1.0

    return step


class Distinct(KeyedColumn):
    """Count the distinct values of each key so far, exactly. It remembers every one of them."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["field"], "column": "sensor"}
    makes: ClassVar[Mapping[str, str]] = {"into": "double"}

    column: ColumnName = Field(description="The column whose values are counted.")
    into: ColumnName = Field("distinct", description="The name of the new column.")


def distinct(options: Distinct, index: Index) -> Step:
    """The step of a distinct task; it remembers all values.

    >>> step = distinct(Distinct(key=("k",), column="v"), ["v"].index)
    >>> state, one = step(None, ["a"])
    >>> one, step(state, ["a"])[1], step(state, ["b"])[1]
    (1.0, 1.0, 2.0)
    """
    column = index(options.column)

    def step(state: Any, row: Row) -> Stepped:
        seen: frozenset[Any] | set[Any] = set() if state is None else state
        if row[column] is not None and row[column] not in seen:
            seen.add(row[column])  # type: ignore[union-attr]  # the host's copy: nobody else has it
        return seen, float(len(seen))

    return step


class TopK(KeyedColumn):
    """Pass the rows that are among the highest of their key so far, with their rank when they came."""

    example: ClassVar[Mapping[str, Any]] = {"key": ["district"], "column": "dust", "size": 3}
    makes: ClassVar[Mapping[str, str]] = {"into": "bigint"}

    column: ColumnName = Field(description="The column to compare by; of equal values the first counts.")
    size: PositiveInt = Field(10, le=100_000, description="How many are the highest.")
    into: ColumnName = Field("rank", description="The name of the new column; the highest has rank 1.")

    @property
    def sparse(self) -> bool:
        return True


def top_k(options: TopK, index: Index) -> Step:
    """The step of a top_k task; it remembers the highest values, the least of them first.

    >>> step = top_k(TopK(key=("k",), column="v", size=2), ["v"].index)
    >>> state, first = step(None, [5])
    >>> state, second = step(state, [7])
    >>> first, second, step(state, [4])[1], step(state, [6])[1]
    (1.0, 1.0, None, 2.0)
    """
    column, size = index(options.column), options.size

    def step(state: Any, row: Row) -> Stepped:
        highest, value = list(state or ()), row[column]
        if value is None or (len(highest) == size and not value > highest[0]):
            return state, None
        at = bisect.bisect_left(highest, value)
        rank = len(highest) - at + 1
        highest.insert(at, value)
        return tuple(highest[-size:]), float(rank)

    return step


TYPES = (
    keyed("count", Count, _count),
    keyed("moving_average", MovingAverage, _moving_average),
    keyed("running", Running, _running),
    keyed("difference", Difference, _difference),
    keyed("kalman", KalmanFilter, _kalman),
    keyed("dedup", Dedup, _dedup),
    keyed("distinct", Distinct, distinct),
    keyed("top_k", TopK, top_k),
)
