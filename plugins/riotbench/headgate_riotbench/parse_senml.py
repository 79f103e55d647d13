"""The task type parse_senml: SenML records into columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, Field

from headgate.errors import BadValue, shorten
from headgate.model.schema import Column, Schema
from headgate.model.task_type import ColumnName, TaskType
from headgate.model.work import BatchFunction, BatchResult, BatchTarget, BatchWork
from headgate.tasks.batch import column_of
from headgate.tasks.heavy import np, orjson, pa, pc
from headgate_riotbench.parsed import ParserConfig, as_bytes, reason_of, typed_columns, without_failed
from headgate_riotbench.records import Failed, arrow_kinds, time_type
from headgate_riotbench.uniform_records import Frame, Marked, frame_of

__all__ = ["FEW", "UNREADABLE", "ParseSenml", "parse_senml"]


VALUES = ("v", "sv", "vs", "bv", "vb")
"""Where a SenML entry keeps its value: a number, a text, a truth; as the draft and as RFC 8428 call them."""

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What reading a record that is none may raise."""

FRAMES, TRIES, TRIED = 4, 8, 20
"""How many frames are known at most, how often one is looked for, and among how many records."""

FEW = 256
"""Fewer records than this are sooner read one by one than looked at together."""

Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

LAYOUTS = 1_000
"""How many orders of fields are remembered for a batch."""


def _checked_date(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise BadValue(f"{shorten(text)} is not a date", "such as 2026-01-01") from None
    return text


DateText = Annotated[str, AfterValidator(_checked_date)]


class ParseSenml(ParserConfig):
    """Parse a SenML record into columns, one for each measurement.

    A record is ``{"bt": 1422748800000, "e": [{"n": "temperature", "u": "far", "v": "8"}, ...]}``: ``v`` holds numbers,
    also written as texts, ``sv`` or ``vs`` texts, ``bv`` or ``vb`` truths; ``bt`` is in milliseconds since 1970. What
    stands before the first brace, as in RIoTBench's files, is passed over. A record that is no SenML, lacks a required
    field, has another unit than ``units`` says, a time outside the limits, a value of another type, or is too long,
    goes where ``on_error`` says.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "columns": "source string, temperature double, humidity double",
        "required": ["source"],
        "units": {"temperature": "far"},
    }

    time: ColumnName | None = Field("time", description="The name of the column for the record's time, bt.")
    units: dict[ColumnName, str] = Field(default_factory=dict, description="The unit that a field must have, if any.")
    earliest: DateText = Field("1970-01-01", description="A time before this is out of range.")
    latest: DateText = Field("2100-01-01", description="A time from this on is out of range.")

    def made(self) -> Schema:
        fields = Schema.parse(self.columns)
        return fields if self.time is None else Schema((Column(self.time, "timestamp"), *fields.columns))


def parse_senml(options: ParseSenml, target: BatchTarget | None = None) -> BatchFunction:
    """The work of a parse_senml task.

    >>> work = parse_senml(ParseSenml(columns="t double", time=None))
    >>> batch = pa.record_batch({"value": ['{"e":[{"n":"t","v":"21.5"}],"bt":0}', "oops"]})
    >>> made = work(batch)
    >>> made.columns[0].to_pylist(), made.failed
    ([21.5], [(1, 'no SenML: it has no brace')])
    """
    del target
    reader = _Senml(options)

    def work(batch: pa.RecordBatch) -> BatchResult:
        columns, failed = reader.read(column_of(batch, options.column))
        return without_failed(batch, columns, failed, options)

    return work


class _Senml:
    """Reads records of the same layout together (:mod:`headgate_riotbench.uniform_records`), the others one by one."""

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

    def read(self, texts: pa.Array) -> tuple[list[tuple[str, pa.Array]], Failed]:
        """The columns of some texts, and which of them cannot be read."""
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
        unfit: Failed = {}
        if len(left):
            slow, unfit = self._one_by_one(texts.take(pa.array(left)))
            parts.append([column for _, column in slow])
            places.append(left)
        names = [*([] if self.options.time is None else [self.options.time]), *self.names]
        if len(parts) == 1:
            return list(zip(names, parts[0], strict=True)), {}
        order = pa.array(np.argsort(np.concatenate(places)))
        merged = [pa.concat_arrays(column).take(order) for column in zip(*parts, strict=True)]
        return list(zip(names, merged, strict=True)), {int(left[at]): reason for at, reason in unfit.items()}

    def _learn(self, texts: pa.Array, left: Places) -> bool:
        """Take the frame of the first record that can be read of those that are left."""
        if len(self.frames) == FRAMES or not self.tries:
            return False
        self.tries -= 1
        layouts = _Layouts(self.names, self.units)
        for text in as_bytes(texts.take(pa.array(left[:TRIED]))):
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
        except pa.ArrowInvalid:  # not a number: reading records one by one names the one
            return [], rows[:0]
        if any(pc.all(pc.is_finite(c)).as_py() is False for c in columns if pa.types.is_floating(c.type)):
            return [], rows[:0]
        good = pc.and_(pc.less_equal(self.limits[0], times), pc.less(times, self.limits[1]))
        for at in self.required:
            if pa.types.is_string(columns[at].type):
                good = pc.and_(good, pc.greater(pc.binary_length(columns[at]), 0))
        if self.options.time is not None:
            columns.insert(0, pc.multiply(times, 1_000).cast(time_type()))
        kept = good.to_numpy(zero_copy_only=False)
        if not kept.all():
            return [column.filter(good) for column in columns], rows[kept]
        return columns, rows

    def _one_by_one(self, texts: pa.Array) -> tuple[list[tuple[str, pa.Array]], Failed]:
        failed: Failed = {}
        times: list[int | None] = []
        rows: list[Sequence[Any]] = []
        nothing: list[Any] = [None] * len(self.names)
        layouts = _Layouts(self.names, self.units)
        for place, text in enumerate(as_bytes(texts)):
            try:
                record = _record(text, self.options.longest)
                time_ms = _time(record.get("bt"), self.limits, self.needs_time)
                row = layouts.values(record["e"])
                for at in self.required:
                    if row[at] is None or row[at] == "":
                        raise ValueError(f"it lacks {self.names[at]}")
            except UNREADABLE as error:
                failed[place] = f"no SenML: {reason_of(error)}"
                time_ms, row = None, nothing
            times.append(time_ms)
            rows.append(row)
        columns = typed_columns(rows, self.fields, failed)
        if self.options.time is not None:
            moments = pa.array([None if t is None else t * 1_000 for t in times], pa.int64()).cast(time_type())
            columns.insert(0, (self.options.time, moments))
        return columns, failed


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
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


PARSE_SENML = TaskType("parse_senml", ParseSenml, package="headgate-riotbench", work=BatchWork(parse_senml))
