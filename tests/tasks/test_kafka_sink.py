"""The Kafka sink by itself: a delivery that comes again, a producer that was killed, and what kcat sees of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError
from headgate.model.work import SinkContext, SinkWork
from headgate.tasks.delivery_marker import Marker
from headgate.tasks.kafka.record_columns import record_columns
from headgate.tasks.kafka.write import _PRODUCERS, WRITE_KAFKA, WriteKafka
from tests.kafka import committed_rows, new_topic
from tests.services import the_broker

pytestmark = pytest.mark.spark  # not for Spark: for the broker


@dataclass(frozen=True)
class Delivery:
    epoch: int
    ids: tuple[int, ...]
    origin: str = "run-1"
    files: tuple[tuple[str, int], ...] = ()

    def table(self) -> pa.Table:
        return pa.table({"id": list(self.ids), "k": [f"k{i % 3}" for i in self.ids]})


def write(options: WriteKafka, delivery: Delivery, signature: str = "0af3") -> None:
    assert isinstance(WRITE_KAFKA.work, SinkWork)
    WRITE_KAFKA.work.write(options, delivery, SinkContext(None, None, "f.t", signature))


def options(topic: str, **more: Any) -> WriteKafka:
    return WriteKafka(servers=the_broker().servers, topic=topic, key="k", **({"transactional_id": topic} | more))


def ids(topic: str) -> list[int]:
    return [row["id"] for row in committed_rows(topic)]


def test_a_delivery_that_comes_again_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = options(new_topic(1))
    write(sink, Delivery(0, (1, 2)))
    write(sink, Delivery(0, (1, 2)))
    _PRODUCERS.clear()  # as if the engine had been started again
    write(sink, Delivery(0, (1, 2)))
    write(sink, Delivery(1, (3,)))
    write(sink, Delivery(1, (4,), "run-2"))  # the same epoch under another snapshot
    _PRODUCERS.clear()
    for delivery in (Delivery(1, (3,)), Delivery(1, (4,), "run-2"), Delivery(0, (5,), "other-1")):
        write(sink, delivery)
    assert ids(sink.topic) == [1, 2, 3, 4, 5]
    twice = options(new_topic(1), delivery="at_least_once")
    write(twice, Delivery(0, (1, 2)))
    write(twice, Delivery(0, (1, 2)))
    assert ids(twice.topic) == [1, 2, 1, 2]


KILLED = """
import os, signal, sys
from headgate.tasks.kafka import write
from tests.tasks.test_kafka_sink import Delivery, options
import tests.tasks.test_kafka_sink as here
servers, topic, moment = sys.argv[1:]
sink = write.WriteKafka(servers=servers, topic=topic, key="k", transactional_id=topic)
made = write._Producer
class Killed(made):
    def _put(self, rows):
        super()._put(rows)
        if moment == "written":
            os.kill(os.getpid(), signal.SIGKILL)
write._Producer = Killed
here.write(sink, Delivery(7, (1, 2, 3)))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("moment", ["written", "committed"])
def test_a_producer_that_was_killed_leaves_all_or_nothing(moment: str) -> None:
    sink = options(new_topic(2))
    command = [sys.executable, "-c", KILLED, sink.servers, sink.topic, moment]
    ran = subprocess.run(command, cwd=Path.cwd(), capture_output=True, check=False)
    assert ran.returncode == -9, ran.stderr.decode()
    write(sink, Delivery(7, (1, 2, 3)))  # the next engine cannot know
    write(sink, Delivery(8, (4,)))
    assert Counter(ids(sink.topic)) == Counter([1, 2, 3, 4])


def test_one_that_was_fenced_says_so_and_comes_back() -> None:
    sink = options(new_topic(1))
    write(sink, Delivery(0, (1,)))
    kept = dict(_PRODUCERS)
    _PRODUCERS.clear()
    write(sink, Delivery(1, (2,), "b-1"))
    _PRODUCERS.update(kept)
    with pytest.raises(HeadgateError, match="another engine writes with the same transactional_id"):
        write(sink, Delivery(1, (3,)))
    write(sink, Delivery(1, (3,)))
    assert ids(sink.topic) == [1, 2, 3]


def test_what_is_no_text_becomes_json() -> None:
    rows = pa.record_batch({"at": pa.array([1_500_000], pa.timestamp("us", "UTC")), "b": [b"ab"], "n": [[1, 2]]})
    (_,), (value,), ((header,),) = record_columns(rows, None, None, ["at"])
    assert json.loads(value or b"") == {"at": "1970-01-01T00:00:01.500000Z", "b": "YWI=", "n": [1, 2]}
    assert header == ("at", b"1970-01-01T00:00:01.500000Z")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 2)), max_size=40))
def test_a_marker_knows_the_last_epoch_of_every_run(steps: list[tuple[str, int, int]]) -> None:
    """Deliveries as they come: epochs of a run in order, snapshots of an epoch in any; a text carries all of it."""
    marker, epochs, written = Marker(), dict.fromkeys("abc", 0), set()
    for run, ahead, snapshot in steps:
        epochs[run] += ahead
        origin, epoch = f"{run}-{snapshot}", epochs[run]
        assert marker.has(origin, epoch) == ((origin, epoch) in written)
        marker = Marker.parse(str(marker.with_delivery(origin, epoch)))
        written.add((origin, epoch))


TEXTS = st.none() | st.text(max_size=6) | st.sampled_from(['a"b', "c\\d", "e\nf", "\u00e4", "\x01"])
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1.0, -0.0, 1e300, 2.5e-9])


@given(st.lists(st.tuples(TEXTS, st.none() | st.integers(-(2**63), 2**63 - 1), NUMBERS, st.none() | st.booleans())))
def test_objects_are_the_json_of_their_rows(rows: list[tuple[Any, ...]]) -> None:
    """Column by column or row by row: parsed again by Python, an object is its row without what is null."""
    columns = list(zip(*rows, strict=True)) or [()] * 4
    kinds = [pa.string(), pa.int64(), pa.float64(), pa.bool_()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, ["t", "n", 'the "v"', "b"])
    _, values, _ = record_columns(batch, None, None, ())
    wanted = [{name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()]
    found = [json.loads(value or b"") for value in values]
    assert found == wanted
    assert [repr(one) for one in found] == [repr(one) for one in wanted], "numbers keep their types"
