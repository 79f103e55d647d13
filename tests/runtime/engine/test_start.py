"""Outputs do not depend on who else runs: dataflows that come late catch up, and then share what runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.runtime.engine.engine import Engine
from tests.judge.sinks import sink_rows
from tests.runtime.small import files, flow, memory, numbered, put, wait_for

pytestmark = pytest.mark.spark

POSITIVE = {"type": "filter", "config": {"where": "v > 0"}}
COUNT = {"type": "count", "config": {"key": ["k"], "into": "n"}}


def ids(engine: Engine, sink: str) -> list[int]:
    return [row["id"] for row in engine.memory.rows(sink)]


def counts(engine: Engine, sink: str) -> dict[int, int]:
    return {row["id"]: row["n"] for row in engine.memory.rows(sink)}


def counted(numbers: range) -> dict[int, int]:
    return {number: at // 3 + 1 for at, number in enumerate(numbers)}


def test_a_late_dataflow_gets_all_rows_in_order(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", numbered(0, 30))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", files(folder), POSITIVE, memory("base")))
        engine.wait_until_idle()
        put(folder, "1", numbered(30, 30))
        engine.wait_until_idle()
        before = set(engine.fragments)
        (submission,) = engine.submit(flow("late", files(folder), POSITIVE, memory("late"))).submissions
        assert (submission.start.start, submission.start.how) == ("earliest", "catch up")
        assert engine.snapshot.catch_ups.keys() == {"late"}
        put(folder, "2", numbered(60, 30))
        engine.wait_until_idle()
        assert ids(engine, "late") == ids(engine, "base") == [n for n in range(90) if n * 0.5 - 2 > 0]
        engine.housekeep()
        assert set(engine.fragments) == before
        assert (engine.snapshot.catch_ups, engine.snapshot.readings) == ({}, {})
        assert len(engine.plan.tasks) == 4


def test_a_late_dataflow_shares_a_count_from_the_earliest(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", numbered(0, 30))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", files(folder), COUNT, memory("base")))
        engine.wait_until_idle()
        (submission,) = engine.submit(flow("late", files(folder), COUNT, memory("late"))).submissions
        assert submission.start.how == "catch up"
        put(folder, "1", numbered(30, 30))
        engine.wait_until_idle()
        assert counts(engine, "late") == counts(engine, "base") == counted(range(60))
        engine.housekeep()
        assert len(engine.plan.tasks) == 4


def written(name: str, folder: Path) -> dict[str, object]:
    return {"type": "write_files", "config": {"path": str(folder / name)}}


def test_a_catch_up_survives_a_restart_and_leaves_no_gap_when_it_is_given_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for number in range(15):
        put(folder, f"{number:02d}", numbered(number * 10, 10))
    source = files(folder, files_per_batch=1)
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", source, POSITIVE, memory("base")))
        engine.wait_until_idle()
        engine.submit(flow("late", source, POSITIVE, written("late", out)), flow("gone", source, written("gone", out)))
        wait_for(lambda: list((out / "gone").glob("part-*")), "the first rows")
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        assert engine.snapshot.catch_ups.keys() == {"late", "gone"}
        put(folder, "15", numbered(150, 10))
        (status, *_) = [one for one in engine.status()[0] if one.name == "late"]
        assert status.state == "catching up"
        engine.withdraw("gone")
        engine.wait_until_idle()
        assert [row["id"] for row in sink_rows(out / "late")] == [n for n in range(160) if n * 0.5 - 2 > 0]
        got = [row["id"] for row in sink_rows(out / "gone")]
        assert got == list(range(len(got)))
        assert 10 <= len(got) <= 150
        assert engine.snapshot.catch_ups == {}


def test_a_paused_catch_up_rests(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", numbered(0, 30))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", files(folder), memory("base")))
        engine.wait_until_idle()
        engine.submit(flow("late", files(folder), memory("late")))
        engine.pause("late")
        put(folder, "1", numbered(30, 10))
        engine.wait_until_idle()
        assert engine.snapshot.catch_ups.keys() == {"late"}, "it goes on when it is resumed"
        engine.resume("late")
        put(folder, "2", numbered(40, 10))
        engine.wait_until_idle()
        assert [n for n in ids(engine, "late") if not 30 <= n < 40] == [*range(30), *range(40, 50)]


WAYS = {
    "id": "way",
    "alternates": [
        {"name": name, "type": "derive", "config": {"columns": {"way": f"'{name}'"}}, "value": 1} for name in "ab"
    ],
}


def test_two_catch_up_together_with_a_switch_a_limit_and_a_withdrawal(spark: SparkSession, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"

    def got(name: str) -> list[dict[str, Any]]:
        return [*sink_rows(out / name)]

    put(folder, "0", numbered(0, 60))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", files(folder), WAYS, memory("base")))
        engine.wait_until_idle()
        flows = [flow(name, files(folder), WAYS, written(name, out)) for name in ("one", "two", "gone")]
        engine.submit(*flows)
        assert sum(fragment.kind == "source" for fragment in engine.plan.fragments.values()) == 2, "one reader for all"
        engine.limit("one", "t0", 3)
        wait_for(lambda: len(got("one")) > 6, "the first rows")
        engine.switch("two", "way", "b")
        engine.withdraw("gone")
        put(folder, "1", numbered(60, 10))
        wait_for(lambda: len(got("one")) > 20, "more rows")
        engine.limit("one", "t0", None)
        engine.wait_until_idle()
        for sink in ("one", "two"):
            rows = got(sink)
            assert [row["id"] for row in rows] == list(range(70))
            ways = "".join(row["way"] for row in rows)
            assert ways == "a" * ways.count("a") + "b" * ways.count("b"), "a switch holds from some row on"
            assert ways.count("b") > 10, "it holds for the rest of what had passed, too"
        left = [row["id"] for row in got("gone")]
        assert left == list(range(len(left)))
        engine.housekeep()
        assert not engine.snapshot.catch_ups
        assert len(engine.plan.tasks) == 5


def test_files_that_are_gone_are_said_and_the_rest_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(3):
        put(folder, str(number), numbered(number * 10, 10))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", files(folder), COUNT, memory("base")))
        engine.wait_until_idle()
        (folder / "0.json").unlink()
        late = flow("late", files(folder), COUNT, memory("late"))
        with pytest.raises(InputError, match="1 file that it has read is no longer there; what is there begins at 20"):
            engine.submit(late)
        assert "late" not in engine.snapshot.stored
        engine.submit(late, flow("rows", files(folder), memory("rows")), allow_partial=True)
        put(folder, "3", numbered(30, 10))
        engine.wait_until_idle()
        assert counts(engine, "late") == counted(range(10, 40)), "it counts what is there"
        assert ids(engine, "rows") == list(range(10, 40))
        assert counts(engine, "base") == counted(range(40))
        (status,) = [one for one in engine.status()[0] if one.name == "late"]
        assert "1 file that it has read is no longer there" in status.lacks


def test_a_named_stream_is_read_from_its_past_on_and_outlives_who_publishes_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    put(folder, "0", numbered(0, 30))
    named = {**COUNT, "id": "counted", "publish": "counts"}
    read = {"id": "s", "type": "read_stream", "config": {"stream": "counts", "columns": "id long, n long"}}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("maker", files(folder), named, memory("maker")))
        engine.wait_until_idle()
        few = {"id": "few", "type": "filter", "config": {"where": "n > 2"}, "inputs": ["s"]}
        late = flow("late", read, few, memory("late"))
        (submission,) = engine.submit(late).submissions
        assert submission.start.how == "catch up"
        engine.wait_until_idle()
        assert counts(engine, "late") == {number: n for number, n in counted(range(30)).items() if n > 2}
        engine.withdraw("maker")
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        put(folder, "1", numbered(30, 30))
        engine.wait_until_idle()
        wanted = {number: n for number, n in counted(range(60)).items() if n > 2}
        assert counts(engine, "late") == {number: n for number, n in wanted.items() if number >= 30}
        assert [flow.name for flow in engine.dataflows] == ["late"]


WINDOW = {
    "type": "window",
    "config": {"time": "t", "size": "10s", "key": ["k"], "columns": {"n": "count(*)", "least": "min(id)"}},
}
AT = {"type": "derive", "config": {"columns": {"t": "timestamp_millis(id * 1000)"}}}
Windows = dict[tuple[int, str], tuple[int, int]]


def windows(folder: Path) -> Windows:
    """Rows and least id by start and key; a window that is put out twice fails."""
    rows = [
        (int(datetime.fromisoformat(r["window_start"]).timestamp()), r["k"], r["n"], r["least"])
        for r in sink_rows(folder)
    ]
    out = {(start, key): (n, least) for start, key, n, least in rows}
    assert len(out) == len(rows)
    return out


def _second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def windowed(last: int) -> Windows:
    """The windows that the greatest id has closed."""
    out: Windows = {}
    for number in range(last // 10 * 10):
        at = number // 10 * 10, f"k{number % 3}"
        n, least = out.get(at, (0, number))
        out[at] = n + 1, least
    return out


def test_state_that_nobody_has_is_built_from_the_past_and_then_from_what_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    source = files(folder, files_per_batch=1)
    for number in range(6):
        put(folder, f"{number:02d}", numbered(number * 20, 20))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", source, POSITIVE, written("base", out)))
        engine.wait_until_idle()
        late = [flow("late", source, AT, WINDOW, written("late", out)), flow("own", source, COUNT, written("own", out))]
        assert [one.start.how for one in engine.submit(*late).submissions] == ["catch up", "catch up"]
        with pytest.raises(InputError, match=r"'late' is catching up; pause it when it has") as refused:
            engine.pause("late")
        assert refused.value.condition == "CATCHING_UP"
        for number in range(6, 9):
            put(folder, f"{number:02d}", numbered(number * 20, 20))
        wait_for(lambda: list((out / "own").glob("part-*")), "rows of the past")
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        put(folder, "09", numbered(180, 20))
        engine.wait_until_idle()
        engine.housekeep()
        assert engine.snapshot.catch_ups == {}
        assert sum(fragment.fragment.kind == "source" for fragment in engine.fragments.values()) == 1
        put(folder, "10", numbered(200, 20))
        engine.wait_until_idle()
        wait_for(lambda: windows(out / "late") == windowed(219), "all windows but the last")
        own = [*sink_rows(out / "own")]
        assert {row["id"]: row["n"] for row in own} == counted(range(220))
        for key in ("k0", "k1", "k2"):
            of_key = [row["n"] for row in own if row["k"] == key]
            assert of_key == list(range(1, len(of_key) + 1)), "in order"
        assert [row["id"] for row in sink_rows(out / "base")] == [n for n in range(220) if n * 0.5 - 2 > 0]
