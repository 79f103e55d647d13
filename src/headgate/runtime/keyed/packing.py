"""Rows in packs: how they travel to a keyed host and back.

Spark's Python worker makes an object of every value that it hands to stateful code, which takes longer than most tasks
do. A pack is one value to Spark and holds many rows, those whose keys fall into one group, as Arrow writes them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["GROUP", "PACK", "Places", "in_packs", "key_codes", "key_text", "opened", "packs"]

GROUP, PACK = "__group", "__pack"
"""Columns of packed rows: the group that their keys fall into, and the rows."""

Places = np.ndarray[Any, np.dtype[np.int64]]


def in_packs(batches: Iterator[pa.RecordBatch], key: Sequence[int], groups: int) -> Iterator[pa.RecordBatch]:
    """The rows of batches as a keyed host takes them."""
    for batch in batches:
        if len(batch):
            numbers, made = zip(*packs(batch, key, groups), strict=True)
            arrays = [pa.array(numbers, pa.int32()), pa.array(made, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, [GROUP, PACK])


def packs(batch: pa.RecordBatch, key: Sequence[int], groups: int) -> Iterator[tuple[int, bytes]]:
    """The rows of a batch by the group of their key, in packs that keep their order.

    >>> batch = pa.record_batch({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    >>> [opened(pack, batch.schema).column(1).to_pylist() for _, pack in packs(batch, [0], 1)]
    [[1, 2, 3]]
    """
    codes, texts = key_codes([batch.column(at) for at in key])
    of_key = np.fromiter((zlib.crc32(text.encode("utf-8", "surrogatepass")) % groups for text in texts), np.int64)
    for group, places in _runs(of_key[codes]):
        here = batch if len(places) == len(batch) else batch.take(pa.array(places))
        yield group, here.serialize().to_pybytes()


def opened(pack: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a pack."""
    return pa.ipc.read_record_batch(pa.py_buffer(pack), schema)


def _runs(codes: Places) -> Iterator[tuple[int, Places]]:
    """The places of each code, in order."""
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    for places in np.split(order, ends) if len(order) else ():
        yield int(codes[places[0]]), places


def key_codes(columns: Sequence[pa.Array]) -> tuple[Places, list[str]]:
    """The keys of rows: a number for each row, and the text of the key that a number stands for.

    >>> codes, texts = key_codes([pa.array(["a", "b", "a"]), pa.array([1, 1, 1])])
    >>> codes.tolist(), texts
    ([0, 1, 0], ["['a', 1]", "['b', 1]"])
    """
    try:
        encoded = [column.dictionary_encode(null_encoding="encode") for column in columns]
    except pa.ArrowNotImplementedError:  # lists and structs
        texts = [key_text(values) for values in zip(*(column.to_pylist() for column in columns), strict=True)]
        return _numbered(np.arange(len(texts)), texts)
    codes = np.zeros(len(columns[0]), np.int64)
    for one in encoded:
        codes = codes * max(len(one.dictionary), 1) + one.indices.to_numpy(zero_copy_only=False)
    distinct, codes = np.unique(codes, return_inverse=True)
    values: list[list[Any]] = []
    for one in reversed(encoded):
        known = one.dictionary.to_pylist()
        distinct, at = np.divmod(distinct, max(len(known), 1))
        values.insert(0, [known[place] for place in at])
    return _numbered(codes.reshape(-1), [key_text(key) for key in zip(*values, strict=True)])


def _numbered(codes: Places, texts: list[str]) -> tuple[Places, list[str]]:
    """Codes and texts with each text once: to Arrow the two zeros differ."""
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    return places[codes], list(numbers)


def key_text(values: Sequence[Any]) -> str:
    """A text for each key, the same for keys that Spark takes for equal: the two zeros, and what is not a number.

    >>> key_text(["a", 1]), key_text([-0.0]) == key_text([0.0]), key_text([float("nan")])
    ("['a', 1]", True, '[nan]')
    """
    return repr([value + 0.0 if isinstance(value, float) else value for value in values])
