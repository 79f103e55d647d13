"""What all folds do with rows: times, hashes, dead rows, and tables in the form that a chain declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.errors import InputError
from headgate.model.chain_work import HASH, UNTIL
from headgate.model.span import seconds_of
from headgate.tasks.chains.columns import one_chunk, valid_of, values_of
from headgate.tasks.chains.grouping import normalised, rows_where
from headgate.tasks.heavy import np, pa

__all__ = ["NO_MARK", "TIME", "check_time", "hashes_of", "key_columns", "live", "microseconds", "table_of", "times_of"]

TIME = "__time"
NO_MARK = -(1 << 63)
"""A mark before all times."""


def microseconds(span: str) -> int:
    """A span of time of a dataflow file; whole milliseconds, as Spark takes them."""
    return round((seconds_of(span) or 0.0) * 1_000) * 1_000


def check_time(kind: Any, name: str) -> None:
    """Refuse an event time that is no timestamp."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise InputError("TASK_REFUSED", f"event time '{name}' is of type {kind}; cast it to timestamp before")


def times_of(table: Any, name: str = TIME) -> tuple[Any, Any]:
    """The microseconds of a column of timestamps, and where there are any (``None``: everywhere)."""
    column = one_chunk(table[name])
    return values_of(column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64()), np.int64), valid_of(column)


def hashes_of(table: Any) -> Any:
    """The hashes of a table's rows."""
    return one_chunk(table[HASH]).to_numpy(zero_copy_only=False)


def key_columns(table: Any, names: Sequence[str]) -> list[Any]:
    """The key columns of a table, as Spark SQL groups by them."""
    return [normalised(one_chunk(table[name])) for name in names]


def live(table: Any, mark: int | None) -> Any:
    """The rows of state that are not dead."""
    if mark is None or not table.num_rows:
        return table
    return rows_where(table, one_chunk(table[UNTIL]).to_numpy(zero_copy_only=False) > mark)


def table_of(schema: Any, columns: Sequence[Any]) -> Any:
    """A table of a schema, from Arrow arrays and NumPy arrays."""
    arrays = [
        column if isinstance(column, pa.Array) and column.type == field.type else pa.array(column).cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
