"""A Python function over rows, batches or frames as the work of a task.

Rows that make it raise are found: those of a function over rows one by one, those of others by halving the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.tasks.arrow_task import Made, Work
from headgate.tasks.guard import told_of

__all__ = ["python_work"]

Function = Callable[..., Any]


def python_work(
    over: str, function: Function, keywords: Mapping[str, Any], schema: pa.Schema, *, letters: bool
) -> Work:
    """What a function does to batches of rows; with ``letters``, rows that it cannot stand are named."""
    apply = {"row": _over_rows, "pandas": _over_pandas, "arrow": _over_arrow}[over]

    def work(batch: pa.RecordBatch) -> Made:
        bad: Bad = [] if letters else None
        made = pa.Table.from_batches(apply(function, keywords, batch, schema, bad), schema).combine_chunks()
        columns = [column.chunk(0) if column.num_chunks else pa.nulls(0, column.type) for column in made.columns]
        told = [(place, told_of(error)) for place, error in bad or ()]
        return Made(columns, _origin(len(made), len(batch)), told)

    return work


def _origin(made: int, given: int) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """The row that each new one comes from.

    Nobody tells. Of functions that make a row of each it is the one in its place; others get those of the batch
    stretched or thinned out evenly, which leaves the distribution of when they came in as it is.
    """
    return None if made == given else np.arange(made) * given // max(made, 1)


Bad = list[tuple[int, Exception]] | None
"""Where rows that a function cannot stand are noted, by their place in the batch; ``None`` lets it fail instead."""


def _over_rows(
    function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, bad: Bad
) -> list[pa.RecordBatch]:
    if bad is None:
        found: list[Any] = []
        for row in batch.to_pylist():
            result = function(row, **keywords)
            if type(result) is dict:  # by far the most, and quicker to tell than any mapping
                found.append(result)
            else:
                found += _rows_of(result)
        return [pa.RecordBatch.from_pylist(found, schema=schema)]
    made: list[tuple[int, list[Any]]] = []
    for place, row in enumerate(batch.to_pylist()):
        try:
            made.append((place, _rows_of(function(row, **keywords))))
        except Exception as error:
            bad.append((place, error))

    def as_batch(items: Sequence[tuple[int, list[Any]]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([row for _, rows in items for row in rows], schema=schema)

    # What the function returned may not fit the columns: that is an error of its row too.
    return _halved(made, as_batch, lambda first, error: bad.append((made[first][0], error)))


def _rows_of(result: Any) -> list[Any]:
    """The rows that a function made of one: none, one, or several."""
    return [] if result is None else [result] if isinstance(result, Mapping) else list(result)


def _over_pandas(
    function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, bad: Bad
) -> list[pa.RecordBatch]:
    def apply(rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pandas(function(rows.to_pandas(), **keywords), schema=schema, preserve_index=False)

    return _over_batch(apply, batch, bad)


def _over_arrow(
    function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, bad: Bad
) -> list[pa.RecordBatch]:
    def apply(rows: pa.RecordBatch) -> pa.RecordBatch:
        return function(rows, **keywords).select(schema.names).cast(schema)

    return _over_batch(apply, batch, bad)


def _over_batch(apply: Callable[[pa.RecordBatch], pa.RecordBatch], batch: pa.RecordBatch, bad: Bad) -> list[Any]:
    if bad is None:
        return [apply(batch)]
    return _halved(batch, apply, lambda first, error: bad.append((first, error)))


def _halved(items: Any, apply: Callable[[Any], pa.RecordBatch], note: Callable[[int, Exception], None]) -> list[Any]:
    """Apply to all items, or where that raises to halves of them, down to single ones, which are noted."""
    made: list[Any] = []
    waiting = [(0, len(items))]
    while waiting:
        first, count = waiting.pop()
        whole = count == len(items)
        part = (
            items if whole else items.slice(first, count) if hasattr(items, "slice") else items[first : first + count]
        )
        try:
            made.append(apply(part))
        except Exception as error:
            if count < 2:
                note(first, error)
            else:
                half = count // 2
                waiting += [(first + half, count - half), (first, half)]
    return made
