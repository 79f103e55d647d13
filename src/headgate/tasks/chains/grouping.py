"""Rows put together by key: sorted by the key's hash, equal keys side by side, each group in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headgate.tasks.heavy import np, pa, pc

__all__ = ["Groups", "adjacent_differ", "codes_of", "differ", "grouped", "normalised", "rows_where"]


@dataclass(frozen=True)
class Groups:
    """Groups of rows: ``order`` sorts rows by group, ``starts`` are the places in it at which groups begin."""

    order: Any
    starts: Any

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def lengths(self) -> Any:
        return np.diff(self.starts, append=len(self.order))

    @cached_property
    def ids(self) -> Any:
        """The number of the group of each sorted row."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    @property
    def firsts(self) -> Any:
        """The first row of each group."""
        return self.order[self.starts]

    @property
    def lasts(self) -> Any:
        return self.order[self.starts + self.lengths - 1]


def grouped(hashes: Any, keys: Sequence[Any], parts: Any = None) -> Groups:
    """Rows by key, and within a key by part (such as a window), an array of int64.

    Hashes only bring keys together: where two keys have one hash, rows are sorted by what the keys are.
    """
    order = np.argsort(hashes, kind="stable") if parts is None else _by_two(hashes, parts)
    sorted_keys = [column.take(pa.array(order)) for column in keys]
    steps = _steps(hashes[order])
    if parts is not None:
        steps |= _steps(parts[order])
    other_key = np.zeros_like(steps)
    for column in sorted_keys:
        other_key |= adjacent_differ(column)
    if (other_key & ~steps).any():
        codes = codes_of(keys, len(hashes))
        order = np.lexsort((np.arange(len(hashes)), *(() if parts is None else (parts,)), codes, hashes))
        steps = _steps(hashes[order]) | _steps(codes[order])
        if parts is not None:
            steps |= _steps(parts[order])
    starts = np.flatnonzero(np.concatenate([[True], steps])) if len(order) else np.zeros(0, np.int64)
    return Groups(order, starts)


def _by_two(hashes: Any, parts: Any) -> Any:
    """Rows by hash, then part; NumPy sorts numbers of 16 bits by counting, and there are mostly few parts."""
    least = parts.min() if len(parts) else 0
    shifted = parts - least
    small = np.uint16 if len(parts) and shifted.max() < 1 << 16 else np.int64
    first = np.argsort(shifted.astype(small), kind="stable")
    return first[np.argsort(hashes[first], kind="stable")]


def _steps(values: Any) -> Any:
    return values[1:] != values[:-1]


def adjacent_differ(column: Any) -> Any:
    """Where a value is another than the one before it; null equals null, NaN equals NaN."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return differ(column.slice(0, max(len(column) - 1, 0)), column.slice(1))


def differ(one: Any, other: Any) -> Any:
    """Where two arrays of one type differ; null equals null, NaN equals NaN."""
    kind = one.type
    if not len(one) or pa.types.is_null(kind):
        return np.zeros(len(one), bool)
    if pa.types.is_struct(kind):
        mask = _validity(one) != _validity(other)
        for left, right in zip(one.flatten(), other.flatten(), strict=True):
            mask |= differ(left, right)
        return mask
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        codes = codes_of([pa.concat_arrays([one, other])], 2 * len(one))
        return codes[: len(one)] != codes[len(one) :]
    if pa.types.is_floating(kind):
        bits = pa.int64() if pa.types.is_float64(kind) else pa.int32()
        one, other = normalised(one).view(bits), normalised(other).view(bits)
    mask = pc.not_equal(one, other)
    if mask.null_count:
        both = _validity(one) != _validity(other)
        return mask.fill_null(False).to_numpy(zero_copy_only=False) | both
    return mask.to_numpy(zero_copy_only=False)


def _validity(column: Any) -> Any:
    return column.is_valid().to_numpy(zero_copy_only=False)


def codes_of(keys: Sequence[Any], rows: int) -> Any:
    """A number for each row, equal where all key columns are."""
    codes = np.zeros(rows, np.int64)
    for column in keys:
        codes = _combined(codes, _codes(column))
    return codes


def _combined(codes: Any, others: Any) -> Any:
    _, codes = np.unique(codes * (int(others.max(initial=0)) + 1) + others, return_inverse=True)
    return codes


def _codes(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_struct(kind):
        codes = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        for field in column.flatten():
            codes = _combined(codes, _codes(field))
        return codes
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        places: dict[str, int] = {}
        texts = (repr(value) for value in column.to_pylist())
        return np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    if pa.types.is_floating(kind):
        column = normalised(column).view(pa.int64() if pa.types.is_float64(kind) else pa.int32())
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def normalised(column: Any) -> Any:
    """A key column as Spark SQL groups by it: -0.0 becomes 0.0, and every NaN the same one."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_floating(column.type):
        return column
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False) + column.type.to_pandas_dtype()(0.0)
    values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    nulls = None if not column.null_count else column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(values, column.type, mask=nulls)


def rows_where(table: Any, mask: Any) -> Any:
    """The rows of a table where a NumPy mask holds; the same table if it holds everywhere."""
    return table if mask.all() else table.filter(pa.array(mask))
