"""Publishing to and subscribing at a real broker."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from headgate.errors import InputError
from headgate_riotbench.mqtt import ReadMqtt, WriteMqtt, check_mqtt, publish
from headgate_riotbench.mqtt_reader import MqttReader
from tests.runtime.broker import broker, listening, needs_broker
from tests.runtime.small import wait_for

HERE = "127.0.0.1"


@needs_broker
def test_rows_are_published_once_each(tmp_path: Path) -> None:
    with broker(tmp_path) as port, listening(port, "city/#") as heard:
        rows = [{"id": n, "value": f"Zoë {n}"} for n in range(50)]
        publish(WriteMqtt(host=HERE, port=port, topic="city/texts", column="value"), rows)
        publish(WriteMqtt(host=HERE, port=port, topic="city/rows"), rows[:2])
        wait_for(lambda: len(heard) >= 52, "messages")
        texts = [payload.decode() for topic, payload in heard if topic == "city/texts"]
        assert texts == [row["value"] for row in rows]
        assert [json.loads(payload) for topic, payload in heard if topic == "city/rows"] == rows[:2]


@needs_broker
def test_a_reader_hands_over_what_came_and_forgets_what_was_taken(tmp_path: Path) -> None:
    with broker(tmp_path) as port:
        task = ReadMqtt(host=HERE, port=port, topics=("a/+", "b")).model_dump_json()
        reader = pickle.loads(pickle.dumps(MqttReader(task)))
        start = reader.initialOffset()
        assert reader.latestOffset(start, None) == start  # now it listens
        publish(WriteMqtt(host=HERE, port=port, topic="a/x", column="v"), [{"v": "1"}, {"v": "2"}])
        publish(WriteMqtt(host=HERE, port=port, topic="c", column="v"), [{"v": "no"}])
        publish(WriteMqtt(host=HERE, port=port, topic="b", column="v"), [{"v": "3"}])
        wait_for(lambda: reader.latestOffset(start, None) == {"messages": 3}, "messages")
        some = {"messages": 2}
        rows = [row for part in reader.partitions(start, some) for row in reader.read(part)]
        assert rows == [("a/x", "1"), ("a/x", "2")]
        reader.commit(some)
        (rest,) = reader.partitions(some, {"messages": 3})
        assert list(reader.read(rest)) == [("b", "3")]


@needs_broker
def test_a_reader_that_starts_again_goes_on_counting(tmp_path: Path) -> None:
    with broker(tmp_path) as port:
        reader = MqttReader(ReadMqtt(host=HERE, port=port, topics=("a",)).model_dump_json())
        # A micro-batch that was planned before the end is planned again, and what it had is gone.
        (gone,) = reader.partitions({"messages": 5}, {"messages": 9})
        assert list(reader.read(gone)) == []
        assert reader.latestOffset({"messages": 9}, None) == {"messages": 9}
        publish(WriteMqtt(host=HERE, port=port, topic="a", column="v"), [{"v": "new"}])
        wait_for(lambda: reader.latestOffset({"messages": 9}, None) == {"messages": 10}, "the message")
        (part,) = reader.partitions({"messages": 9}, {"messages": 10})
        assert list(reader.read(part)) == [("a", "new")]


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the MQTT broker at localhost:1 does not answer"):
        check_mqtt(WriteMqtt(port=1, topic="t"))
