"""What the keyed task types do to one row and to what they remember of its key. Plain Python: Spark keeps the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.model.task_type import TaskConfig
from headgate.tasks.stateful import Count, Dedup, Difference, Kalman, KeyedConfig, MovingAverage

__all__ = ["KEYED", "Step", "added_column", "step_of"]

Step = Callable[[Any, Sequence[Any]], tuple[Any, float | None]]
"""From the state of a key (``None`` at first) and a row to the new state and the result."""


def _count(options: Count, index: Callable[[str], int]) -> Step:
    del options, index

    def step(state: Any, row: Sequence[Any]) -> tuple[Any, float | None]:
        del row
        count = (state or 0) + 1
        return count, float(count)

    return step


def _moving_average(options: MovingAverage, index: Callable[[str], int]) -> Step:
    column, size = index(options.column), options.size

    def step(state: Any, row: Sequence[Any]) -> tuple[Any, float | None]:
        value = row[column]
        if value is None:
            return state, None
        last = (*(state or ()), float(value))[-size:]
        return last, sum(last) / len(last)

    return step


def _difference(options: Difference, index: Callable[[str], int]) -> Step:
    column, lag = index(options.column), options.lag

    def step(state: Any, row: Sequence[Any]) -> tuple[Any, float | None]:
        value = row[column]
        if value is None:
            return state, None
        last = state or ()
        before = last[-lag] if len(last) >= lag else None
        return (*last, float(value))[-lag:], None if before is None else float(value) - before

    return step


def _kalman(options: Kalman, index: Callable[[str], int]) -> Step:
    """One-dimensional Kalman filter as in RIoTBench, which starts at an estimate of 0."""
    column, process, sensor, first = (
        index(options.column),
        options.process_noise,
        options.sensor_noise,
        options.first_error,
    )

    def step(state: Any, row: Sequence[Any]) -> tuple[Any, float | None]:
        value = row[column]
        if value is None:
            return state, None
        estimate, error = state or (0.0, first)
        error += process
        gain = error / (error + sensor)
        estimate += gain * (float(value) - estimate)
        return (estimate, (1.0 - gain) * error), estimate

    return step


def _dedup(options: Dedup, index: Callable[[str], int]) -> Step:
    del options, index

    def step(state: Any, row: Sequence[Any]) -> tuple[Any, float | None]:
        del row
        return True, None if state else 1.0

    return step


KEYED: dict[type[TaskConfig], Callable[..., Step]] = {
    Count: _count,
    MovingAverage: _moving_average,
    Difference: _difference,
    Kalman: _kalman,
    Dedup: _dedup,
}


def step_of(options: KeyedConfig, names: Sequence[str]) -> Step:
    """The step of a keyed task over rows with columns of these names.

    >>> step = step_of(MovingAverage(key=("k",), column="v", size=2), ["k", "v"])
    >>> state, first = step(None, ["a", 1.0])
    >>> state, second = step(state, ["a", 3.0])
    >>> first, second
    (1.0, 2.0)
    """
    places = {name.casefold(): position for position, name in enumerate(names)}
    return KEYED[type(options)](options, lambda name: places[name.casefold()])


def added_column(options: KeyedConfig) -> tuple[str, str] | None:
    """Name and type of the column that a keyed task adds; ``None`` for one that only lets rows pass."""
    if isinstance(options, Dedup):
        return None
    into: str = options.into  # type: ignore[attr-defined]
    return into, "bigint" if isinstance(options, Count) else "double"
