"""What running tasks make of streams, against computations of our own: windows, joins, user-defined work, routing."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from headgate.runtime.engine.engine import Engine
from tests.runtime.small import Rows, files, flow, memory, multiset, numbered, put, wait_for

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: float) -> str:
    return (BEGIN + timedelta(seconds=second)).isoformat()


def windowed(frame: pd.DataFrame) -> Rows:
    """Windows as the sink has them: starts and ends, key, number and sum."""
    outcome = frame.groupby(["start", "end", "k"]).agg(n=("v", "size"), total=("v", "sum")).reset_index()
    return [
        {"window_start": s.to_pydatetime(), "window_end": e.to_pydatetime(), "k": k, "n": int(n), "total": float(total)}
        for s, e, k, n, total in outcome.itertuples(index=False)
    ]


def placed(events: pd.DataFrame, size: int, slide: int) -> pd.DataFrame:
    """Each event once for every window of that size and slide (in seconds) that it lies in."""
    first = events["at"].dt.floor(f"{slide}s")
    copies = [events.assign(start=first - pd.Timedelta(seconds=slide * back)) for back in range(size // slide)]
    return pd.concat([copy.assign(end=copy["start"] + pd.Timedelta(seconds=size)) for copy in copies])


def sessions(events: pd.DataFrame, gap_s: int) -> pd.DataFrame:
    ordered = events.sort_values(["k", "at"])
    apart = ordered.groupby("k")["at"].diff() > pd.Timedelta(seconds=gap_s)
    number = apart.groupby(ordered["k"]).cumsum()
    grouped = ordered.groupby([ordered["k"], number])["at"]
    ends = grouped.transform("max") + pd.Timedelta(seconds=gap_s)
    return ordered.assign(start=grouped.transform("min"), end=ends)


def test_windows_against_pandas(engine: Engine, tmp_path: Path) -> None:
    seconds = [0, 1, 4, 9, 11, 12, 14, 30, 31, 47, 48, 59, 61, 75]
    events = [{"k": "ab"[i % 2], "v": float(i), "at": at(s)} for i, s in enumerate(seconds)]
    late = {"k": "a", "v": 100.0, "at": at(21)}  # within 10 s of the last one seen: not too late
    too_late = {"k": "a", "v": 1000.0, "at": at(5)}
    put(tmp_path / "in", "0", events[:7])
    kinds: dict[str, dict[str, Any]] = {
        "tumbling": {"size": "10s"},
        "sliding": {"size": "10s", "slide": "5s"},
        "session": {"size": "6s"},
    }
    aggregates = {"n": "count(*)", "total": "sum(v)"}
    source = files(tmp_path / "in", columns="k string, v double, at timestamp")
    flows = []
    for kind, options in kinds.items():
        config = {"time": "at", "kind": kind, "key": ["k"], "columns": aggregates, "late_by": "10s", **options}
        flows.append(flow(kind, source, {"type": "window", "config": config}, memory(kind)))
    engine.submit(*flows)
    engine.wait_until_idle()
    put(tmp_path / "in", "1", [{"k": "b", "v": 0.5, "at": at(26)}])
    engine.wait_until_idle()
    put(tmp_path / "in", "2", [late, too_late, *events[7:]])
    engine.wait_until_idle()
    put(tmp_path / "in", "3", [{"k": "end", "v": 0.0, "at": at(10_000)}])
    frame = pd.DataFrame([*events, {"k": "b", "v": 0.5, "at": at(26)}, late])
    frame["at"] = pd.to_datetime(frame["at"], utc=True, format="ISO8601")
    wanted = {
        "tumbling": windowed(placed(frame, 10, 10)),
        "sliding": windowed(placed(frame, 10, 5)),
        "session": windowed(sessions(frame, 6)),
    }
    for kind, rows in wanted.items():
        wait_for(lambda kind=kind, rows=rows: len(engine.memory.rows(kind)) >= len(rows), f"{kind} windows")  # type: ignore[misc]
        assert multiset(engine.memory.rows(kind)) == multiset(rows), kind


def test_both_sides_of_a_join_from_one_source(engine: Engine, tmp_path: Path) -> None:
    """The two sides have other columns, and are taken in by one fragment."""
    rows = [{"k": k, "what": what, "v": k * 2.0, "at": at(k)} for k in range(6) for what in ("ask", "bid")]
    put(tmp_path / "in", "0", rows)
    source = {"id": "in", **files(tmp_path / "in", columns="k long, what string, v double, at timestamp")}
    asks = {"id": "asks", "type": "select", "config": {"columns": ["k", "at"]}}
    bids = {"id": "bids", "type": "select", "config": {"columns": ["v", "k", "at"]}}
    config = {"on": ["k"], "time": ["at", "at"], "within": "1s"}
    engine.submit(
        flow(
            "both",
            source,
            {**asks, "inputs": [{"from": "in", "where": "what = 'ask'"}]},
            {**bids, "inputs": [{"from": "in", "where": "what = 'bid'"}]},
            {"id": "join", "type": "join", "config": config, "inputs": ["asks", "bids"]},
            memory("both"),
        )
    )
    engine.wait_until_idle()
    assert sorted((row["k"], row["v"]) for row in engine.memory.rows("both")) == [(k, k * 2.0) for k in range(6)]


def test_joins_against_pandas(engine: Engine, tmp_path: Path) -> None:
    orders = [{"o": i, "v": i * 1.5, "at": at(i)} for i in range(12)]
    payments = [{"o": i, "v": i * 2.0, "paid": at(i + (3 if i % 3 else 30))} for i in range(0, 12, 2)]
    put(tmp_path / "orders", "0", orders[:6])
    put(tmp_path / "payments", "0", payments[:2])
    left = {"id": "orders", **files(tmp_path / "orders", columns="o long, v double, at timestamp")}
    right = {"id": "payments", **files(tmp_path / "payments", columns="o long, v double, paid timestamp")}
    flows = []
    for kind in ("inner", "left"):
        config = {"on": ["o"], "kind": kind, "time": ["at", "paid"], "within": "10s", "late_by": "60s"}
        join = {"id": "join", "type": "join", "config": config, "inputs": ["orders", "payments"]}
        flows.append(flow(kind, left, right, join, memory(kind)))
    engine.submit(*flows)
    engine.wait_until_idle()
    put(tmp_path / "orders", "1", orders[6:])
    put(tmp_path / "payments", "1", payments[2:])
    engine.wait_until_idle()
    for number, second in enumerate((10_000, 20_000)):
        put(tmp_path / "orders", f"end{number}", [{"o": -1, "v": 0.0, "at": at(second)}])
        put(tmp_path / "payments", f"end{number}", [{"o": -2, "v": 0.0, "paid": at(second)}])
        engine.wait_until_idle()
    one, two = pd.DataFrame(orders), pd.DataFrame(payments).rename(columns={"v": "right_v"})
    both = one.merge(two, on="o")
    near = (pd.to_datetime(both["at"]) - pd.to_datetime(both["paid"])).abs() <= pd.Timedelta(seconds=10)
    inner = both[near]
    assert 0 < len(inner) < len(both)
    wanted = {"inner": inner, "left": one.merge(inner[["o", "right_v", "paid"]], on="o", how="left")}
    for kind, frame in wanted.items():
        partners = [
            None if missing else value for value, missing in zip(frame["right_v"], frame["right_v"].isna(), strict=True)
        ]
        pairs = list(zip(frame["o"], frame["v"], partners, strict=True))

        def outcome(kind: str = kind) -> list[tuple[Any, ...]]:
            return sorted((r["o"], r["v"], r["right_v"]) for r in engine.memory.rows(kind) if r["o"] >= 0)

        wait_for(lambda: len(outcome()) >= len(pairs), f"{kind} join")  # noqa: B023
        assert outcome() == sorted(pairs), kind


def test_user_defined_work_and_tasks_that_make_several_rows(engine: Engine, tmp_path: Path) -> None:
    rows = [{**row, "text": f"One two{row['id'] % 2}, ONE", "xs": [row["id"], 7]} for row in numbered(0, 10)]
    put(tmp_path / "in", "0", rows)
    source = files(tmp_path / "in", columns="id long, k string, v double, text string, xs array<long>")
    narrow = {"type": "select", "config": {"columns": ["id", "k", "v"]}}

    def python(over: str, function: str, **more: Any) -> dict[str, Any]:
        return {"type": "python", "config": {"function": f"tests.runtime.functions.{function}", "over": over, **more}}

    doubled = python("row", "twice", columns="id long, w double", options={"factor": 3})
    query = "select k, count(*) as n from `in` where id > 1 group by k"
    engine.submit(
        flow("rows", source, narrow, doubled, memory("row")),
        flow("pandas", source, narrow, python("pandas", "ranked"), memory("pandas")),
        flow("arrow", source, narrow, python("arrow", "shouted"), memory("arrow")),
        flow("sql", source, narrow, {"type": "sql", "config": {"query": query}}, memory("sql")),
        flow("explode", source, {"type": "explode", "config": {"column": "xs", "into": "x"}}, memory("explode")),
        flow("words", source, {"type": "tokenise", "config": {"column": "text"}}, memory("words")),
    )
    engine.wait_until_idle()
    assert len(engine.fragments) == 1
    small = numbered(0, 10)
    twice = [{"id": r["id"], "w": r["v"] * n} for r in small if r["id"] % 3 for n in (1, 3)]
    assert multiset(engine.memory.rows("row")) == multiset(twice)
    tenfold = [{**r, "v": r["v"] * 10} for r in small if r["id"] % 2 == 0]
    assert multiset(engine.memory.rows("pandas")) == multiset(tenfold)
    assert multiset(engine.memory.rows("arrow")) == multiset({**r, "k": r["k"].upper()} for r in small)
    counts = pd.DataFrame(small[2:]).groupby("k").size()
    assert multiset(engine.memory.rows("sql")) == multiset({"k": k, "n": int(n)} for k, n in counts.items())
    assert sorted((r["id"], r["x"]) for r in engine.memory.rows("explode")) == sorted(
        (r["id"], x) for r in rows for x in r["xs"]
    )
    assert sorted((r["id"], r["word"]) for r in engine.memory.rows("words")) == sorted(
        (r["id"], word) for r in rows for word in re.split(r"\W+", r["text"].lower()) if word
    )


def test_streams_interleave_are_routed_and_lead_back(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "one", "0", numbered(0, 6))
    put(tmp_path / "two", "0", numbered(100, 6))
    sources = [{"id": "one", **files(tmp_path / "one")}, {"id": "two", **files(tmp_path / "two")}]
    both = {"id": "both", "type": "union", "inputs": ["one", {"from": "two", "where": "id <> 103"}]}
    count = {"id": "n", "type": "count", "config": {"key": ["k"]}, "inputs": ["both"]}
    even = memory("even", inputs=[{"from": "both", "where": "id % 2 = 0"}])
    odd = memory("odd", inputs=[{"from": "both", "where": "id % 2 = 1"}])
    down = {
        "id": "down",
        "type": "derive",
        "config": {"columns": {"id": "id - 1"}},
        "inputs": [{"from": "one", "where": "id < 4"}, {"from": "down", "where": "id > 0", "feedback": True}],
    }
    engine.submit(
        flow("route", *sources, both, even, odd, count, memory("n", inputs=["n"])),
        flow("loop", sources[0], down, memory("loop", inputs=["down"])),
    )
    engine.wait_until_idle()
    put(tmp_path / "two", "1", numbered(106, 4))
    engine.wait_until_idle()
    rows = [r for r in [*numbered(0, 6), *numbered(100, 10)] if r["id"] != 103]
    assert multiset(engine.memory.rows("even")) == multiset(r for r in rows if r["id"] % 2 == 0)
    assert multiset(engine.memory.rows("odd")) == multiset(r for r in rows if r["id"] % 2 == 1)
    counted = engine.memory.rows("n")
    assert multiset({n: r[n] for n in ("id", "k", "v")} for r in counted) == multiset(rows)
    for key in ("k0", "k1", "k2"):
        mine = sorted(r["count"] for r in counted if r["k"] == key)
        assert mine == list(range(1, len(mine) + 1)), "one count over both sources"
    # 0..3 enter; each comes out one less, again and again, until it is 0 or below.
    wanted = sorted(left for start in range(4) for left in range(min(start - 1, 0), start))
    assert sorted(r["id"] for r in engine.memory.rows("loop")) == wanted


def test_pause_and_repartition_between_two_batches(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 5))
    put(tmp_path / "own", "0", numbered(0, 5))
    positive = {"id": "positive", "type": "filter", "config": {"where": "id >= 0"}}
    engine.submit(
        flow("stays", files(tmp_path / "in"), positive, memory("stays")),
        flow("rests", files(tmp_path / "in"), positive, memory("rests")),
        flow("alone", files(tmp_path / "own"), memory("alone")),
    )
    engine.wait_until_idle()
    queries = {name: fragment.query for name, fragment in engine.fragments.items()}
    engine.pause("rests")
    engine.pause("alone")
    engine.repartition("stays", "positive", 3)
    for folder in ("in", "own"):
        put(tmp_path / folder, "1", numbered(5, 5))
    engine.wait_until_idle()
    assert {status.name: status.state for status in engine.status()[0]} == {
        "stays": "running",
        "rests": "paused",
        "alone": "paused",
    }
    engine.resume("rests")
    engine.resume("alone")
    for folder in ("in", "own"):
        put(tmp_path / folder, "2", numbered(10, 5))
    engine.wait_until_idle()
    assert multiset(engine.memory.rows("stays")) == multiset(numbered(0, 15))
    for name in ("rests", "alone"):
        assert multiset(engine.memory.rows(name)) == multiset([*numbered(0, 5), *numbered(10, 5)]), name
    assert {name: fragment.query for name, fragment in engine.fragments.items()} == queries, "nothing was restarted"
