"""The broker and the database of ``headgate dev``: real ones, started, killed, started again with what they had."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headgate.cli.main import application
from headgate.errors import InputError
from headgate.machines.processes import marked
from headgate.machines.services.broker import Broker
from headgate.machines.services.jars import kafka_jars
from headgate.machines.services.local import LocalServices
from headgate.service.dev import fetch
from tests.services import the_broker


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the database's user may pass through, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="headgate-dev-") as made:
        Path(made).chmod(0o755)
        yield Path(made) / "dev"
        LocalServices(Path(made) / "dev").stop()


@pytest.mark.slow
def test_up_killed_up_again_and_down(folder: Path) -> None:
    if missing := fetch():
        pytest.skip(missing[0])
    import psycopg
    from confluent_kafka import Producer

    run = CliRunner()
    ports = ["--kafka-port", "0", "--postgres-port", "0"]
    first = run.invoke(application(), ["dev", "up", "--dir", str(folder), *ports, "--json"])
    assert first.exit_code == 0, first.output
    kafka, postgres = json.loads(first.output.splitlines()[-1])["services"]
    assert (kafka["runs"], postgres["runs"]) == (True, True)
    producer = Producer({"bootstrap.servers": kafka["address"]})
    producer.produce("kept", b"hello")
    assert producer.flush(30) == 0
    del producer
    with psycopg.connect(postgres["address"].replace("+psycopg", "")) as connection:
        connection.execute("create table kept as select 7 as seven")
    for name in ("kafka", "postgres"):
        for pid in marked(f"{name} of {folder.resolve()}"):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(one.runs for one in LocalServices(folder).status()))
    again = run.invoke(application(), ["dev", "up", "--dir", str(folder), "--json"])
    assert again.exit_code == 0, again.exception
    assert json.loads(again.output.splitlines()[-1])["services"] == [kafka, postgres]  # where they were
    with psycopg.connect(postgres["address"].replace("+psycopg", "")) as connection:
        assert connection.execute("select seven from kept").fetchone() == (7,)
    assert _kept(kafka["address"]) == [b"hello"]
    assert "2 services stopped" in run.invoke(application(), ["dev", "down", "--dir", str(folder)]).output
    assert run.invoke(application(), ["dev", "status", "--dir", str(folder)]).output.count("stopped") == 2


def _kept(servers: str) -> list[bytes | None]:
    from confluent_kafka import Consumer, TopicPartition

    with_eof = {"bootstrap.servers": servers, "group.id": "t", "enable.partition.eof": True}
    consumer = Consumer(with_eof)
    consumer.assign([TopicPartition("kept", partition, 0) for partition in (0, 1)])
    found, ends = [], 0
    while ends < 2:
        for message in consumer.consume(10, 30.0):
            ends += message.error() is not None
            found += [message.value()] if message.error() is None else []
    consumer.close()
    return found


@pytest.mark.spark  # not for Spark: for the broker
def test_a_port_that_is_taken_and_a_service_that_there_is_not(folder: Path) -> None:
    broker = the_broker()
    with pytest.raises(InputError, match=rf"port {broker.port} is in use .* choose another one for kafka"):
        LocalServices(folder).start(("kafka",), {"kafka": broker.port})
    outcome = CliRunner().invoke(application(), ["dev", "up", "redis", "--dir", str(folder)])
    assert isinstance(outcome.exception, InputError)
    assert "there are kafka and postgres" in outcome.exception.message


def test_without_java_there_is_no_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.machines.services.broker.java_command", lambda: str(tmp_path / "java"))
    with pytest.raises(InputError, match="the Kafka broker needs Java 17 or 21"):
        Broker(tmp_path / "data", 1, 2, "none").start()


def test_jars_that_are_not_those_that_are_pinned_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\nmkdir jars; echo other > jars/kafka_2.13-4.3.1.jar\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match="not what is pinned"):
        kafka_jars().fetch(tmp_path / "cache")
    assert not kafka_jars().folder(tmp_path / "cache").exists()
    maven.write_text("#!/bin/sh\necho '[ERROR] no network'; exit 1\n")
    with pytest.raises(InputError, match=r"could not fetch the Kafka broker: \[ERROR\] no network"):
        kafka_jars().fetch(tmp_path / "cache")
