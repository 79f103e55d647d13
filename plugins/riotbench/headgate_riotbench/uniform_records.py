"""Records that are written in the same way: read together, by the layout of one of them.

A sender writes the names, units and signs of all its records the same, and only values change. A record that has been
read shows what stands between its values, its *frame*. From the places of its quotation marks follows where a record's
values must be if it has the same frame, and comparing shows whether it has. NumPy does that for all records of a batch
in less time than it takes to make Python's objects of them. What does not fit is read as before, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from headgate.tasks.heavy import np, pa

__all__ = ["Frame", "Marked", "frame_of"]

_ENTRY = re.compile(r"\{[^{}]*\}")
_PAIR = re.compile(r'"(\w+)"\s*:\s*("[^"\\]*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')
_TIME = re.compile(r'"bt"\s*:\s*(-?\d{1,18})(?=\s*[,}])')

QUOTE, BACKSLASH, BRACE = b'"\\{'
LONGEST_BEFORE = 64
"""Bytes that may stand before a record's first brace."""

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Fits: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class Marked:
    """Texts, and where their quotation marks are."""

    def __init__(self, texts: pa.Array, longest: int) -> None:
        _, ends, data = texts.buffers()
        offsets = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
        self.raw: Bytes = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
        self.offsets: Places = offsets - offsets[0]
        self.marks: Places = np.flatnonzero(self.raw == QUOTE)
        self.first: Places = np.searchsorted(self.marks, self.offsets)
        """The first mark of each text."""

        self.count: Places = np.diff(self.first)
        self.count[np.diff(self.offsets) > longest] = -1
        if texts.null_count:
            self.count[~texts.is_valid().to_numpy(zero_copy_only=False)] = -1


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands between the values of records, from the first brace to the last."""

    between: tuple[bytes, ...]
    fields: tuple[int | None, ...]
    """Which value is of which field; that of ``None`` is the time, and one of -1 nobody wants."""

    def taken(self, texts: Marked, rows: Places) -> tuple[Places, dict[int | None, pa.Array]]:
        """Those of some texts that have this frame, and their values."""
        marks = [part.count(b'"') for part in self.between]
        rows = rows[texts.count[rows] == sum(marks)]
        begins: list[Places] = []
        for part, before in zip(self.between, accumulate(marks, initial=0), strict=False):
            if b'"' in part:
                begin = texts.marks[texts.first[rows] + before] - part.index(b'"')
            else:
                begin = texts.offsets[rows + 1] - len(part)
            good = begin >= (begins[-1] + len(self.between[len(begins) - 1]) if begins else texts.offsets[rows])
            good &= begin + len(part) <= texts.offsets[rows + 1]
            good[good] = _is_at(texts.raw, begin[good], part)
            begins.append(begin)
            if not good.all():
                rows, begins = rows[good], [some[good] for some in begins]
        good = _no_brace(texts, rows, begins[0])
        values: dict[int | None, pa.Array] = {}
        for at, field in enumerate(self.fields):
            begin, end = begins[at] + len(self.between[at]), begins[at + 1]
            value, plain = _values(texts.raw, begin, end)
            good &= plain
            if field != -1:
                values[field] = value
        if not good.all():
            rows, values = rows[good], {field: value.filter(pa.array(good)) for field, value in values.items()}
        return rows, values


def _is_at(raw: Bytes, begins: Places, part: bytes) -> Fits:
    """Whether a part stands at some places."""
    if not len(begins):
        return np.zeros(0, bool)
    # The text that begins at each byte: an array that overlaps itself.
    windows = np.ndarray((len(raw) - len(part) + 1,), f"S{len(part)}", raw.data, strides=(1,))
    is_same: Fits = windows[begins] == part
    return is_same


def _no_brace(texts: Marked, rows: Places, begins: Places) -> Fits:
    """Whether a record's first brace is that of its frame."""
    before = begins - texts.offsets[rows]
    good: Fits = before <= LONGEST_BEFORE
    for at in np.flatnonzero(good & (before > 0)):
        good[at] = BRACE not in texts.raw[texts.offsets[rows[at]] : begins[at]]
    return good


def _values(raw: Bytes, begins: Places, ends: Places) -> tuple[pa.Array, Fits]:
    """The texts at some places, and which of them have nothing but plain characters."""
    sizes = ends - begins
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = raw[np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])]
    plain = np.ones(len(begins), bool)
    odd = np.flatnonzero((data - np.uint8(32) >= 96) | (data == BACKSLASH))
    if len(odd):
        plain[np.searchsorted(offsets, odd, "right") - 1] = False
        data = np.where(data >= 128, np.uint8(QUOTE), data)  # whoever asks for it gets a text, though not this one
    return pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)), plain


def frame_of(
    text: bytes, record: Mapping[str, Any], wanted: Sequence[tuple[str, pa.DataType]], keys: Sequence[str]
) -> Frame | None:
    """The frame of a record that has been read, if there is one; ``keys`` are those that hold an entry's value.

    >>> import orjson
    >>> text = b'{"e":[{"n":"t","v":"21.5"}],"bt":5}'
    >>> frame = frame_of(text, orjson.loads(text), [("t", pa.float64())], ["v"])
    >>> texts = pa.array(['{"e":[{"n":"t","v":"-3"}],"bt":6}', "{}"])
    >>> rows, values = frame.taken(Marked(texts, 100), np.arange(2))
    >>> rows.tolist(), [column.to_pylist() for column in values.values()]
    ([0], [['-3'], ['6']])
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
    values: list[tuple[int, int, int | None]] = [(*times[0].span(1), None)]
    for span, entry in zip(spans, entries, strict=True):
        pairs = {pair[1]: pair.span(2) for pair in _PAIR.finditer(span[0])}
        key = next((key for key in keys if key in entry), None)
        at = places.get(entry["n"], -1)
        if pairs.keys() != entry.keys() or key is None or not entry.keys() <= {"n", "u", key}:
            return None
        begin, end = (span.start() + place for place in pairs[key])
        # What has no quotation marks is a number, and only Python checks quickly whether JSON allows it.
        if whole[begin] != '"' or (at != -1 and not _is_simple(wanted[at][1])):
            return None
        values.append((begin + 1, end - 1, at))
    values.sort(key=lambda value: value[0])
    begins, ends = [begin for begin, _, _ in values], [end for _, end, _ in values]
    between = [whole[end:begin].encode() for end, begin in zip([0, *ends], [*begins, len(whole)], strict=True)]
    if any(b'"' not in part for part in between[:-1]) or b'"' in between[-1]:
        return None
    return Frame(tuple(between), tuple(field for _, _, field in values))


def _is_simple(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_string(kind))
