"""Kafka to Kafka on a real broker; what was written is read by kcat, which is not ours."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.machines.processes import end, reap
from headgate.runtime.engine.engine import Engine
from tests.kafka import add_partitions, committed, committed_rows, delete_before, new_topic, produce, produce_rows
from tests.runtime.small import COLUMNS, Rows, files, flow, memory, multiset, numbered, put, wait_for
from tests.schema_registry import registry
from tests.services import the_broker
from tests.tasks.test_kafka_schemas import avro_text, framed, zigzag

pytestmark = pytest.mark.spark


def topic(name: str, **options: Any) -> dict[str, Any]:
    form = {"format": "json", "columns": COLUMNS, "start": "earliest"} if "format" not in options else {}
    config = {"servers": the_broker().servers, "topics": [name], **form, **options}
    more = {"on_error": config.pop("on_error")} if "on_error" in config else {}
    return {"type": "read_kafka", "config": config, **more}


def to_topic(name: str, **options: Any) -> dict[str, Any]:
    return {"type": "write_kafka", "config": {"servers": the_broker().servers, "topic": name, **options}}


def in_order(rows: Rows) -> dict[str, list[int]]:
    """The ids of each key, in the order of the rows."""
    keys: dict[str, list[int]] = {}
    for row in rows:
        keys.setdefault(row["k"], []).append(row["id"])
    return keys


def test_from_topic_to_topic_with_key_headers_and_order(engine: Engine) -> None:
    source, target = new_topic(3), new_topic(3)
    produce_rows(source, numbered(0, 300))
    kept = {"id": "kept", "type": "filter", "config": {"where": "v > 0"}}
    engine.submit(flow("copy", topic(source), kept, to_topic(target, key="k", headers=["id"])))
    engine.wait_until_idle()
    produce_rows(source, numbered(300, 300))
    engine.wait_until_idle()
    wanted = [row for row in numbered(0, 600) if row["v"] > 0]
    found = committed(target)
    assert multiset(json.loads(record["payload"]) for record in found) == multiset(wanted)
    assert in_order(committed_rows(target)) == in_order(wanted)
    for record in found:
        value = json.loads(record["payload"])
        assert (record["key"], record["headers"]) == (value["k"], ["id", str(value["id"])])


def test_bytes_fields_patterns_and_partitions_that_are_added(engine: Engine) -> None:
    one = new_topic(1)
    before_ms = int(time.time() * 1000)
    produce(one, [("a", "x"), (None, "y")], headers=[("h", b"1"), ("h", b"2")])
    fields = ["key", "topic", "partition", "offset", "timestamp", "headers"]
    source = topic(f"^{one}.*", format="bytes", start="earliest", fields=fields)
    engine.submit(flow("raw", source, memory("raw")))
    engine.wait_until_idle()
    rows = engine.memory.rows("raw")
    assert [(r["key"], r["value"], r["topic"], r["partition"], r["offset"]) for r in rows] == [
        (b"a", b"x", one, 0, 0),
        (None, b"y", one, 0, 1),
    ]
    assert rows[0]["headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": b"2"}]
    assert before_ms <= rows[0]["timestamp"].timestamp() * 1000 <= time.time() * 1000
    add_partitions(one, 2)
    produce(one, [("b", "z")], partition=1)
    wait_for(lambda: len(engine.memory.rows("raw")) == 3, "the new partition is read")
    assert (engine.memory.rows("raw")[2]["value"], engine.memory.rows("raw")[2]["partition"]) == (b"z", 1)


def test_start_now_at_a_time_and_what_waits_behind_a_limit(engine: Engine) -> None:
    source = new_topic(2)
    produce_rows(source, numbered(0, 10))
    time.sleep(0.01)  # records have milliseconds
    since = time.time()
    time.sleep(0.01)
    produce_rows(source, numbered(10, 10))
    moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(since))}.{int(since % 1 * 1000):03d}Z"
    engine.submit(flow("since", topic(source, start=moment), memory("since")))
    engine.wait_until_idle()
    engine.submit(flow("now", topic(source, start="now"), memory("now")))
    engine.submit(flow("few", topic(source, rows_per_batch=7), memory("few")))
    engine.wait_until_idle()
    produce_rows(source, numbered(20, 10))
    engine.wait_until_idle()
    assert multiset(engine.memory.rows("since")) == multiset(numbered(10, 20))
    assert multiset(engine.memory.rows("now")) == multiset(numbered(20, 10))
    assert multiset(engine.memory.rows("few")) == multiset(numbered(0, 30))
    assert max(table.num_rows for table in engine.memory.epochs("few").values()) <= 7


def test_broken_records_are_dead_letters_and_the_others_go_on(engine: Engine) -> None:
    source = new_topic(1)
    good = [(row["k"], json.dumps(row)) for row in numbered(0, 4)]
    broken = [("b", '{"id": '), ("b", "[1]"), ("b", "")]
    produce(source, [good[0], broken[0], good[1], broken[1], (None, None), broken[2], *good[2:]])
    engine.submit(flow("some", topic(source, on_error="dead_letter"), memory("some")))
    engine.wait_until_idle()
    nothing = {"id": None, "k": None, "v": None}
    assert engine.memory.rows("some") == [*numbered(0, 2), nothing, *numbered(2, 2)]
    (status,), _ = engine.status()
    assert status.rows_dead == 3
    assert "offset 5: not a JSON object" in status.reason


def _housekept(engine: Engine) -> bool:
    engine.housekeep()
    return True


def test_avro_by_a_registry_that_is_away_for_a_while(engine: Engine) -> None:
    """Schemas come from a registry; while that is away the source waits, and no record is taken for broken."""
    source = new_topic(1)
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "id", "type": "long"}, {"name": "k", "type": "string"}],
    }
    rows: Rows = [{"id": n, "k": f"k{n}"} for n in range(4)]
    with registry() as server:
        server.add(7, "AVRO", json.dumps(schema))
        server.fails = True
        read = topic(source, format="avro", registry=server.url, columns="id bigint, k string", start="earliest")
        with pytest.raises(InputError, match=r"the schema registry at .* answers 503"):
            engine.submit(flow("avro", read, memory("avro")))
        server.fails = False
        engine.submit(flow("avro", {**read, "on_error": "dead_letter"}, memory("avro")))
        server.fails = True
        values = [framed(7, zigzag(row["id"]) + avro_text(row["k"])) for row in rows]
        produce(source, [(None, value) for value in [*values[:2], b"{}", *values[2:]]])
        wait_for(lambda: "goes on by itself" in _reason(engine, "avro"), "the source says that it waits")
        server.fails = False
        wait_for(lambda: _housekept(engine) and len(engine.memory.rows("avro")) == 4, "the source goes on")
    assert engine.memory.rows("avro") == rows
    wait_for(lambda: engine.status()[0][0].rows_dead == 1, "the record that has no schema is a dead letter")


def test_records_that_the_broker_has_removed_are_said(engine: Engine) -> None:
    source = new_topic(1)
    produce_rows(source, numbered(0, 10))
    engine.submit(flow("late", topic(source, on_error="dead_letter"), memory("late")))
    engine.wait_until_idle()
    engine.pause("late")
    produce_rows(source, numbered(10, 10))
    delete_before(source, 15)
    engine.resume("late")
    engine.wait_until_idle()
    assert multiset(engine.memory.rows("late")) == multiset([*numbered(0, 10), *numbered(15, 5)])
    assert "offsets 10 to 14: Kafka has removed 5 records before they were read" in engine.status()[0][0].reason


def test_only_what_was_committed_is_read(engine: Engine) -> None:
    from confluent_kafka import Producer

    source = new_topic(1)
    producer = Producer({"bootstrap.servers": the_broker().servers, "transactional.id": source})
    producer.init_transactions(60)
    for first, ends_well in ((0, True), (10, False), (20, True)):
        producer.begin_transaction()
        for row in numbered(first, 10):
            producer.produce(source, json.dumps(row))
        producer.flush(60)
        (producer.commit_transaction if ends_well else producer.abort_transaction)(60)
    engine.submit(flow("read", topic(source), memory("read")))
    engine.wait_until_idle()
    assert engine.memory.rows("read") == [*numbered(0, 10), *numbered(20, 10)]


def test_what_cannot_work_is_refused_in_a_sentence(engine: Engine) -> None:
    source = new_topic(1)
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([topic(f"{source}s"), memory("m")], f"has no topic '{source}s'; did you mean '{source}'"),
        ([topic(source), to_topic("nowhere")], "has no topic 'nowhere'; make it"),
        ([topic(source, servers="127.0.0.1:1"), memory("m")], "Kafka at 127.0.0.1:1 does not answer"),
    ]
    for tasks, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            engine.submit(flow("bad", *tasks))
    assert engine.dataflows == ()


@pytest.mark.parametrize("away_s", [0.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_a_broker_that_is_away_is_waited_for_and_others_go_on(engine: Engine, tmp_path: Path, away_s: float) -> None:
    broker = the_broker()
    source, target, alone = new_topic(2), new_topic(2), new_topic(2)
    put(tmp_path / "in", "0", numbered(0, 10))
    (tmp_path / "other").mkdir()
    produce_rows(source, numbered(0, 10))
    engine.submit(
        flow("copy", topic(source), to_topic(target, key="k")),
        flow("sent", files(tmp_path / "in"), to_topic(alone, key="k")),
        flow("files", files(tmp_path / "other"), memory("files")),
    )
    engine.wait_until_idle()
    end(broker.mark, 0.0)
    reap()
    began = time.monotonic()
    try:
        put(tmp_path / "in", "1", numbered(10, 10))
        longest = _longest_wait_for_rows(engine, tmp_path / "other", away_s)
        wait_for(lambda: "the source waits, and goes on by itself" in _reason(engine, "copy"), "the source says so")
        wait_for(lambda: "its rows are queued and retried" in _reason(engine, "sent"), "the sink says so")
        print(f"away for {time.monotonic() - began:.1f} s; rows of the other took {longest:.1f} s at most")
    finally:
        broker.start()
    produce_rows(source, numbered(10, 10))
    wait_for(lambda: _are_out(engine, ("copy", 20), ("sent", 20)), "all rows")
    for name in (target, alone):
        assert multiset(committed_rows(name)) == multiset(numbered(0, 20))
        assert in_order(committed_rows(name)) == in_order(numbered(0, 20))


def _reason(engine: Engine, name: str) -> str:
    engine.housekeep()
    return next(one.reason for one in engine.status()[0] if one.name == name)


def _are_out(engine: Engine, *wanted: tuple[str, int]) -> bool:
    engine.housekeep()
    rows = {one.name: one.rows_out for one in engine.status()[0]}
    return all(rows[name] >= count for name, count in wanted)


def _longest_wait_for_rows(engine: Engine, folder: Path, for_s: float) -> float:
    """Put files into a folder for some time, one after the other; the longest time until a file's row was out."""
    until, took = time.monotonic() + for_s, []
    for number in range(1_000):
        began = time.monotonic()
        put(folder, f"n{number}", numbered(number, 1))
        wait_for(lambda: len(engine.memory.rows("files")) > number, "others go on", 30.0)  # noqa: B023
        took.append(time.monotonic() - began)
        if time.monotonic() > until:
            break
    return max(took)
