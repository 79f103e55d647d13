"""Windows as chains, against a plain computation over accepted rows."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.chain_work import ChainWork
from headgate.tasks.chains.window_work import WINDOW_WORK, window_chain
from headgate.tasks.windows import EventTimeWindow
from tests.tasks.chains.memory_chain import InMemoryChain, in_epochs

SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("t", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("f", pa.float64()),
        ("v", pa.float64()),
        ("n", pa.int32()),
        ("d", pa.decimal128(8, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
    ]
)

Row = dict[str, Any]
Kind = Literal["tumbling", "sliding", "session"]


def known(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def or_none(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda values: function(values) if values else None


def last_of_max(rows: Sequence[Row]) -> Any:
    candidates = [row for row in rows if row["v"] is not None]
    best = max((row["v"] for row in candidates), default=None)
    return next((row["s"] for row in candidates if row["v"] == best), None)


def percentile(values: list[float], share: float) -> Any:
    ordered, at = sorted(values), share * (len(values) - 1)
    if not ordered:
        return None
    low = math.floor(at)
    high = math.ceil(at)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def skewness(values: list[float]) -> float | None:
    if len(values) == 0 or statistics.pvariance(values) == 0:
        return None
    mean = math.fsum(values) / len(values)
    third = math.fsum((value - mean) ** 3 for value in values) / len(values)
    return float(third / statistics.pvariance(values, mean) ** 1.5)


def correlation(rows: Sequence[Row]) -> float | None:
    pairs = [(row["v"], row["n"]) for row in rows if row["v"] is not None and row["n"] is not None]
    if len(pairs) < 2 or len({x for x, _ in pairs}) < 2 or len({y for _, y in pairs}) < 2:
        return None
    return statistics.correlation([x for x, _ in pairs], [y for _, y in pairs])


def rounded(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.000001"), "ROUND_HALF_UP")


AGGREGATES: dict[str, Callable[[Sequence[Row]], Any]] = {
    "count(*)": len,
    "count(v)": lambda rows: len(known(rows, "v")),
    "count(distinct s)": lambda rows: len(set(known(rows, "s"))),
    "count(distinct s, n)": lambda rows: len({(r["s"], r["n"]) for r in rows if None not in (r["s"], r["n"])}),
    "count_if(n > 2)": lambda rows: sum(n > 2 for n in known(rows, "n")),
    "sum(n)": lambda rows: or_none(sum)(known(rows, "n")),
    "sum(n) filter (where b)": lambda rows: or_none(sum)(known([row for row in rows if row["b"]], "n")),
    "sum(distinct n)": lambda rows: or_none(sum)(list(set(known(rows, "n")))),
    "sum(d)": lambda rows: or_none(sum)(known(rows, "d")),
    "avg(d)": lambda rows: or_none(lambda ds: rounded(sum(ds) / len(ds)))(known(rows, "d")),
    "avg(v)": lambda rows: or_none(lambda vs: math.fsum(vs) / len(vs))(known(rows, "v")),
    "avg(n)": lambda rows: or_none(lambda ns: sum(ns) / len(ns))(known(rows, "n")),
    "min(v)": lambda rows: min(known(rows, "v"), default=None),
    "max(s)": lambda rows: max(known(rows, "s"), key=lambda s: s.encode(), default=None),
    "max(d) - min(d)": lambda rows: or_none(lambda ds: max(ds) - min(ds))(known(rows, "d")),
    "max(t)": lambda rows: max(known(rows, "t")),
    "first(s)": lambda rows: rows[0]["s"],
    "last(s)": lambda rows: rows[-1]["s"],
    "last(s) ignore nulls": lambda rows: (known(rows, "s") or [None])[-1],
    "max_by(s, v)": last_of_max,
    "bool_and(b)": lambda rows: or_none(all)(known(rows, "b")),
    "bool_or(b)": lambda rows: or_none(any)(known(rows, "b")),
    "var_pop(v)": lambda rows: or_none(statistics.pvariance)(known(rows, "v")),
    "stddev(v)": lambda rows: statistics.stdev(known(rows, "v")) if len(known(rows, "v")) > 1 else None,
    "skewness(v)": lambda rows: skewness(known(rows, "v")),
    "corr(v, n)": correlation,
    "percentile(n, 0.3)": lambda rows: percentile(known(rows, "n"), 0.3),
    "median(v)": lambda rows: percentile(known(rows, "v"), 0.5),
    "collect_list(n)": lambda rows: sorted(known(rows, "n")),
    "collect_set(s)": lambda rows: sorted(set(known(rows, "s"))),
}


def times(row: Row) -> int:
    return int(row["t"])


class Reference:
    """Which rows are in which windows, kept for each epoch by hand."""

    def __init__(self, kind: str, size: int, slide: int, late_by: int, eager: bool) -> None:
        self.kind, self.size, self.slide, self.late_by, self.eager = kind, size, slide, late_by, eager
        self.open: defaultdict[Any, list[Row]] = defaultdict(list)
        self.before: int | None = None
        self.after: int | None = None
        self.late = 0

    def epoch(self, rows: Sequence[Row]) -> list[tuple[int, int, Any, list[Row]]]:
        """The windows that close, with their rows."""
        for row in rows:
            if row["t"] is None:
                continue
            windows = [window for window in self.windows_of(row["t"]) if self.before is None or window[1] > self.before]
            self.late += not windows
            for window in windows:
                self._add(window, row)
        if self.eager:
            self._see(rows)
        due = [] if self.after is None else [name for name in self.open if name[1] <= self.after]
        closed = [(*name, self.open.pop(name)) for name in due]
        self.before = self.after
        self._see(rows)
        return closed

    def _see(self, rows: Sequence[Row]) -> None:
        greatest = max((row["t"] for row in rows if row["t"] is not None), default=None)
        if greatest is not None:
            self.after = max(greatest - self.late_by, greatest - self.late_by if self.after is None else self.after)

    def windows_of(self, time: int) -> list[tuple[int, int]]:
        if self.kind == "session":
            return [(time, time + self.size)]
        first = time // self.slide * self.slide
        starts = range(first, first - self.size, -self.slide)
        return [(start, start + self.size) for start in starts if start + self.size > time]

    def _add(self, window: tuple[int, int], row: Row) -> None:
        key = (row["k"], row["f"])
        rows = [row]
        if self.kind == "session":
            start, end = window
            for other in [o for o in self.open if o[2] == key and o[0] <= end and start <= o[1]]:
                rows = sorted([*self.open.pop(other), *rows], key=lambda one: one["place"])
                start, end = min(start, other[0]), max(end, other[1])
            window = (start, end)
        self.open[(*window, key)].extend(rows)


rows_of_stream = st.lists(
    st.fixed_dictionaries(
        {
            "step": st.integers(-25, 12),
            "k": st.sampled_from([None, "", "é"]),
            "f": st.sampled_from([None, 1.5]),
            "v": st.none() | st.integers(-40, 40).map(lambda v: v / 4),
            "n": st.none() | st.integers(-3, 5),
            "d": st.none() | st.integers(-500, 500).map(lambda d: Decimal(d) / 100),
            "s": st.sampled_from([None, "", "x", "xy", "ö" * 9]),
            "b": st.none() | st.booleans(),
            "no_time": st.integers(0, 30).map(lambda n: n == 0),
        }
    ),
    max_size=60,
)


def timed(rows: Sequence[Row]) -> list[Row]:
    """Rows with times that mostly rise."""
    made, now = [], 0
    for place, row in enumerate(rows):
        now += max(row["step"], -3) + 2
        time = now + min(row["step"], 0)
        made.append({**row, "t": None if row["no_time"] else time * SECOND, "place": place})
    return made


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table({field.name: pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA})


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(sorted(value))
    return value


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(plain(one) == plain(other))


@pytest.mark.parametrize(
    ("kind", "size", "slide"),
    [
        ("tumbling", 10, 10),
        ("sliding", 10, 5),
        ("sliding", 10, 4),
        ("sliding", 7, 2),
        ("session", 4, 4),
        ("session", 15, 15),
    ],
)
@settings(max_examples=15, deadline=None)
@given(
    rows=rows_of_stream,
    sizes=st.lists(st.integers(0, 8), max_size=20),
    late_by=st.integers(0, 8),
    seed=st.integers(0, 1 << 30),
    few_hashes=st.booleans(),
    chosen=st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=6, unique=True),
)
def test_windows_of_random_streams(
    kind: Kind,
    size: int,
    slide: int,
    rows: list[Row],
    sizes: list[int],
    late_by: int,
    seed: int,
    few_hashes: bool,
    chosen: list[str],
) -> None:
    options = EventTimeWindow(
        time="t",
        kind=kind,
        size=f"{size}s",
        slide=f"{slide}s" if kind == "sliding" else None,
        key=("k", "f"),
        columns={f"c{place}": text for place, text in enumerate(chosen)},
        late_by=f"{late_by}s",
    )
    chain = InMemoryChain(WINDOW_WORK, options, [SCHEMA], seed, few_hashes)
    reference = Reference(kind, size * SECOND, slide * SECOND, late_by * SECOND, chain.eager)
    flush = {**dict.fromkeys(SCHEMA.names), "t": 10_000 * SECOND, "place": 10_000}
    for epoch in [*in_epochs(timed(rows), sizes), [], [flush], [], []]:
        output = chain.feed(table(epoch))
        made = {
            (start, end, row["k"], row["f"]): [row[f"c{place}"] for place in range(len(chosen))]
            for row, start, end in zip(
                output.to_pylist(),
                output["window_start"].cast(pa.int64()).to_pylist(),
                output["window_end"].cast(pa.int64()).to_pylist(),
                strict=True,
            )
        }
        assert len(made) == output.num_rows
        due = {
            (start, end, *key): [AGGREGATES[text](as_seen(members)) for text in chosen]
            for start, end, key, members in reference.epoch(epoch)
        }
        assert made.keys() == due.keys()
        for window, values in due.items():
            for text, one, other in zip(chosen, made[window], values, strict=True):
                if isinstance(one, list):
                    one = sorted(one)
                if text == "max(t)":
                    one = round(one.timestamp() * SECOND)
                assert same(one, other), (text, window, one, other)
    assert chain.late == reference.late


def test_pieces_of_a_session_that_are_merged_beside_an_epoch_count_once() -> None:
    """An epoch may prolong a piece that ends within its session, while that is merged with what it overlaps."""
    options = EventTimeWindow(time="t", kind="session", size="4s", columns={"n": "count(*)"})
    chain = InMemoryChain(WINDOW_WORK, options, [SCHEMA])
    chain.random.random = lambda: 0.9  # type: ignore[method-assign]
    ((_, _, state),) = chain.states
    made = []
    for seconds in (0, 3, 6, 9, 100, 200, 300):
        files = state.files["sessions"]
        some = list(files)
        merged = chain.chain.merge("sessions", pa.concat_tables(some)) if seconds == 9 else None
        row = {**dict.fromkeys(SCHEMA.names), "t": seconds * SECOND, "place": seconds}
        made += [one["n"] for one in chain.feed(table([row])).to_pylist()]
        if merged is not None:  # which began before the epoch
            files[: len(some)] = [merged]
    assert made == [4, 1]


def as_seen(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["place"]))


def test_a_window_needs_a_timestamp() -> None:
    options = EventTimeWindow(time="t", size="10s", columns={"n": "count(*)"})
    with pytest.raises(InputError, match="event time 't' is of type int64; cast it to timestamp before"):
        InMemoryChain(WINDOW_WORK, options, [pa.schema([("t", pa.int64())])])


@pytest.mark.parametrize(("kind", "size", "slide"), [("tumbling", 10, 10), ("sliding", 10, 4)])
@settings(max_examples=20, deadline=None)
@given(
    rows=rows_of_stream,
    sizes=st.lists(st.integers(0, 12), max_size=10),
    kept=st.integers(1, 30),
    seed=st.integers(0, 1 << 30),
    few_hashes=st.booleans(),
)
def test_late_rows_update_windows_for_some_time(
    kind: Kind, size: int, slide: int, rows: list[Row], sizes: list[int], kept: int, seed: int, few_hashes: bool
) -> None:
    columns = {"n": "count(*)", "total": "sum(n)"}
    sliding = f"{slide}s" if kind == "sliding" else None
    options = EventTimeWindow(time="t", kind=kind, size=f"{size}s", slide=sliding, key=("k", "f"), columns=columns)
    chain = InMemoryChain(updating(kept), options, [SCHEMA], seed, few_hashes)
    windows: defaultdict[Any, list[Row]] = defaultdict(list)
    reference = Reference(kind, size * SECOND, slide * SECOND, 0, chain.eager)
    late = 0
    for epoch in in_epochs(timed(rows), sizes):
        changed = set()
        for row in epoch:
            of_row = [] if row["t"] is None else reference.windows_of(row["t"])
            taking = [w for w in of_row if chain.before is None or w[1] + kept * SECOND > chain.before]
            late += bool(of_row) and not taking
            for window in taking:
                windows[(*window, row["k"], row["f"])].append(row)
                changed.add((*window, row["k"], row["f"]))
        before = chain.before
        output = chain.feed(table(epoch))
        due = {w for w in changed if before is not None and w[1] <= before}
        if chain.before is not None:
            due |= {w for w in windows if w[1] <= chain.before and (before is None or w[1] > before)}
        starts, ends = (output[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end"))
        made = {
            (start, end, row["k"], row["f"]): (row["n"], row["total"])
            for start, end, row in zip(starts, ends, output.to_pylist(), strict=True)
        }
        assert output.num_rows == len(made)
        assert made == {w: (len(windows[w]), or_none(sum)(known(windows[w], "n"))) for w in due}
    assert chain.late == late


def updating(seconds: int) -> ChainWork:
    """Windows that are updated by late rows."""

    return replace(WINDOW_WORK, start=lambda options, schemas: window_chain(options, schemas, seconds * SECOND))
