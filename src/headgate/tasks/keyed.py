"""What the keyed task types do to one row and to what they remember of its key. Plain Python: Spark keeps the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headgate.model.task_type import TaskConfig
from headgate.tasks.functions import load_function
from headgate.tasks.rowwise import RowWise, quoted
from headgate.tasks.stateful import Count, Dedup, Difference, Kalman, KeyedConfig, MovingAverage, Running
from headgate.tasks.statistic_steps import STATISTICS, as_json, interpolate_many
from headgate.tasks.statistics import Interpolate
from headgate.tasks.training import TrainConfig
from headgate.tasks.training_steps import TRAINING, check_training
from headgate.tasks.user_defined import Fold

__all__ = [
    "BULK",
    "KEYED",
    "Bulk",
    "Folding",
    "Step",
    "check_keyed",
    "fold_of",
    "folding",
    "row_with_result",
    "step_of",
]

NUMBERS = ("double", "bigint")
"""Types of results that the host passes on as numbers; others it passes on as texts."""

NESTED = ("array", "map", "struct")
"""How types begin whose texts are JSON; texts of others are cast."""

Step = Callable[[Any, Sequence[Any]], tuple[Any, float | str | None]]
"""From the state of a key (``None`` at first) and a row to the new state and the result: nothing, a number, or a text,
which is JSON unless the result is to be a string."""

Bulk = Callable[[Any, Sequence[pa.Array]], tuple[Any, list[float | str | None]]]
"""The same for many rows of a key at once, whose values are in columns; the state that it gets must stay as it is."""

Folding = Callable[[Any, Sequence[Sequence[Any]]], tuple[Any, list[float | str | None]]]
"""The same for some rows of a key by a function of the dataflow's author, who may change the state that he gets."""


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


def _running(options: Running, index: Callable[[str], int]) -> Step:
    """The step of a running task; it remembers how many values there were, their sum, the least and the greatest."""
    column, wanted = index(options.column), tuple(options.columns.items())

    def told(state: Any) -> float | str | None:
        if state is None:
            found: dict[str, float | None] = {"count": 0}
        else:
            count, total, least, most = state
            found = {"count": count, "sum": total, "mean": total / count, "min": least, "max": most}
        if len(wanted) > 1:
            return as_json({name: found.get(of) for name, of in wanted})
        return found.get(wanted[0][1])

    def step(state: Any, row: Sequence[Any]) -> tuple[Any, float | str | None]:
        if row[column] is not None:
            value = float(row[column])
            count, total, least, most = state or (0, 0.0, value, value)
            state = (count + 1, total + value, min(least, value), max(most, value))
        return state, told(state)

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


def _fold(options: Fold, index: Callable[[str], int]) -> Step:
    fold = fold_of(options, index)

    def step(state: Any, row: Sequence[Any]) -> tuple[Any, float | str | None]:
        state, (result,) = fold(state, [row])
        return state, result

    return step


def fold_of(options: Fold, index: Callable[[str], int]) -> Folding:
    """How the function that a task names folds rows."""
    return folding(options, load_function(options.function), [index(name) for name in options.takes])


def folding(options: Fold, function: Callable[..., tuple[Any, Any]], places: Sequence[int]) -> Folding:
    """How a function folds rows, one by one or all at once; the columns that it takes are at these places.

    >>> options = Fold(function="m.f", key=("k",), takes=("v",), columns="n bigint")
    >>> folding(options, lambda state, row: ((state or 0) + row["v"], {"n": state}), [0])(1, [(5,), (7,)])
    (13, [1.0, 6.0])
    """
    keywords, names = dict(options.options), options.takes
    (only, kind), *others = options.added().items()

    def told(made: Mapping[str, Any] | None) -> float | str | None:
        if made is None:
            return None
        if others:
            return as_json(made)
        value = made[only]
        if value is None or kind in NUMBERS:
            return None if value is None else float(value)
        return as_json(value) if kind.startswith(NESTED) else str(value)

    def one_by_one(state: Any, rows: Sequence[Sequence[Any]]) -> tuple[Any, list[float | str | None]]:
        results = []
        for row in rows:
            state, made = function(state, {n: row[at] for n, at in zip(names, places, strict=True)}, **keywords)
            results.append(told(made))
        return state, results

    def all_at_once(state: Any, rows: Sequence[Sequence[Any]]) -> tuple[Any, list[float | str | None]]:
        columns = list(zip(*rows, strict=True))
        given = {name: list(columns[at]) for name, at in zip(names, places, strict=True)}
        state, made = function(state, given, **keywords)
        if len(made) != len(rows):
            raise ValueError(f"{options.function} returned {len(made)} results for {len(rows)} rows")
        return state, [told(each) for each in made]

    return one_by_one if options.mode == "row" else all_at_once


KEYED: dict[type[TaskConfig], Callable[..., Step]] = {
    Count: _count,
    MovingAverage: _moving_average,
    Running: _running,
    Difference: _difference,
    Kalman: _kalman,
    Dedup: _dedup,
    Fold: _fold,
    **STATISTICS,
    **TRAINING,
}

BULK: dict[type[TaskConfig], Callable[..., Bulk]] = {Interpolate: interpolate_many}
"""Of those that do many rows in less time than one by one: how."""


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


def check_keyed(options: KeyedConfig) -> None:
    """Raise :class:`~headgate.errors.InputError` for a task that lacks a package or a function that it needs."""
    if isinstance(options, TrainConfig):
        check_training()
    elif isinstance(options, Fold):
        load_function(options.function)


def row_with_result(options: KeyedConfig, names: Sequence[str], number: str, text: str, raised: str) -> RowWise:
    """The row of a hosted task: which rows pass, and what becomes of the result.

    ``number``, ``text`` and ``raised`` are expressions for the result as a number, as a text, and whether it raised.

    >>> row = row_with_result(Count(key=("k",)), ["k"], "n", "t", "e")
    >>> row.condition, row.columns
    ('not (e)', (('k', '`k`'), ('count', 'cast(n as bigint)')))
    """
    added = options.added()
    is_number = not added or (len(added) == 1 and next(iter(added.values())) in NUMBERS)
    results = _results(added, number, text)
    gone = {name.casefold() for name in options.dropped()}
    columns = {name.casefold(): (name, quoted(name)) for name in names if name.casefold() not in gone}
    for name, kind in added.items():
        own = columns.get(name.casefold())
        value = f"coalesce({results[name]}, {own[1]})" if options.keeps and own is not None else results[name]
        columns[name.casefold()] = (name, f"cast({value} as {kind})")
    passes = f"{number if is_number else text} is not null" if options.sparse else f"not ({raised})"
    return RowWise(tuple(name for name, _ in columns.values()), passes, tuple(columns.values()))


def _results(added: Mapping[str, str], number: str, text: str) -> dict[str, str]:
    """An expression for each column that a result becomes."""
    if len(added) > 1:
        fields = ", ".join(f"{quoted(name)} {kind}" for name, kind in added.items())
        whole = f"from_json({text}, '{_literal(fields)}')"
        return {name: f"{whole}.{quoted(name)}" for name in added}
    found = {}
    for name, kind in added.items():
        plain = number if kind in NUMBERS else text
        found[name] = f"from_json({text}, '{_literal(kind)}')" if kind.startswith(NESTED) else plain
    return found


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
