"""The keyed task type interpolate: fill what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, PositiveInt

from headgate.model.task_type import STEP, ColumnName, State, TaskType
from headgate.model.work import Index, KeyedWork, KeyFunction, KeyRows, Result
from headgate.tasks.heavy import np, pa
from headgate.tasks.keyed_base import KeyedConfig, Row, Step, Stepped, as_json, by_step

__all__ = ["TYPES", "Interpolate", "interpolate_many"]


MANY = 32
"""From so many rows of a key on, gaps are filled column by column."""


class Interpolate(KeyedConfig):
    """Fill what is missing with the mean of the last values of its key, as far as there are some.

    Values that were filled in do not count among them.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["sensor"], "columns": ["temperature", "humidity"]}
    keeps: ClassVar[bool] = True

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns to fill; they become doubles.")
    size: PositiveInt = Field(5, le=10_000, description="Over how many values to average.")

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"columns": self.columns}

    def added(self) -> Mapping[str, str]:
        return dict.fromkeys(self.columns, "double")


def _interpolate(options: Interpolate, index: Index) -> KeyFunction:
    """Column by column where there are many rows, and from row to row where there are few."""
    many, few = interpolate_many(options, index), by_step(interpolate)(options, index)

    def fold(state: Any, rows: KeyRows) -> tuple[Any, Sequence[Result]]:
        if len(rows) >= MANY:
            try:
                return many(state, rows.columns)
            except Exception:  # from row to row, it is seen which one
                return few(state, rows)
        return few(state, rows)

    return fold


def interpolate(options: Interpolate, index: Index) -> Step:
    """The step of an interpolate task; it has a result only for rows in which it fills something.

    >>> step = interpolate(Interpolate(key=("k",), columns=("v",)), ["v"].index)
    >>> state, nothing = step(None, [3.0])
    >>> nothing, step(state, [None])[1]
    (None, 3.0)
    """
    places = [index(name) for name in options.columns]
    names, size = options.columns, options.size

    def step(state: Any, row: Row) -> Stepped:
        last = state or tuple(() for _ in places)
        kept, filled = [], {}
        for at, name, values in zip(places, names, last, strict=True):
            value = row[at]
            if value is None:
                kept.append(values)
                if values:
                    filled[name] = sum(values) / len(values)
            else:
                kept.append((*values, float(value))[-size:])
        result = None if not filled else filled[names[0]] if len(names) == 1 else as_json(filled)
        return tuple(kept), result

    return step


def interpolate_many(
    options: Interpolate, index: Index
) -> Callable[[Any, Sequence[pa.Array]], tuple[Any, list[float | str | None]]]:
    """The step of an interpolate task over many rows of a key: only where something is missing there is much to do.

    >>> many = interpolate_many(Interpolate(key=("k",), columns=("v",), size=2), ["v"].index)
    >>> many(((1.0, 2.0),), [pa.array([None, 4.0, None])])
    (((2.0, 4.0),), [1.5, None, 3.0])
    """
    places = [index(name) for name in options.columns]
    names, size = options.columns, options.size

    def many(state: Any, columns: Sequence[pa.Array]) -> tuple[Any, list[float | str | None]]:
        last = state or tuple(() for _ in places)
        kept = []
        filled: dict[int, dict[str, float]] = {}
        for at, name, values in zip(places, names, last, strict=True):
            column = columns[at]
            known = column
            if column.null_count:
                known = column.drop_null()
                missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
                numbers = [*values, *known.to_pylist()]
                for nth, row in enumerate(missing.tolist()):
                    come = len(values) + row - nth
                    window = [float(one) for one in numbers[max(come - size, 0) : come]]
                    if window:
                        filled.setdefault(row, {})[name] = sum(window) / len(window)
            newest = known.slice(max(len(known) - size, 0)).to_pylist()
            kept.append(tuple(float(one) for one in (*values, *newest)[-size:]))
        results: list[float | str | None] = [None] * len(columns[places[0]])
        for row, made in filled.items():
            results[row] = made[names[0]] if len(names) == 1 else as_json(made)
        return tuple(kept), results

    return many


TYPES = (
    TaskType("interpolate", Interpolate, STEP, State.KEYED, package="headgate-riotbench", work=KeyedWork(_interpolate)),
)
