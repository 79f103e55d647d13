"""The exchange keeps what may be read again, and nothing else."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from headgate.runtime.exchange.files import INGEST, ORDER, SNAPSHOT, ExchangeReader, FileExchange, Patience

SCHEMA = StructType().add("id", LongType()).add(INGEST, LongType()).add(SNAPSHOT, LongType()).add(ORDER, LongType())


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    return FileExchange(tmp_path)


def publish(exchange: FileExchange, topic: str, number: int, snapshot: int = 1, rows: int = 2) -> None:
    staged = exchange.root / f"staged-{topic}-{number}.arrow"
    table = pa.table({"id": pa.array(range(rows), pa.int64()), INGEST: pa.array([5] * rows, pa.int64())})
    with pa.ipc.new_file(str(staged), table.schema) as writer:
        writer.write_table(table)
    exchange.publish(topic, number, snapshot, [(str(staged), rows)], 5)


def reader(exchange: FileExchange, topic: str, rank: int = 1) -> ExchangeReader:
    options = {"folder": str(exchange.folder(topic)), "rank": str(rank), "start": "-1", "rows_per_batch": "1000"}
    return ExchangeReader({**options, "limits": str(exchange.root), "columns": SCHEMA.json()})


def places(outcome: ExchangeReader, start: int, end: int) -> list[int]:
    """The places of the rows of a micro-batch."""
    parts = outcome.partitions({"number": start}, {"number": end})
    return [place for part in parts for batch in outcome.read(part) for place in batch.column(ORDER).to_pylist()]


def test_the_last_epoch_of_the_reader_can_be_read_again(exchange: FileExchange) -> None:
    for number in range(30):
        publish(exchange, "t", number)
    exchange.done("t", 9)
    exchange.done("t", 29)  # the reader is killed now, before Spark has noted that the epoch is done
    for number in range(30, 40):
        publish(exchange, "t", number)
    assert len(places(reader(exchange, "t"), 9, 29)) == 40
    assert not (exchange.folder("t") / f"{8:010d}.json").exists()


def test_what_is_gone_is_not_passed_over(exchange: FileExchange) -> None:
    publish(exchange, "t", 0)
    (exchange.folder("t") / f"{0:010d}.json").unlink()
    with pytest.raises(RuntimeError, match=r"batch 0 of .* is gone"):
        reader(exchange, "t").partitions({"number": -1}, {"number": 0})


def test_publishing_again_changes_nothing(exchange: FileExchange) -> None:
    publish(exchange, "t", 0)
    publish(exchange, "t", 0, rows=5)
    assert exchange.rows_behind("t") == 2


def test_killed_between_the_files_and_the_head(exchange: FileExchange) -> None:
    publish(exchange, "t", 0)
    (exchange.folder("t") / "head.json").unlink()
    exchange.publish("t", 0, 1, [("moved/already.arrow", 2)], 5)
    assert exchange.head("t") == 0
    assert len(places(reader(exchange, "t"), -1, 0)) == 2


def test_each_row_has_its_own_place(exchange: FileExchange) -> None:
    for topic in ("a", "b"):
        for number in range(3):
            publish(exchange, topic, number)
    outcome = places(reader(exchange, "a", 1), -1, 2) + places(reader(exchange, "b", 2), -1, 2)
    assert len(set(outcome)) == 12


def test_places_fit_however_long_a_topic_has_run(exchange: FileExchange) -> None:
    publish(exchange, "t", 10**9)
    assert len(places(reader(exchange, "t"), 10**9 - 1, 10**9)) == 2


def test_numbers_go_on_when_the_reader_is_gone(exchange: FileExchange) -> None:
    for number in range(3):
        publish(exchange, "t", number)
    exchange.forget("t")
    assert (exchange.head("t"), exchange.position("t"), exchange.rows_behind("t")) == (2, 2, 0)
    publish(exchange, "t", 3)
    assert exchange.rows_behind("t") == 2
    assert sorted(file.name for file in exchange.folder("t").glob("*.arrow")) == [f"{3:010d}-0.arrow"]


def test_past_a_snapshot(exchange: FileExchange) -> None:
    assert exchange.is_past("t", 5)
    publish(exchange, "t", 0, snapshot=4)
    publish(exchange, "t", 1, snapshot=5)
    assert not exchange.is_past("t", 5)
    exchange.done("t", 0)
    assert exchange.is_past("t", 5)


def waited(exchange: FileExchange, starts: dict[str, int], wait_s: float, last: float = -1000.0) -> float:
    """How long a reader of these topics waits that got its last rows at ``last`` of its clock, which begins at 0."""
    began = time.monotonic()
    topics = {str(exchange.folder(topic)): start for topic, start in starts.items()}
    patience = Patience(topics, wait_s, lambda: time.monotonic() - began)
    patience.last = last
    patience.wait()
    return time.monotonic() - began


def test_a_reader_waits_for_rows_of_any_topic_and_no_longer(exchange: FileExchange) -> None:
    topics = {"a": -1, "b": -1}
    assert waited(exchange, topics, 0.3) >= 0.3
    publish(exchange, "b", 0)
    assert waited(exchange, topics, 30) < 5
    exchange.done("b", 0)
    assert waited(exchange, topics, 0.3) >= 0.3


def test_what_was_there_before_a_reader_began_does_not_count(exchange: FileExchange) -> None:
    publish(exchange, "a", 0)
    assert waited(exchange, {"a": 0}, 0.3) >= 0.3


def test_rows_that_come_too_soon_after_the_last_ones_wait(exchange: FileExchange) -> None:
    publish(exchange, "a", 0)
    assert 0.8 * 0.5 <= waited(exchange, {"a": -1}, 0.5, last=0.0) < 5


def test_rows_that_come_while_a_reader_waits_are_read_at_once(exchange: FileExchange) -> None:
    timer = threading.Timer(0.2, publish, (exchange, "a", 0))
    timer.start()
    assert 0.2 <= waited(exchange, {"a": -1}, 30) < 10
    timer.join()


def test_the_oldest_snapshot_of_a_topic(exchange: FileExchange) -> None:
    assert exchange.oldest_snapshot("t") is None
    for number in range(20):
        publish(exchange, "t", number, snapshot=number // 5)
    assert exchange.oldest_snapshot("t") == 0
    exchange.done("t", 11)
    exchange.done("t", 12)
    publish(exchange, "t", 20, snapshot=4)
    assert exchange.oldest_snapshot("t") == 2


def test_rows_that_come_after_a_wait_in_vain_are_read_at_once(exchange: FileExchange) -> None:
    patience = Patience({str(exchange.folder("a")): -1}, 2.0)
    patience.wait()
    publish(exchange, "a", 0)
    began = time.monotonic()
    patience.wait()
    assert time.monotonic() - began < 0.5 * Patience.PACE * 2.0
