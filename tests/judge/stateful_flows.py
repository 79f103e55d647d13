"""Random dataflows of windows and joins, and what each of their sinks must hold, computed with plain Python.

All read one folder. Rows have null keys, null values and null times; most are out of order by less than every task
waits for, so that they are in time however they are cut into epochs. A few are *old*: a day before all others. Whoever
has put out anything before they come must not count them; others may have read them together with the first rows.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.judge.flows import Flow
from tests.judge.history import Row

__all__ = [
    "KINDS",
    "Part",
    "StatefulFlow",
    "expected",
    "is_of_old",
    "is_old",
    "known_by",
    "random_flow",
    "row_of",
    "values",
]

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
OLD = BEGINNING - timedelta(hours=12)
"""Rows before that are old."""

COLUMNS = "id bigint, k string, n int, v double, at timestamp, side string"
JITTER_S, LATE_BY = 15.0, "40s"
LATE_S, LATE_BEHIND_JOIN_S = 40.0, 120.0
TOTALS = {"c": "count(*)", "cv": "count(v)", "s": "sum(v)", "span": "max(v) - min(v)", "first": "min(id)"}
KINDS = ("tumbling", "sliding", "session", "inner", "left", "twice", "joined")
KEYS: tuple[tuple[str, ...], ...] = (("k",), ("n",), ("k", "n"), ())

Made = Mapping[tuple[Any, ...], tuple[Any, ...]]
"""Rows that come out, by what each is known by."""


def row_of(rnd: random.Random, number: int, seconds_later: float, is_old: bool) -> dict[str, Any]:
    """A row of the source."""
    seconds = number * 0.1 + seconds_later + (0.0 if seconds_later else rnd.uniform(-JITTER_S, JITTER_S))
    # Sinks write milliseconds.
    at = BEGINNING + timedelta(milliseconds=round(1_000 * seconds) - (86_400_000 if is_old else 0))
    return {
        "id": number,
        "k": None if rnd.random() < 0.1 else rnd.choice(["a", "b", "ä", "", "long key", "f"]),
        "n": None if rnd.random() < 0.1 else rnd.randrange(3),
        "v": None if rnd.random() < 0.1 else float(rnd.randrange(-50, 100)),
        "at": None if rnd.random() < 0.03 and not seconds_later else at.isoformat(),
        "side": "lr"[number % 2] if seconds_later else rnd.choice("lr"),
    }


@dataclass(frozen=True, slots=True)
class Part:
    """One output: its tasks, by the kind of it."""

    kind: str
    size_ms: int
    key: tuple[str, ...]

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """The tasks; the last is called by the name."""
        size, late = f"{self.size_ms}ms", {"late_by": LATE_BY}
        left, right = ({"from": "read", "where": f"side = '{side}'"} for side in "lr")
        on = {"on": list(self.key or ("k",)), "time": ["at", "at"], "within": size, **late}
        windowed = {"time": "at", "size": size, "key": list(self.key), "columns": TOTALS, **late}
        if self.kind in ("inner", "left"):
            return [{"id": name, "type": "join", "config": {**on, "kind": self.kind}, "inputs": [left, right]}]
        if self.kind == "joined":
            behind = {**windowed, "columns": {"c": "count(*)", "s": "sum(right_v)"}, "late_by": "120s"}
            return [
                {"id": f"{name}_pairs", "type": "join", "config": on, "inputs": [left, right]},
                {"id": name, "type": "window", "config": behind, "inputs": [f"{name}_pairs"]},
            ]
        if self.kind == "twice":
            columns = {"c": "sum(c)", "m": "count(*)"}
            behind = {"time": "window_end", "size": f"{3 * self.size_ms}ms", "key": list(self.key), "columns": columns}
            return [
                {"id": f"{name}_first", "type": "window", "config": windowed, "inputs": ["read"]},
                {"id": name, "type": "window", "config": behind, "inputs": [f"{name}_first"]},
            ]
        more = {"kind": self.kind, **({"slide": f"{self.size_ms // 2}ms"} if self.kind == "sliding" else {})}
        return [{"id": name, "type": "window", "config": {**windowed, **more}, "inputs": ["read"]}]


@dataclass(frozen=True, slots=True)
class StatefulFlow(Flow):
    """A dataflow of windows and joins; its output ``rows`` says which rows it has got."""

    parts: tuple[Part, ...] = ()

    def document(self, folder: Path) -> dict[str, Any]:
        config = {"path": str(folder / "in"), "columns": COLUMNS, "files_per_batch": 4}
        tasks: list[dict[str, Any]] = [{"id": "read", "type": "read_files", "config": config}]
        for output in self.outputs:
            made = [] if output == "rows" else self.parts[int(output[1:])].tasks(output)
            path = {"path": str(self.sink(folder, output))}
            last = made[-1]["id"] if made else "read"
            tasks += [*made, {"id": f"write_{output}", "type": "write_files", "config": path, "inputs": [last]}]
        begins = {"start": self.start} if self.start else {}
        return {"name": self.name, "owner": self.owner, **begins, "tasks": tasks}


def random_flow(
    rnd: random.Random, name: str, start: str = "", kinds: Sequence[str] = (), more: int = 0
) -> StatefulFlow:
    """A dataflow of one to three outputs; with ``more`` milliseconds, windows that no other dataflow has."""
    kinds = kinds or [rnd.choice(KINDS) for _ in range(rnd.choice([1, 1, 2, 3]))]
    parts = tuple(Part(kind, 2_000 * rnd.choice([1, 2, 5]) + more, rnd.choice(KEYS)) for kind in kinds)
    outputs = ("rows", *(f"p{number}" for number in range(len(parts))))
    return StatefulFlow(name, rnd.choice(["dan", "eve"]), outputs, name, start, parts)


# what comes out


def known_by(part: Part, row: Row) -> tuple[Any, ...]:
    """What a row of an output is known by."""
    if part.kind in ("inner", "left"):
        return row["id"], row.get("right_id")
    return _time(row["window_start"]), _time(row["window_end"]), *(row.get(name) for name in part.key)


def values(part: Part, row: Row) -> tuple[Any, ...]:
    """What else is in it."""
    if part.kind in ("inner", "left"):
        return row.get("v"), row.get("right_v"), row.get("k"), row.get("n")
    names = {"joined": ("c", "s"), "twice": ("c", "m")}.get(part.kind, tuple(TOTALS))
    return tuple(row.get(name) for name in names)


def is_of_old(part: Part, known: tuple[Any, ...], old: Collection[int]) -> bool:
    """Whether a row that comes out is made of old rows, of which these are the numbers."""
    return known[0] in old if part.kind in ("inner", "left") else known[1] < OLD


def is_old(row: Row) -> bool:
    """Whether a row of the source is old."""
    at = _time(row["at"])
    return at is not None and at < OLD


def expected(part: Part, rows: Sequence[Row]) -> Made:
    """What an output must hold, if it has got these rows and no old ones."""
    rows = [{**row, "at": _time(row["at"])} for row in rows]
    span = timedelta(milliseconds=part.size_ms)
    if part.kind in ("inner", "left", "joined"):
        pairs = _joined(part, rows, _least([_mark(_side(rows, side), LATE_S) for side in "lr"]))
        if part.kind != "joined":
            return {
                (one["id"], two["id"] if two else None): (one["v"], two["v"] if two else None, one["k"], one["n"])
                for one, two in pairs
            }
        both = [{**one, "s": two["v"]} for one, two in pairs if two is not None]
        mark = _mark(both, LATE_BEHIND_JOIN_S)
        return {
            known: (len(some), _sum(row["s"] for row in some))
            for known, some in _windows(both, span, span, part.key).items()
            if _is_over(known, mark)
        }
    mark = _mark(rows, LATE_S)
    slide = span / 2 if part.kind == "sliding" else span
    windows = _sessions(rows, span, part.key) if part.kind == "session" else _windows(rows, span, slide, part.key)
    closed = {known: some for known, some in windows.items() if _is_over(known, mark)}
    if part.kind != "twice":
        return {known: _totals(some) for known, some in closed.items()}
    firsts = [
        {"at": end, "c": len(some), **dict(zip(part.key, key, strict=True))} for (_, end, *key), some in closed.items()
    ]
    mark = _mark(firsts, 0.0)
    return {
        known: (sum(row["c"] for row in some), len(some))
        for known, some in _windows(firsts, 3 * span, 3 * span, part.key).items()
        if _is_over(known, mark)
    }


def _totals(rows: Sequence[Row]) -> tuple[Any, ...]:
    values = [row["v"] for row in rows if row["v"] is not None]
    span = max(values) - min(values) if values else None
    return len(rows), len(values), _sum(values), span, min(row["id"] for row in rows)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _is_over(known: tuple[Any, ...], mark: datetime | None) -> bool:
    return mark is not None and known[1] <= mark


def _mark(rows: Sequence[Row], late_s: float) -> datetime | None:
    times = [row["at"] for row in rows if row["at"] is not None]
    return max(times) - timedelta(seconds=late_s) if times else None


def _least(marks: Sequence[datetime | None]) -> datetime | None:
    known = [mark for mark in marks if mark is not None]
    return min(known) if len(known) == len(marks) else None


def _side(rows: Sequence[Row], side: str) -> list[Row]:
    return [row for row in rows if row["side"] == side]


def _windows(
    rows: Sequence[Row], size: timedelta, slide: timedelta, key: Sequence[str]
) -> Mapping[tuple[Any, ...], list[Row]]:
    windows: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["at"] is None:
            continue
        since = row["at"] - datetime(1970, 1, 1, tzinfo=UTC)
        start = row["at"] - since % slide
        while start > row["at"] - size:
            windows[start, start + size, *(row[name] for name in key)].append(row)
            start -= slide
    return windows


def _sessions(rows: Sequence[Row], gap: timedelta, key: Sequence[str]) -> Mapping[tuple[Any, ...], list[Row]]:
    by_key: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["at"] is not None:
            by_key[tuple(row[name] for name in key)].append(row)
    sessions = {}
    for known, some in by_key.items():
        some.sort(key=lambda row: row["at"])
        begins = [at for at in range(len(some)) if at == 0 or some[at]["at"] > some[at - 1]["at"] + gap]
        for begin, end in pairwise([*begins, len(some)]):
            sessions[some[begin]["at"], some[end - 1]["at"] + gap, *known] = some[begin:end]
    return sessions


def _joined(part: Part, rows: Sequence[Row], mark: datetime | None) -> list[tuple[Row, Row | None]]:
    """Pairs; of a left join also rows that have none, once none can come any more."""
    on, within = part.key or ("k",), timedelta(milliseconds=part.size_ms)
    right: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in _side(rows, "r"):
        right[tuple(row[name] for name in on)].append(row)
    pairs: list[tuple[Row, Row | None]] = []
    for row in _side(rows, "l"):
        key = tuple(row[name] for name in on)
        can = row["at"] is not None and None not in key
        mates = [two for two in right[key] if can and two["at"] is not None and abs(two["at"] - row["at"]) <= within]
        pairs += [(row, two) for two in mates]
        if part.kind == "left" and not mates and (not can or (mark is not None and row["at"] + within <= mark)):
            pairs.append((row, None))
    return pairs


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
