"""Keyed tasks as chains, against a plain computation from row to row."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.chain_work import Axis, ChainWork
from headgate.tasks.chains import keyed_work as works
from headgate.tasks.chains.kernels import CountKernel, FirstKernel
from headgate.tasks.chains.keyed import TimeToLive
from headgate.tasks.chains.rows import microseconds
from headgate.tasks.keyed import Count, Dedup, Difference, KalmanFilter, MovingAverage, Running, TopK
from headgate.tasks.keyed_base import KeyedConfig
from tests.tasks.chains.memory_chain import InMemoryChain, in_epochs

SECOND = 1_000_000
SCHEMA = pa.schema([("k", pa.string()), ("f", pa.float64()), ("v", pa.float64()), ("t", pa.timestamp("us", "UTC"))])
KEY = ("k", "f")

Row = dict[str, Any]
Values = list[float]
New = Mapping[str, Any] | None
"""The new columns of a row, or that it does not pass."""


def known(seen: Sequence[float | None]) -> Values:
    return [value for value in seen if value is not None]


def counted(seen: Sequence[float | None]) -> New:
    return {"count": len(seen)}


def first(seen: Sequence[float | None]) -> New:
    return {} if len(seen) == 1 else None


def average(seen: Sequence[float | None]) -> New:
    last = known(seen)[-3:]
    return {"average": None if seen[-1] is None else math.fsum(last) / len(last)}


def difference(seen: Sequence[float | None]) -> New:
    values = known(seen)
    return {"difference": None if seen[-1] is None or len(values) < 3 else values[-1] - values[-3]}


def aggregates(seen: Sequence[float | None]) -> New:
    values = known(seen)
    some = {"low": min(values), "high": max(values), "total": math.fsum(values)} if values else {}
    return {"n": len(values), "mean": math.fsum(values) / len(values) if values else None} | {
        name: some.get(name) for name in ("low", "high", "total")
    }


def kalman(seen: Sequence[float | None]) -> New:
    estimate, error = 0.0, 30.0
    for value in known(seen):
        prior = error + 0.125
        gain = prior / (prior + 0.32)
        estimate, error = estimate + gain * (value - estimate), (1 - gain) * prior
    return {"smoothed": None if seen[-1] is None else estimate}


def rank(seen: Sequence[float | None]) -> New:
    if seen[-1] is None:
        return None
    place = 1 + sum(value >= seen[-1] for value in known(seen[:-1]))
    return {"rank": place} if place <= 2 else None


RUNNING = Running(
    key=KEY, column="v", columns={"n": "count", "total": "sum", "mean": "mean", "low": "min", "high": "max"}
)
CASES: list[tuple[ChainWork, KeyedConfig, Callable[[Sequence[float | None]], New]]] = [
    (works.COUNT_WORK, Count(key=KEY), counted),
    (works.DEDUP_WORK, Dedup(key=KEY), first),
    (works.MOVING_AVERAGE_WORK, MovingAverage(key=KEY, column="v", size=3), average),
    (works.DIFFERENCE_WORK, Difference(key=KEY, column="v", lag=2), difference),
    (works.RUNNING_WORK, RUNNING, aggregates),
    (works.KALMAN_WORK, KalmanFilter(key=KEY, column="v"), kalman),
    (works.TOP_K_WORK, TopK(key=KEY, column="v", size=2), rank),
]

streams = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from([None, "", "a", "b", *map(str, range(20))]),
            "f": st.sampled_from([None, 0.0, 1.5]),
            "v": st.none() | st.integers(-20, 20).map(lambda v: v / 4),
            "t": st.integers(0, 100).map(lambda t: t * SECOND),
        }
    ),
    max_size=120,
)


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table([pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA], SCHEMA)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return bool(one == other)


def by_key(rows: Sequence[Row]) -> dict[Any, list[Row]]:
    grouped = defaultdict(list)
    for row in rows:
        grouped[row["k"], row["f"]].append(row)
    return grouped


@pytest.mark.parametrize(("work", "options", "reference"), CASES, ids=lambda case: type(case).__name__)
@settings(max_examples=15, deadline=None)
@given(
    rows=streams,
    sizes=st.lists(st.integers(0, 40), max_size=6),
    seed=st.integers(0, 1 << 30),
    few_hashes=st.booleans(),
)
def test_keyed_tasks_on_random_streams(
    work: ChainWork,
    options: KeyedConfig,
    reference: Callable[[Sequence[float | None]], New],
    rows: list[Row],
    sizes: list[int],
    seed: int,
    few_hashes: bool,
) -> None:
    chain = InMemoryChain(work, options, [SCHEMA], seed, few_hashes)
    seen: defaultdict[Any, list[float | None]] = defaultdict(list)
    for epoch in in_epochs(rows, sizes):
        output = chain.feed(table(epoch)).to_pylist()
        due = []
        for row in epoch:
            seen[row["k"], row["f"]].append(row["v"])
            if (new := reference(seen[row["k"], row["f"]])) is not None:
                due.append({"k": row["k"], "f": row["f"], "v": row["v"], **new})
        made, wanted = by_key(output), by_key(due)
        assert made.keys() == wanted.keys()
        for key, expected in wanted.items():
            assert len(made[key]) == len(expected)
            for one, other in zip(made[key], expected, strict=True):
                for name, value in other.items():
                    assert same(one[name], value), (key, name, one, other)


def test_one_key_of_many_rows_is_as_many_keys_of_few() -> None:
    values = [float(place % 7) for place in range(500)]
    chain = InMemoryChain(works.KALMAN_WORK, KalmanFilter(key=KEY, column="v"), [SCHEMA])
    rows = [{"k": "a", "f": None, "v": value, "t": 0} for value in values]
    output = chain.feed(table(rows))["smoothed"].to_pylist()
    assert output[-1] == pytest.approx((kalman(values) or {})["smoothed"], rel=1e-12)


def seen_keys(work: ChainWork, options: KeyedConfig, epochs: Sequence[tuple[int, str, int]]) -> list[list[Row]]:
    chain = InMemoryChain(work, options, [SCHEMA])
    made = []
    for clock, key, time in epochs:
        row = {"k": key, "f": 1.0, "v": 1.0, "t": time * SECOND}
        made.append(chain.feed(table([row]), clock=clock * SECOND).to_pylist())
    return made


def test_dedup_forgets_a_key_some_time_after_its_first_row() -> None:
    work = works.keyed_work(
        lambda _: FirstKernel(),
        life=lambda _: TimeToLive(Axis.EVENT, microseconds("10s"), from_first=True),
        time=lambda _: "t",
        late_by=lambda _: microseconds("2s"),
    )
    epochs = [(0, "a", 0), (0, "a", 5), (0, "b", 12), (0, "a", 6), (0, "a", 13), (0, "b", 20), (0, "a", 14)]
    passed = [bool(rows) for rows in seen_keys(work, Dedup(key=KEY), epochs)]
    # The first row's life ends at 10: the watermark is at 10 after the row at 12, before the second next epoch.
    assert passed == [True, False, True, False, True, False, False]


def test_a_count_begins_anew_when_its_key_was_not_seen_for_long() -> None:
    work = works.keyed_work(lambda _: CountKernel(), life=lambda _: TimeToLive(Axis.CLOCK, microseconds("10s")))
    epochs = [(0, "a", 0), (9, "a", 0), (18, "a", 0), (28, "a", 0), (29, "a", 0)]
    counts = [rows[0]["count"] for rows in seen_keys(work, Count(key=KEY), epochs)]
    assert counts == [1, 2, 3, 1, 2]
