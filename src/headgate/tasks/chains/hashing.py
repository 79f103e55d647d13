"""A 64-bit hash of key columns. It addresses state on disk, so it must never change.

Keys that Spark SQL groups together have equal hashes: null with null, NaN with NaN, 0.0 with -0.0, integers and floats
whatever their width. Values of different kinds (5 and 5.0, decimals of different scale) differ; cast them before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from headgate.errors import InputError
from headgate.tasks.heavy import np, pa, pc

__all__ = ["hash_keys"]

_NULL, _EMPTY = 0x9AE16A3B2F90404F, 0xC949C7DEFE8AC1BD
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_LONG = 1_024
"""Texts with more bytes are hashed one by one."""


def hash_keys(columns: Sequence[Any], rows: int) -> Any:
    """The hash of each row's key, as NumPy's uint64; 0 for all rows where there are no key columns.

    >>> import pyarrow as pa
    >>> one, other = pa.array([5, None], pa.int32()), pa.array([5, None], pa.int64())
    >>> bool((hash_keys([one], 2) == hash_keys([other], 2)).all())
    True
    """
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        hashes = _mixed(hashes * np.uint64(_STEP) + _values(column))
    return hashes


def _mixed(words: Any) -> Any:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): each bit of the result depends on all bits."""
    words = words + np.uint64(_STEP)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(_FIRST)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(_SECOND)
    return words ^ (words >> np.uint64(31))


def _values(column: Any) -> Any:
    """A word for each value of a column."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _NULL, np.uint64)
    words = _words(column, kind)
    if column.null_count:
        words = np.where(column.is_valid().to_numpy(zero_copy_only=False), words, np.uint64(_NULL))
    return words


def _words(column: Any, kind: Any) -> Any:
    types = pa.types
    if types.is_dictionary(kind):
        return _mixed_dictionary(column)
    if types.is_floating(kind):
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    if types.is_decimal(kind):
        return _decimals(column.cast(pa.decimal128(38, kind.scale)))
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif types.is_date32(kind) or types.is_time32(kind):
        column = column.cast(pa.int32())
    elif types.is_time64(kind) or types.is_duration(kind):
        column = column.cast(pa.int64())
    elif types.is_boolean(kind):
        column = column.cast(pa.int8())
    if types.is_integer(column.type):
        return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return _nested(column, kind)


def _mixed_dictionary(column: Any) -> Any:
    places = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    words = _values(column.dictionary)
    return words[places] if len(words) else np.full(len(column), _NULL, np.uint64)


def _decimals(column: Any) -> Any:
    halves = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
    return _mixed(halves[::2]) + halves[1::2]


def _nested(column: Any, kind: Any) -> Any:
    types = pa.types
    if types.is_string(kind) or types.is_binary(kind) or types.is_string_view(kind) or types.is_binary_view(kind):
        text = types.is_string(kind) or types.is_string_view(kind)
        return _texts(column.cast(pa.large_string() if text else pa.large_binary()))
    if types.is_large_string(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _texts(column if not types.is_fixed_size_binary(kind) else column.cast(pa.large_binary()))
    if types.is_struct(kind):
        return hash_keys(column.flatten(), len(column))
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists(column)
    raise InputError("TASK_REFUSED", f"a key of type {kind} cannot be hashed; take a field of it, or to_json of it")


def _texts(column: Any) -> Any:
    """Texts, eight bytes at a time for all rows that have so many."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    begins, lengths = ends[:-1], np.diff(ends)
    memory = (b"" if data is None else data.to_pybytes()[: int(ends[-1]) if len(ends) else 0]) + bytes(8)
    anywhere = np.ndarray((len(memory) - 7,), "<u8", memory, strides=(1,))
    hashes = _mixed(lengths.astype(np.uint64) + np.uint64(_EMPTY))
    rows = np.flatnonzero(lengths)
    for step in range(0, _LONG, 8):
        rows = rows[lengths[rows] > step]
        if not len(rows):
            break
        left = np.minimum(lengths[rows] - step, 8).astype(np.uint64)
        mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - np.uint64(8) * left)
        hashes[rows] = _mixed(hashes[rows] * np.uint64(_STEP) + (anywhere[begins[rows] + step] & mask))
    for row in np.flatnonzero(lengths > _LONG):
        digest = hashlib.blake2b(memory[begins[row] : ends[row + 1]], digest_size=8).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def _lists(column: Any) -> Any:
    """Lists: the sum of their values' words, each mixed with its place, which no order of adding changes."""
    inner = _values(column.flatten())
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths)
    places = np.arange(len(inner)) - np.repeat(ends - lengths, lengths)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(_mixed(inner + _mixed(places.astype(np.uint64))))])
    return _mixed(sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64))
