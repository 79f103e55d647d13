"""How the results of a keyed task become columns of its rows: as SQL, and on Arrow batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.work import BatchFunction, BatchResult, RowWise
from headgate.tasks.batch import replaced
from headgate.tasks.keyed_base import NESTED, NUMBERS, KeyedConfig
from headgate.tasks.sql_text import escaped, quoted

__all__ = ["has_result_form", "result_form", "row_with_result"]


def row_with_result(options: KeyedConfig, names: Sequence[str], number: str, text: str, raised: str) -> RowWise:
    """The row of a hosted task: which rows pass, and what becomes of the result.

    ``number``, ``text`` and ``raised`` are expressions for the result as a number, as a text, and whether it raised.

    >>> from headgate.tasks.keyed import Count
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
        whole = f"from_json({text}, '{escaped(fields)}')"
        return {name: f"{whole}.{quoted(name)}" for name in added}
    results = {}
    for name, kind in added.items():
        plain = number if kind in NUMBERS else text
        results[name] = f"from_json({text}, '{escaped(kind)}')" if kind.startswith(NESTED) else plain
    return results


RESULTS: dict[str, pa.DataType] = {
    "double": pa.float64(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "array<double>": pa.list_(pa.float64()),
}
"""Types of results that can be put into rows here."""


def has_result_form(options: KeyedConfig) -> bool:
    """Whether the results of a keyed task can be put into rows here."""
    return all(kind in RESULTS for kind in options.added().values())


def result_form(options: KeyedConfig, slot: int, hidden: Sequence[str]) -> BatchFunction:
    """The rows of a hosted task with its results, as :func:`row_with_result` says.

    ``hidden`` are the names of the columns of results, texts and errors, each a list with an item for each task.
    """
    results, texts, errors = hidden
    added = options.added()
    is_number = not added or (len(added) == 1 and next(iter(added.values())) in ("double", "bigint"))

    def item(batch: pa.RecordBatch, name: str) -> pa.Array:
        lists = batch.column(name)
        if lists.null_count == len(lists):
            return pa.nulls(len(lists), lists.type.value_type)
        return pc.list_element(lists, slot)

    def work(batch: pa.RecordBatch) -> BatchResult:
        number, text, raised = item(batch, results), item(batch, texts), item(batch, errors)
        own = batch.select([name for name in batch.schema.names if not name.startswith("__")])
        new = _result_columns(options, own, number, text)
        columns = replaced(own, new, options.dropped())
        passes = pc.is_valid(number if is_number else text) if options.sparse else pc.is_null(raised)
        kept = passes.to_numpy(zero_copy_only=False)
        if kept.all():
            return BatchResult(columns)
        return BatchResult([column.filter(passes) for column in columns], np.flatnonzero(kept))

    return work


def _result_columns(
    options: KeyedConfig, own: pa.RecordBatch, number: pa.Array, text: pa.Array
) -> list[tuple[str, pa.Array]]:
    added = options.added()
    if len(added) > 1 and text.null_count < len(text):
        objects = [None if one is None else orjson.loads(one) for one in text.to_pylist()]
        made = {n: pa.array([None if o is None else o.get(n) for o in objects], RESULTS[k]) for n, k in added.items()}
    elif len(added) > 1:
        made = {}
    else:
        made = {name: _single(kind, number, text) for name, kind in added.items()}
    columns = []
    names = [name.casefold() for name in own.schema.names]
    for name, kind in added.items():
        column = made.get(name)
        if options.keeps and name.casefold() in names:
            before = own.column(names.index(name.casefold())).cast(RESULTS[kind])
            column = before if column is None else pc.coalesce(column, before)
        columns.append((name, pa.nulls(len(own), RESULTS[kind]) if column is None else column))
    return columns


def _single(kind: str, number: pa.Array, text: pa.Array) -> pa.Array:
    if kind in ("double", "bigint"):
        return number.cast(RESULTS[kind], safe=False)
    if kind == "string":
        return text
    return pa.array([None if one is None else orjson.loads(one) for one in text.to_pylist()], RESULTS[kind])
