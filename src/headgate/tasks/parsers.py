"""What the parsing task types do to a batch of texts, by compiled parsers: orjson for SenML, expat for XML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.tasks.alike import Frame, Marked, frame_of
from headgate.tasks.arrow_task import Made, Work, replaced
from headgate.tasks.parsing import ParseSenml, ParseXml
from headgate.tasks.records import TIMES, Bad, arrow_kinds, typed

__all__ = ["parse_senml", "parse_xml"]

VALUES = ("v", "sv", "vs", "bv", "vb")
"""Where a SenML entry keeps its value: a number, a text, a truth; as the draft and as RFC 8428 call them."""


UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What reading a record that is none may raise."""

FRAMES, TRIES, TRIED = 4, 8, 20
"""How many frames are known at most, how often one is looked for, and among how many records."""

FEW = 256
"""Fewer records than this are sooner read one by one than looked at together."""

Places = np.ndarray[Any, np.dtype[np.int64]]

LAYOUTS = 1_000
"""How many orders of fields are remembered for a batch."""


def parse_senml(options: ParseSenml) -> Work:
    """The work of a parse_senml task.

    >>> work = parse_senml(ParseSenml(columns="t double", time=None))
    >>> batch = pa.record_batch({"value": ['{"e":[{"n":"t","v":"21.5"}],"bt":0}', "oops"]})
    >>> made = work(batch)
    >>> made.columns[0].to_pylist(), made.bad
    ([21.5], [(1, 'no SenML: it has no brace')])
    """
    reader = _Senml(options)

    def work(batch: pa.RecordBatch) -> Made:
        columns, bad = reader.read(_column(batch, options.column))
        return _without_bad(batch, columns, bad, options)

    return work


class _Senml:
    """Reads SenML: records that are written alike together (:mod:`headgate.tasks.alike`), the others one by one."""

    def __init__(self, options: ParseSenml) -> None:
        self.options = options
        self.fields = arrow_kinds(options.columns)
        self.names = [name for name, _ in self.fields]
        self.required = {self.names.index(name) for name in options.required if name in self.names}
        self.needs_time = options.time is not None and options.time in options.required
        self.limits = [_milliseconds(text) for text in (options.earliest, options.latest)]
        self.units = [options.units.get(name) for name in self.names]
        self.frames: list[Frame] = []
        self.tries = TRIES

    def read(self, texts: pa.Array) -> tuple[list[tuple[str, pa.Array]], Bad]:
        """The columns of some texts, and which of them are bad."""
        if len(texts) < FEW:
            return self._one_by_one(texts)
        marked, left = Marked(texts, self.options.longest), np.arange(len(texts))
        places: list[Places] = []
        parts: list[list[pa.Array]] = []
        known = 0
        while len(left) >= FEW and (known < len(self.frames) or self._learn(texts, left)):
            rows, values = self.frames[known].taken(marked, left)
            columns, rows = self._columns_of(values, rows)
            known += 1
            if len(rows):
                parts.append(columns)
                places.append(rows)
                left = np.setdiff1d(left, rows, assume_unique=True)
        if not parts:
            return self._one_by_one(texts)
        unfit: Bad = {}
        if len(left):
            slow, unfit = self._one_by_one(texts.take(pa.array(left)))
            parts.append([column for _, column in slow])
            places.append(left)
        names = [*([] if self.options.time is None else [self.options.time]), *self.names]
        if len(parts) == 1:
            return list(zip(names, parts[0], strict=True)), {}
        order = pa.array(np.argsort(np.concatenate(places)))
        merged = [pa.concat_arrays(column).take(order) for column in zip(*parts, strict=True)]
        return list(zip(names, merged, strict=True)), {int(left[at]): told for at, told in unfit.items()}

    def _learn(self, texts: pa.Array, left: Places) -> bool:
        """Take the frame of the first record that can be read of those that are left."""
        if len(self.frames) == FRAMES or not self.tries:
            return False
        self.tries -= 1
        layouts = _Layouts(self.names, self.units)
        for text in _bytes(texts.take(pa.array(left[:TRIED]))):
            try:
                record = _record(text, self.options.longest)
                row = layouts.values(record["e"])
                assert text is not None
                frame = frame_of(text, record, self.fields, VALUES)
            except UNREADABLE:
                continue
            if frame is not None and frame not in self.frames and all(row[at] for at in self.required):
                self.frames.append(frame)
                return True
        return False

    def _columns_of(self, values: Mapping[int | None, pa.Array], rows: Places) -> tuple[list[pa.Array], Places]:
        """Columns of the values of some rows, and which rows those are; none of them if that does not help."""
        try:
            times = values[None].cast(pa.int64())
            columns = [
                values[at].cast(kind) if at in values else pa.nulls(len(times), kind)
                for at, (_, kind) in enumerate(self.fields)
            ]
        except pa.ArrowInvalid:  # a value that is none: its record is told of where records are read one by one
            return [], rows[:0]
        if any(pc.all(pc.is_finite(c)).as_py() is False for c in columns if pa.types.is_floating(c.type)):
            return [], rows[:0]
        good = pc.and_(pc.less_equal(self.limits[0], times), pc.less(times, self.limits[1]))
        for at in self.required:
            if pa.types.is_string(columns[at].type):
                good = pc.and_(good, pc.greater(pc.binary_length(columns[at]), 0))
        if self.options.time is not None:
            columns.insert(0, pc.multiply(times, 1_000).cast(TIMES))
        kept = good.to_numpy(zero_copy_only=False)
        if not kept.all():
            return [column.filter(good) for column in columns], rows[kept]
        return columns, rows

    def _one_by_one(self, texts: pa.Array) -> tuple[list[tuple[str, pa.Array]], Bad]:
        bad: Bad = {}
        times: list[int | None] = []
        rows: list[Sequence[Any]] = []
        nothing: list[Any] = [None] * len(self.names)
        layouts = _Layouts(self.names, self.units)
        for place, text in enumerate(_bytes(texts)):
            try:
                record = _record(text, self.options.longest)
                time_ms = _time(record.get("bt"), self.limits, self.needs_time)
                row = layouts.values(record["e"])
                for at in self.required:
                    if row[at] is None or row[at] == "":
                        raise ValueError(f"it lacks {self.names[at]}")
            except UNREADABLE as error:
                bad[place] = f"no SenML: {_told(error)}"
                time_ms, row = None, nothing
            times.append(time_ms)
            rows.append(row)
        columns = _columns(rows, self.fields, bad)
        if self.options.time is not None:
            moments = pa.array([None if t is None else t * 1_000 for t in times], pa.int64()).cast(TIMES)
            columns.insert(0, (self.options.time, moments))
        return columns, bad


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the wanted fields are in records whose fields come in one order."""

    at: list[tuple[int, str]]
    """The entry and the key of the value, for each wanted field that is there."""

    order: list[int | None] | None
    """For each wanted field its place among those that are there; ``None`` if all are."""

    units_at: list[int]
    units: list[str]


class _Layouts:
    """Reads records; those of one source have their fields in few orders, and each is looked at once."""

    def __init__(self, names: Sequence[str], units: Sequence[str | None]) -> None:
        self._names = names
        self._units = units
        self._known: dict[tuple[Any, ...], _Layout] = {}

    def values(self, entries: list[dict[str, Any]]) -> list[Any]:
        """The values of the wanted fields."""
        named = tuple([entry["n"] for entry in entries])
        layout = self._known.get(named)
        if layout is None:
            layout = self._laid_out(named, entries)
            if len(self._known) < LAYOUTS:
                self._known[named] = layout
        try:
            if [entries[at]["u"] for at in layout.units_at] != layout.units:
                self._check_units(entries, layout)
            there = [entries[at][where] for at, where in layout.at]
        except KeyError:
            self._check_units(entries, layout)
            there = [entries[at].get(_value_of(entries[at])) for at, _ in layout.at]
        return there if layout.order is None else [None if at is None else there[at] for at in layout.order]

    def _laid_out(self, named: Sequence[Any], entries: list[dict[str, Any]]) -> _Layout:
        places = {name: place for place, name in enumerate(named)}
        wanted = [places.get(name) for name in self._names]
        at = [(place, _value_of(entries[place])) for place in wanted if place is not None]
        counted = iter(range(len(at)))
        order = None if len(at) == len(wanted) else [None if place is None else next(counted) for place in wanted]
        united = [(p, unit) for p, unit in zip(wanted, self._units, strict=True) if p is not None and unit is not None]
        return _Layout(at, order, [place for place, _ in united], [unit for _, unit in united])

    @staticmethod
    def _check_units(entries: list[dict[str, Any]], layout: _Layout) -> None:
        for at, unit in zip(layout.units_at, layout.units, strict=True):
            given = entries[at].get("u")
            if given is None or given.strip() != unit:
                raise ValueError(f"{entries[at]['n']} is in {given!r}, not in {unit!r}")


def _value_of(entry: dict[str, Any]) -> str:
    return next((where for where in VALUES if where in entry), "v")


def _texts(batch: pa.RecordBatch, column: str) -> list[bytes | None]:
    return _bytes(_column(batch, column))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column([column.casefold() for column in batch.schema.names].index(name.casefold()))


def _bytes(texts: pa.Array) -> list[bytes | None]:
    """Texts as bytes: whether they are UTF-8 at all is for the parser to say."""
    return texts.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]


def _record(text: bytes | None, longest: int) -> dict[str, Any]:
    if text is None:
        raise ValueError("there is nothing")
    if len(text) > longest:
        raise ValueError(f"it has {len(text)} bytes, and {longest} are allowed")
    begin = text.find(b"{")
    if begin < 0:
        raise ValueError("it has no brace")
    record = orjson.loads(text[begin:] if begin else text)
    if not isinstance(record, dict):
        raise TypeError("it is no object")
    return record


def _time(given: Any, limits: Sequence[int], needed: bool) -> int | None:
    if given is None:
        if needed:
            raise ValueError("it lacks its time, bt")
        return None
    time_ms = int(given)
    if not limits[0] <= time_ms < limits[1]:
        raise ValueError(f"its time {time_ms} is out of range")
    return time_ms


def _milliseconds(text: str) -> int:
    found = datetime.fromisoformat(text)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)


def _told(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]!r}"
    return " ".join(str(error).split())[:200]


def _columns(
    rows: Sequence[Sequence[Any]], fields: Sequence[tuple[str, pa.DataType]], bad: Bad
) -> list[tuple[str, pa.Array]]:
    by_field = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    return [(name, typed(name, values, kind, bad)) for (name, kind), values in zip(fields, by_field, strict=True)]


def _without_bad(batch: pa.RecordBatch, columns: list[tuple[str, pa.Array]], bad: Bad, options: ParseSenml) -> Made:
    """The new rows of those that are not bad."""
    arrays = replaced(batch, columns, [options.column]) if options.keep else [array for _, array in columns]
    if not bad:
        return Made(arrays)
    good = np.setdiff1d(np.arange(len(batch)), np.fromiter(bad, np.int64, len(bad)))
    kept = pa.array(good)
    return Made([array.take(kept) for array in arrays], good, sorted(bad.items()))


def parse_xml(options: ParseXml) -> Work:
    """The work of a parse_xml task.

    >>> work = parse_xml(ParseXml(columns="id bigint, name string", each="city", paths={"id": "@id"}))
    >>> made = work(
    ...     pa.record_batch({"value": ['<all><city id="1"><name>Ulm</name></city><city id="2"/></all>', "<a>"]})
    ... )
    >>> [column.to_pylist() for column in made.columns], made.bad
    ([[1, 2], ['Ulm', None]], [(1, 'no XML: no element found: line 1, column 3')])
    """
    fields = arrow_kinds(options.columns)
    paths = [_path(options.paths.get(name, name)) for name, _ in fields]
    required = [at for at, (name, _) in enumerate(fields) if name in options.required]

    def work(batch: pa.RecordBatch) -> Made:
        bad: Bad = {}
        rows: list[Sequence[Any]] = []
        origin: list[int] = []
        for place, text in enumerate(_texts(batch, options.column)):
            try:
                found = [[_at(element, *path) for path in paths] for element in _elements(text, options)]
                for row in found:
                    lacking = next((fields[at][0] for at in required if row[at] in (None, "")), None)
                    if lacking is not None:
                        raise ValueError(f"it lacks {lacking}")
            except (ValueError, ElementTree.ParseError) as error:
                bad[place] = f"no XML: {_told(error)}"
                continue
            rows += found
            origin += [place] * len(found)
        unfit: Bad = {}
        columns = _columns(rows, fields, unfit)
        for at, told in unfit.items():
            bad.setdefault(origin[at], f"no XML: {told}")
        places = np.array(origin, np.int64)
        kept = np.flatnonzero(~np.isin(places, np.fromiter(bad, np.int64, len(bad))))
        here, from_rows = pa.array(kept), places[kept]
        new = [(name, array.take(here)) for name, array in columns]
        if not options.keep:
            return Made([array for _, array in new], from_rows, sorted(bad.items()))
        kept_columns = replaced(batch.take(pa.array(from_rows)), new, [options.column])
        return Made(kept_columns, from_rows, sorted(bad.items()))

    return work


def _path(text: str) -> tuple[str, str | None]:
    """A path as that of an element and an attribute of it."""
    element, mark, attribute = text.rpartition("@")
    return (element.rstrip("/") or ".", attribute) if mark else (text, None)


def _elements(text: bytes | None, options: ParseXml) -> Iterator[ElementTree.Element]:
    if text is None:
        raise ValueError("there is nothing")
    if len(text) > options.longest:
        raise ValueError(f"it has {len(text)} bytes, and {options.longest} are allowed")
    if b"<!DOCTYPE" in text:
        raise ValueError("it declares a document type")
    root = ElementTree.fromstring(text)
    return iter([root]) if options.each is None else root.iterfind(options.each)


def _at(element: ElementTree.Element, path: str, attribute: str | None) -> str | None:
    found = element if path == "." else element.find(path)
    if found is None:
        return None
    return found.get(attribute) if attribute is not None else (found.text or "").strip()
