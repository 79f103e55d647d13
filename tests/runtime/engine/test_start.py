"""Outputs do not depend on who else runs: dataflows that come late catch up, and then share what runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

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
