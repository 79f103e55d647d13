"""Records that are written alike: read by what one of them tells, all of a batch at once.

A sender writes the names, units and signs of all its records the same, and only values change. A record that has been
read tells what stands between its values, its *frame*. Where a record's quotation marks are tells where its values must
be, if it has the same frame, and whether it has is seen by comparing. NumPy does that for all records of a batch in less
time than it takes to make Python's objects of them. What does not fit is read as before, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["Frame", "Taken", "frame_of"]

_ENTRY = re.compile(r"\{[^{}]*\}")
_PAIR = re.compile(r'"(\w+)"\s*:\s*("[^"\\]*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')
_TIME = re.compile(r'"bt"\s*:\s*(-?\d{1,18})(?=\s*[,}])')

QUOTE, BACKSLASH, BRACE = b'"\\{'
LONGEST_BEFORE = 64
"""Bytes that may stand before a record's first brace."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Places = np.ndarray[Any, np.dtype[np.int64]]
Fits = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Taken:
    """The records of a batch that have a frame, and their values as texts: by field, and their time."""

    fits: Fits
    values: Mapping[int | None, pa.Array]


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands between the values of records, from the first brace to the last."""

    between: tuple[bytes, ...]
    fields: tuple[int | None, ...]
    """Which value is of which field; that of ``None`` is the time, and one of -1 nobody wants."""

    def taken(self, texts: pa.Array, longest: int) -> Taken:
        """The values of the records that have this frame."""
        raw, offsets = _raw(texts)
        fits = np.diff(offsets) <= longest
        if texts.null_count:
            fits &= texts.is_valid().to_numpy(zero_copy_only=False)
        odd = np.flatnonzero((raw >= 128) | (raw < 32) | (raw == BACKSLASH))
        fits[np.searchsorted(offsets, odd + offsets[0], "right") - 1] = False
        marks = np.flatnonzero(raw == QUOTE) + offsets[0]
        first = np.searchsorted(marks, offsets)
        per_text = [part.count(b'"') for part in self.between]
        fits &= np.diff(first) == sum(per_text)
        here = np.flatnonzero(fits)
        begins, ends = self._spans(marks, first[here], offsets[here + 1], per_text)
        good = self._has_frame(raw, offsets[0], offsets[here], begins, ends)
        fits[here[~good]] = False
        values = {
            field: _texts(raw, begins[at + 1][good] - offsets[0], ends[at + 1][good] - offsets[0])
            for at, field in enumerate(self.fields)
            if field != -1
        }
        return Taken(fits, values)

    def _spans(
        self, marks: Places, first: Places, row_ends: Places, per_text: Sequence[int]
    ) -> tuple[list[Places], list[Places]]:
        """Where values begin and end, if these records have the frame; what stands before the first is one, too."""
        begins, ends = [first * 0], []
        for part, before in zip(self.between, accumulate(per_text, initial=0), strict=False):
            begin = marks[first + before] - part.index(b'"') if b'"' in part else row_ends - len(part)
            ends.append(begin)
            begins.append(begin + len(part))
        return begins, ends

    def _has_frame(
        self, raw: Bytes, origin: int, row_begins: Places, begins: Sequence[Places], ends: Sequence[Places]
    ) -> Fits:
        before = ends[0] - row_begins
        good: Fits = (before >= 0) & (before <= LONGEST_BEFORE) & (begins[-1] <= len(raw) + origin)
        for at in range(1, len(self.between)):
            good &= begins[at] <= ends[at]
        for part, begin in zip(self.between, ends, strict=True):
            wanted = np.frombuffer(part, np.uint8)
            windows = np.lib.stride_tricks.sliding_window_view(raw, len(part)) if len(part) <= len(raw) else None
            if windows is None:
                return np.zeros_like(good)
            found = windows[np.where(good, begin - origin, 0)]
            good &= (found == wanted).all(axis=1)
        for at in np.flatnonzero(good & (before > 0)).tolist() if before.any() else ():
            good[at] = BRACE not in raw[row_begins[at] - origin : ends[0][at] - origin]
        return good


def _raw(texts: pa.Array) -> tuple[Bytes, Places]:
    """The bytes of texts, and where in the buffer that they are in each begins, and the last one ends."""
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]], offsets


def _texts(raw: Bytes, begins: Places, ends: Places) -> pa.Array:
    """The texts at some places."""
    sizes = ends - begins
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])
    return pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(raw[places]))


def frame_of(
    text: bytes, record: Mapping[str, Any], wanted: Sequence[tuple[str, pa.DataType]], keys: Sequence[str]
) -> Frame | None:
    """The frame of a record that has been read, if there is one; ``keys`` are those that hold an entry's value.

    >>> import orjson
    >>> text = b'{"e":[{"n":"t","v":"21.5"}],"bt":5}'
    >>> found = frame_of(text, orjson.loads(text), [("t", pa.float64())], ["v"])
    >>> taken = found.taken(pa.array(['{"e":[{"n":"t","v":"-3"}],"bt":6}', "{}"]), 100)
    >>> taken.fits.tolist(), [values.to_pylist() for values in taken.values.values()]
    ([True, False], [['-3'], ['6']])
    """
    try:
        whole = text[text.index(b"{") :].decode("ascii")
    except ValueError:
        return None
    spans, times, entries = list(_ENTRY.finditer(whole, 1)), list(_TIME.finditer(whole)), record["e"]
    names = [entry["n"] for entry in entries]
    if len(spans) != len(entries) or len(set(names)) != len(names) or len(times) != 1:
        return None
    places = {name: at for at, (name, _) in enumerate(wanted)}
    found: list[tuple[int, int, int | None]] = [(*times[0].span(1), None)]
    for span, entry in zip(spans, entries, strict=True):
        pairs = {pair[1]: pair.span(2) for pair in _PAIR.finditer(span[0])}
        key = next((key for key in keys if key in entry), None)
        at = places.get(entry["n"], -1)
        if pairs.keys() != entry.keys() or key is None or not entry.keys() <= {"n", "u", key}:
            return None
        begin, end = (span.start() + place for place in pairs[key])
        # What has no quotation marks is a number, and only Python tells quickly whether it is one that JSON allows.
        if whole[begin] != '"' or (at != -1 and not _is_simple(wanted[at][1])):
            return None
        found.append((begin + 1, end - 1, at))
    found.sort(key=lambda value: value[0])
    between = [whole[end:begin].encode() for (_, end, _), (begin, _, _) in zip([(0, 0, 0), *found], found, strict=False)]
    between.append(whole[found[-1][1] :].encode())
    if any(b'"' not in part for part in between[:-1]) or b'"' in between[-1]:
        return None
    return Frame(tuple(between), tuple(field for _, _, field in found))


def _is_simple(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_string(kind)
