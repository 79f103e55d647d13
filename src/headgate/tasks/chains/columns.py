"""Arrow columns as NumPy arrays and back, nulls kept, and the order that Spark SQL puts values in."""

from __future__ import annotations

from typing import Any

from headgate.errors import InputError
from headgate.tasks.chains.grouping import Groups, normalised
from headgate.tasks.heavy import np, pa, pc

__all__ = ["as_array", "chosen", "one_chunk", "order_codes", "summed", "valid_of", "values_of"]


def one_chunk(column: Any) -> Any:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def valid_of(column: Any) -> Any:
    """Where a column has a value, as a NumPy array; ``None`` if everywhere."""
    return column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None


def values_of(column: Any, dtype: Any) -> Any:
    """The numbers of a column, 0 where there is none."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    values = column.fill_null(0) if column.null_count else column
    return values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)


def as_array(values: Any, valid: Any, kind: Any) -> Any:
    """Numbers as a column of a type, null where not valid."""
    return pa.array(values, mask=None if valid is None else ~valid).cast(kind)


def summed(values: Any, groups: Groups) -> Any:
    """The sum of each group of sorted values."""
    return np.add.reduceat(values, groups.starts) if len(groups) else values[:0]


def order_codes(column: Any) -> Any:
    """Numbers (int64) in the order of the values: NaN after all others, texts by their bytes, in structs null first."""
    kind, types = column.type, pa.types
    if types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if types.is_floating(kind):
        bits = values_of(normalised(column), np.float64).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time64(kind):
        return values_of(column.view(pa.int64()), np.int64)
    if types.is_date32(kind) or types.is_time32(kind):
        return values_of(column.view(pa.int32()), np.int64)
    if types.is_integer(kind) or types.is_boolean(kind):
        return values_of(column, np.int64)
    if types.is_struct(kind):
        return _struct_codes(column)
    if types.is_nested(kind):
        raise InputError("TASK_REFUSED", f"values of type {kind} are not compared; take a field of it")
    encoded = column.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.array_sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False)] = np.arange(len(ranks))
    codes = values_of(encoded.indices, np.int64)
    return ranks[codes] if len(ranks) else codes


def _struct_codes(column: Any) -> Any:
    codes = np.zeros(len(column), np.int64)
    for field in column.flatten():
        valid = valid_of(field)
        inner = order_codes(field)
        if valid is not None:
            inner = np.where(valid, np.unique(inner, return_inverse=True)[1] + 1, 0)
        places = np.unique(inner, return_inverse=True)[1]
        codes = np.unique(codes * (int(places.max(initial=0)) + 1) + places, return_inverse=True)[1]
    return codes


def chosen(codes: Any, valid: Any, groups: Groups, largest: bool) -> tuple[Any, Any]:
    """The place of the first sorted row of each group whose code is the greatest or least, and whether there is one."""
    ends = np.iinfo(np.int64)
    least = ends.min if largest else ends.max
    weighed = codes if valid is None else np.where(valid, codes, least)
    best = (np.maximum if largest else np.minimum).reduceat(weighed, groups.starts)
    hits = weighed == np.repeat(best, groups.lengths)
    if valid is not None:
        hits &= valid
    places = np.flatnonzero(hits)
    ids = groups.ids[places]
    first = np.concatenate([[True], ids[1:] != ids[:-1]]) if len(ids) else np.zeros(0, bool)
    taken, known = np.zeros(len(groups), np.int64), np.zeros(len(groups), bool)
    taken[ids[first]], known[ids[first]] = places[first], True
    return taken, known
