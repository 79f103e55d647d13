"""Joins as chains, against DuckDB's join of all rows that were in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.tasks.chains.join_work import JOIN_WORK
from headgate.tasks.windows import Join
from tests.tasks.chains.memory_chain import InMemoryChain, in_epochs

SECOND = 1_000_000
Kind = Literal["inner", "left", "right", "full"]
LEFT = pa.schema([("k", pa.string()), ("f", pa.float64()), ("at", pa.timestamp("us", "UTC")), ("x", pa.int64())])
RIGHT = pa.schema([("k", pa.string()), ("f", pa.float64()), ("when", pa.timestamp("us", "UTC")), ("X", pa.int64())])
Row = dict[str, Any]


def options_of(kind: Kind, within: int = 4, late_by: int = 0) -> Join:
    checked = Join(on=("k", "f"), time=("at", "when"), within=f"{within}s", late_by=f"{late_by}s")
    return checked.model_copy(update={"kind": kind})


def due(kind: Kind, within: int, left: Sequence[Row], right: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, rows in (("l", left), ("r", right)):
            connection.sql(f"create table {name} (k varchar, f double, t bigint, v bigint)")
            if rows:
                connection.executemany(
                    f"insert into {name} values (?, ?, ?, ?)", [(r["k"], r["f"], r["t"], r["v"]) for r in rows]
                )
        joined = connection.execute(f"""
            select coalesce(l.k, r.k), coalesce(l.f, r.f), l.t, l.v, r.t, r.v
            from l {kind} join r on l.k = r.k and l.f = r.f and r.t between l.t - {within} and l.t + {within}""")
        return Counter(joined.fetchall())


streams = st.lists(
    st.fixed_dictionaries(
        {
            "side": st.integers(0, 1),
            "k": st.sampled_from([None, "", "a", "b"]),
            "f": st.sampled_from([None, 0.0, -0.0, 1.5]),
            "step": st.integers(-12, 4),
            "no_time": st.integers(0, 20).map(lambda n: n == 0),
        }
    ),
    max_size=60,
)


def rows_of(stream: Sequence[Row]) -> list[Row]:
    made, now = [], 0
    for place, row in enumerate(stream):
        now += max(row["step"], -1) + 1
        made.append({**row, "t": None if row["no_time"] else now + min(row["step"], 0), "v": place})
    return made


def table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    times = [None if row["t"] is None else row["t"] * SECOND for row in rows]
    columns = [[row["k"] for row in rows], [row["f"] for row in rows], times, [row["v"] for row in rows]]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)


def seconds(column: pa.ChunkedArray) -> list[int | None]:
    return [None if value is None else value // SECOND for value in column.cast(pa.int64()).to_pylist()]


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
@settings(max_examples=20, deadline=None)
@given(
    stream=streams,
    sizes=st.lists(st.integers(0, 15), max_size=8),
    within=st.integers(0, 6),
    late_by=st.integers(0, 5),
    seed=st.integers(0, 1 << 30),
    few_hashes=st.booleans(),
)
def test_joins_of_random_streams(
    kind: Kind, stream: list[Row], sizes: list[int], within: int, late_by: int, seed: int, few_hashes: bool
) -> None:
    chain = InMemoryChain(JOIN_WORK, options_of(kind, within, late_by), [LEFT, RIGHT], seed, few_hashes)
    end = [{"side": side, "k": None, "f": None, "t": 10_000, "v": -1} for side in (0, 1)]
    accepted: tuple[list[Row], list[Row]] = ([], [])
    made: Counter[tuple[Any, ...]] = Counter()
    late = 0
    for rows in [*in_epochs(rows_of(stream), sizes), [], end, [], []]:
        for row in rows:
            in_time = row["t"] is None or chain.before is None or row["t"] * SECOND > chain.before
            accepted[row["side"]].extend([row] * in_time)
            late += not in_time
        output = chain.feed(*(table([r for r in rows if r["side"] == side], s) for side, s in ((0, LEFT), (1, RIGHT))))
        assert output.column_names == ["k", "f", "at", "x", "when", "right_X"]
        columns = [output["k"].to_pylist(), output["f"].to_pylist(), seconds(output["at"]), output["x"].to_pylist()]
        made.update(zip(*columns, seconds(output["when"]), output["right_X"].to_pylist(), strict=True))
    assert made == due(kind, within, *accepted)
    assert chain.late == late


def test_keys_of_different_width_are_equal() -> None:
    left, right = (schema.set(0, pa.field("k", kind)) for schema, kind in ((LEFT, pa.int32()), (RIGHT, pa.int64())))
    chain = InMemoryChain(JOIN_WORK, options_of("inner"), [left, right])
    row = {"k": 5, "f": 1.0, "t": 7, "v": 1}
    assert chain.feed(table([row], left), table([row], right)).to_pylist()[0]["k"] == 5


def test_keys_of_different_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="key 'k' is of type string on the left and int64 on the right; cast one"):
        InMemoryChain(JOIN_WORK, options_of("inner"), [LEFT, RIGHT.set(0, pa.field("k", pa.int64()))])
