"""Windows and joins in a running engine: they come and go, are replaced and resized, and no query is started for it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.compile.plan import Kind
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import Rows, beside, files, flow, memory, multiset, put, wait_for

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "k string, v double, at timestamp"


def window(name: str, folder: Path, *behind: dict[str, Any], **options: Any) -> Any:
    config = {"time": "at", "size": "10s", "key": ["k"], "columns": {"n": "count(*)"}, **options}
    source = {"id": "src", **files(folder, columns=COLUMNS)}
    return flow(name, source, {"type": "window", "config": config}, *behind, memory(name))


def events(first: int, last: int, step: int = 1) -> Rows:
    """An event a second, of five keys."""
    return [
        {"k": "abcde"[s % 5], "v": float(s), "at": (BEGIN + timedelta(seconds=s)).isoformat()}
        for s in range(first, last, step)
    ]


def tumbled(rows: Rows, size: int = 10) -> Rows:
    """How many rows of each key there are in each window."""
    counts: Counter[tuple[str, datetime]] = Counter()
    for row in rows:
        at = datetime.fromisoformat(row["at"])
        start = at - timedelta(seconds=(at - BEGIN).total_seconds() % size)
        counts[row["k"], start] += 1
    return [
        {"window_start": start, "window_end": start + timedelta(seconds=size), "k": k, "n": n}
        for (k, start), n in counts.items()
    ]


def closed(rows: Rows, last: int) -> Rows:
    """The windows that an event in that second has closed."""
    return [row for row in rows if row["window_end"] <= BEGIN + timedelta(seconds=last)]


def chained(engine: Engine) -> list[Any]:
    return [f for f in engine.fragments.values() if f.fragment.kind is Kind.CHAINED]


def test_windows_come_and_go_and_their_query_runs_on(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", events(0, 40))
    engine.submit(window("one", folder))
    engine.wait_until_idle()
    (fragment,) = chained(engine)
    query = fragment.query.runId
    assert multiset(engine.memory.rows("one")) == multiset(closed(tumbled(events(0, 40)), 39))
    behind = {"type": "filter", "config": {"where": "n > 1"}}
    two = window("two", folder, behind, columns={"n": "count(*)", "m": "count(*)"})
    engine.submit(beside(two, "one"))
    put(folder, "1", events(40, 80))
    engine.wait_until_idle()
    assert [f.query.runId for f in chained(engine)] == [query], "no query was started"
    assert multiset(engine.memory.rows("one")) == multiset(closed(tumbled(events(0, 80)), 79))
    late = closed(tumbled(events(40, 80)), 79)
    assert multiset(engine.memory.rows("two")) == multiset([{**row, "m": row["n"]} for row in late if row["n"] > 1])
    engine.withdraw("one")
    put(folder, "2", events(80, 120))
    engine.wait_until_idle()
    later = [{**row, "m": row["n"]} for row in closed(tumbled(events(40, 120)), 119) if row["n"] > 1]
    assert multiset(engine.memory.rows("two")) == multiset(later)
    assert multiset(engine.memory.rows("one")) == multiset(closed(tumbled(events(0, 80)), 79))
    assert [f.query.runId for f in chained(engine)] == [query]
    wait_for(lambda: len(fragment.topics()) == 1, "the topic of the window that is gone")


def test_state_goes_on_where_it_was_after_a_restart_and_in_more_ranges(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", events(0, 45))
    engine = Engine(tmp_path / "state", spark=spark, trigger_s=0.1)
    engine.submit(window("one", folder))
    engine.wait_until_idle()
    engine.stop()
    engine = Engine(tmp_path / "state", spark=spark, trigger_s=0.1)
    try:
        for count, (first, last) in enumerate([(45, 62), (62, 63), (63, 91), (91, 120)], start=2):
            put(folder, str(first), events(first, last))
            engine.wait_until_idle()
            engine.repartition("one", "t1", count)
        assert multiset(engine.memory.rows("one")) == multiset(
            [row for row in closed(tumbled(events(0, 120)), 119) if row["window_end"] > BEGIN + timedelta(seconds=44)]
        )
        (fragment,) = chained(engine)
        (kept,) = fragment._commit().chains
        assert len(kept.parts) == 4
    finally:
        engine.stop()


def test_one_that_raises_rests_and_the_others_go_on(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", events(0, 40))
    too_much = window("much", folder, columns={"s": "sum(9000000000000000000)"})
    engine.submit(window("one", folder), too_much)
    engine.wait_until_idle()
    assert multiset(engine.memory.rows("one")) == multiset(closed(tumbled(events(0, 40)), 39))
    assert engine.memory.rows("much") == []
    states = {flow.name: (flow.state, flow.reason or "") for flow in engine.status()[0]}
    assert states["one"][0] == "running"
    assert states["much"][0] == "degraded"
    assert "much.t1" in states["much"][1] or "overflow" in states["much"][1].casefold()


def test_joins_join_and_are_not_switched(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    left, right = ({"from": "src", "where": where} for where in ("v % 2 = 0", "v % 6 = 1"))
    source = {"id": "src", **files(folder, columns=COLUMNS)}
    ways: list[dict[str, Any]] = [
        {"name": name, "type": "join", "config": {"on": ["k"], "time": ["at", "at"], "within": within, "kind": "left"}}
        for name, within in (("near", "5s"), ("far", "10s"))
    ]
    ways[0]["value"] = 2
    joined = flow("pairs", source, {"id": "joined", "alternates": ways, "inputs": [left, right]}, memory("pairs"))
    put(folder, "0", events(0, 40))
    engine.submit(joined)
    engine.wait_until_idle()
    put(folder, "1", events(40, 80))
    engine.wait_until_idle()
    rows = [(row["k"], int(row["v"])) for row in events(0, 80)]
    lefts, rights = ([row for row in rows if row[1] % of == rest] for of, rest in ((2, 0), (6, 1)))
    expected: list[tuple[int, int | None]] = [
        (one, two) for k, one in lefts for j, two in rights if k == j and abs(one - two) <= 5
    ]
    mated = {one for one, _ in expected}
    watermark = min(lefts[-1][1], rights[-1][1])
    expected += [(one, None) for _, one in lefts if one not in mated and one + 5 <= watermark]
    made = [
        (int(row["v"]), None if row["right_v"] is None else int(row["right_v"])) for row in engine.memory.rows("pairs")
    ]
    assert Counter(made) == Counter(expected)
    assert 0 < len(mated) < len(expected)
    with pytest.raises(InputError, match=r"'pairs\.joined' is a window or a join, and cannot be switched"):
        engine.switch("pairs", "joined", "far")
    engine.switch("pairs", "joined", "near")
