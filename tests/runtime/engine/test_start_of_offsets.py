"""Late dataflows on sources that count in offsets, Kafka and replays; compared with what went in."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.start import Start
from headgate.runtime.engine.engine import Engine
from tests.judge.sinks import sink_rows
from tests.kafka import delete_before, new_topic, produce_rows
from tests.runtime.small import COLUMNS, Rows, flow, memory, numbered, put, wait_for
from tests.services import the_broker

pytestmark = pytest.mark.spark

POSITIVE = {"type": "filter", "config": {"where": "v > 0"}}
COUNT = {"type": "count", "config": {"key": ["k"], "into": "n"}}


def topic(name: str, **options: Any) -> dict[str, Any]:
    config = {"servers": the_broker().servers, "topics": [name], "format": "json", "columns": COLUMNS}
    return {"type": "read_kafka", "config": {**config, **options}}


def starting(start: str, dataflow: Dataflow) -> Dataflow:
    return replace(dataflow, start=Start.parse(start))


def by_key(rows: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    """The ids of each key, in the order of the rows."""
    keys = defaultdict(list)
    for row in rows:
        keys[row["k"]].append(row["id"])
    return dict(keys)


def positive(rows: Rows) -> Rows:
    return [row for row in rows if row["v"] > 0]


def counted(rows: Rows) -> dict[int, int]:
    """What a running count of each key is at each row."""
    seen: dict[str, int] = defaultdict(int)
    counts = {}
    for row in rows:
        seen[row["k"]] += 1
        counts[row["id"]] = seen[row["k"]]
    return counts


def counts(engine: Engine, sink: str) -> dict[int, int]:
    return {row["id"]: row["n"] for row in engine.memory.rows(sink)}


def hows(engine: Engine, *flows: Dataflow) -> list[str]:
    return [one.start.how.value for one in engine.submit(*flows).submissions]


def test_a_topic_from_the_earliest_now_and_where_nobody_says(spark: SparkSession, tmp_path: Path) -> None:
    source = new_topic(3)
    produce_rows(source, numbered(0, 60))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", topic(source), POSITIVE, COUNT, memory("base")))
        engine.wait_until_idle()
        produce_rows(source, numbered(60, 60))
        wait_for(lambda: len(engine.memory.rows("base")) == 60, "the base reads from now on")
        late = starting("earliest", flow("late", topic(source), POSITIVE, memory("late")))
        own = starting("earliest", flow("own", topic(source), POSITIVE, COUNT, memory("own")))
        usual = flow("usual", topic(source), POSITIVE, COUNT, memory("usual"))
        assert hows(engine, late, own, usual) == ["catch up", "catch up", "now"]
        produce_rows(source, numbered(120, 60))
        engine.wait_until_idle()
        everything = positive(numbered(0, 180))
        wait_for(lambda: len(engine.memory.rows("own")) == len(everything), "all is counted")
        assert by_key(engine.memory.rows("late")) == by_key(everything)
        assert counts(engine, "own") == counted(everything)
        assert counts(engine, "base") == counted(numbered(60, 120))
        assert counts(engine, "usual") == counted(numbered(120, 60)), "a count from now on is no count from before"
        engine.housekeep()
        assert not engine.snapshot.catch_ups
        assert sum(fragment.kind == "source" for fragment in engine.plan.fragments.values()) == 1


def test_a_count_from_the_earliest_of_a_topic_is_shared(spark: SparkSession, tmp_path: Path) -> None:
    source = new_topic(1)
    produce_rows(source, numbered(0, 90))
    begun = topic(source, start="earliest")
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", begun, COUNT, memory("base")))
        engine.wait_until_idle()
        assert hows(engine, flow("late", begun, COUNT, memory("late"))) == ["catch up"]
        produce_rows(source, numbered(90, 30))
        engine.wait_until_idle()
        assert counts(engine, "late") == counts(engine, "base") == counted(numbered(0, 120))
        engine.housekeep()
        assert len(engine.plan.tasks) == 4
        delete_before(source, 1)
        again = flow("again", begun, COUNT, memory("again"))
        assert hows(engine, again) == ["catch up"]
        assert engine.snapshot.catch_ups[again.name].handed, (
            "what it counts is no longer all that the others have counted"
        )
        engine.wait_until_idle()
        late = [row for row in numbered(0, 120) if row["id"] in counts(engine, "again")]
        assert counts(engine, "again") == counted(late)
        assert len(late) == 119


def test_a_time_of_a_topic(spark: SparkSession, tmp_path: Path) -> None:
    source = new_topic(2)
    produce_rows(source, numbered(0, 30))
    time.sleep(0.05)
    at = datetime.now(UTC).isoformat()
    time.sleep(0.05)
    produce_rows(source, numbered(30, 30))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(starting("earliest", flow("base", topic(source), memory("base"))))
        engine.wait_until_idle()
        since, at_its_source = (flow(n, topic(source, **o), memory(n)) for n, o in [("a", {}), ("b", {"start": at})])
        assert hows(engine, starting(at, since), at_its_source) == ["catch up", "catch up"]
        produce_rows(source, numbered(60, 30))
        engine.wait_until_idle()
        for sink in ("a", "b"):
            assert by_key(engine.memory.rows(sink)) == by_key(numbered(30, 60))


def test_a_catch_up_of_a_topic_survives_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    source, out = new_topic(3), tmp_path / "out"
    produce_rows(source, numbered(0, 400))
    begun = topic(source, start="earliest")
    written = {"type": "write_files", "config": {"path": str(out)}}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", begun, memory("base")))
        engine.wait_until_idle()
        engine.submit(flow("late", begun, POSITIVE, written))
        engine.limit("late", "t0", 20)
        wait_for(lambda: list(out.glob("part-*")), "the first rows")
        assert engine.snapshot.catch_ups
    produce_rows(source, numbered(400, 100))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.limit("late", "t0", None)
        engine.wait_until_idle()
        assert not engine.snapshot.catch_ups
        assert by_key(sink_rows(out)) == by_key(positive(numbered(0, 500)))


def test_a_late_dataflow_gets_what_a_replay_has_played(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "recording", numbered(0, 300))
    config = {"path": str(tmp_path / "recording.json"), "columns": COLUMNS, "rate_per_s": 60}
    slow = {"type": "replay", "config": config}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(flow("base", slow, COUNT, memory("base")))
        wait_for(lambda: len(engine.memory.rows("base")) > 20, "the first rows")
        late = flow("late", slow, COUNT, memory("late"))
        assert hows(engine, late, starting("now", flow("new", slow, memory("new")))) == ["catch up", "now"]
        engine.wait_until_idle()
        assert counts(engine, "late") == counts(engine, "base") == counted(numbered(0, 300))
        assert by_key(engine.memory.rows("late")) == by_key(numbered(0, 300))
        got = [row["id"] for row in engine.memory.rows("new")]
        assert got == list(range(300 - len(got), 300)), "what was played after it came, if anything was left"
        with pytest.raises(InputError, match="needs a source that knows when its rows came, which 't0' is not"):
            engine.submit(starting("1h", flow("hour", slow, memory("hour"))))
