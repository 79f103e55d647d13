"""Kafka to a target while broker, engine, JVM, workers and the target's server are killed; and what is judged then.

The judge knows which rows brokers have acknowledged to a producer. It computes what must be in the target, and reads
that with a program that is not ours (:mod:`tests.judge.kafka_targets`). It shares no code with the engine.
"""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from headgate.machines.processes import end, reap
from headgate.machines.services.broker import Broker
from headgate.machines.standalone import free_port
from tests.judge.kafka_targets import CLIENT, PARTITIONS, KafkaTarget, Target
from tests.judge.processes import Starts

__all__ = ["KINDS", "KafkaCampaign", "KafkaVerdict", "judged"]

KINDS = ("engine", "broker", "worker", "jvm")
KEYS = 20
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class KafkaVerdict:
    """What is wrong with a topic, in rows."""

    rows: int
    lost: int
    doubled: int
    wrong: int
    out_of_order: int

    @property
    def is_clean(self) -> bool:
        return (self.lost, self.doubled, self.wrong, self.out_of_order) == (0, 0, 0, 0)


def judged(acknowledged: int, records: Sequence[dict[str, Any]]) -> KafkaVerdict:
    """The verdict over records as kcat prints them, where the first so many rows were acknowledged.

    Row n has the key ``k{n % KEYS}`` and the value ``v = n``; the dataflow drops every fifth and adds ``twice``.
    """
    wanted = {n for n in range(acknowledged) if n % 5 != 0}
    counts: Counter[int] = Counter()
    last: dict[str, tuple[int, int]] = {}
    wrong = out_of_order = 0
    for record in sorted(records, key=lambda one: (one["partition"], one["offset"])):
        row = json.loads(record["payload"])
        number, key = row["id"], record["key"]
        counts[number] += 1
        wrong += row != {"id": number, "k": key, "v": number, "twice": 2 * number} or key != f"k{number % KEYS}"
        partition, before = last.get(key, (record["partition"], -1))
        # One that is doubled is counted as that.
        out_of_order += record["partition"] != partition or (number < before and counts[number] == 1)
        last[key] = (record["partition"], max(number, before))
    doubled = sum(count - 1 for count in counts.values())
    lost, wrong = len(wanted - counts.keys()), wrong + len(counts.keys() - wanted)
    return KafkaVerdict(len(records), lost, doubled, wrong, out_of_order)


@dataclass(slots=True)
class KafkaCampaign:
    """An engine and a broker of its own; ``starts`` starts engines, ``to`` makes the target."""

    folder: Path
    starts: Starts
    to: Callable[[Path, Broker], Target] = lambda _, broker: KafkaTarget(broker)
    rows_per_s: int = 400
    broker: Broker = field(init=False)
    target: Target = field(init=False)
    engine: psutil.Process | None = None
    kills: Counter[str] = field(default_factory=Counter)
    _home: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)
    _acknowledged: int = 0
    _made: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _feeder: threading.Thread | None = None

    def __post_init__(self) -> None:
        place = Path(self._home.name)
        self.broker = Broker(place / "broker", free_port("127.0.0.1"), free_port("127.0.0.1"), f"judged broker {place}")
        place.chmod(0o755)  # a database's user may have to pass
        self.target = self.to(place / "target", self.broker)

    def begin(self) -> None:
        """Start broker, engine and the producer, and wait until rows come through."""
        self.broker.start()
        client, admin = self._admin()
        client.create_topics([admin.NewTopic("source", PARTITIONS, 1)])["source"].result(60)
        self.target.begin()
        self._write_flow()
        self._feeder = threading.Thread(target=self._feed, daemon=True)
        self._feeder.start()
        self._start_engine()
        self._wait_for_rows(0)

    def _write_flow(self) -> None:
        servers = {"servers": self.broker.servers}
        read = {**servers, "topics": ["source"], "start": "earliest", "format": "json"}
        tasks = [
            {"id": "read", "type": "read_kafka", "config": {**read, "columns": "id bigint, k string, v bigint"}},
            {"id": "kept", "type": "filter", "config": {"where": "id % 5 <> 0"}, "inputs": ["read"]},
            {"id": "more", "type": "derive", "config": {"columns": {"twice": "v * 2"}}, "inputs": ["kept"]},
            {"id": "out", **self.target.sink(), "inputs": ["more"]},
        ]
        (self.folder / "flow.json").write_text(json.dumps({"name": "judged", "tasks": tasks}))

    def _start_engine(self) -> None:
        options = ["--trigger", "200ms", "--master", "local[2]", "--state", str(self.folder / "state")]
        self.engine = self.starts.start(["run", str(self.folder / "flow.json"), *options], self.folder)

    def _feed(self) -> None:
        """Produce numbered rows at a steady rate; what the broker does not take at once is tried for minutes."""
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": self.broker.servers, "enable.idempotence": True, "message.timeout.ms": 600_000}
        producer = Producer({**settings, **CLIENT, "partitioner": "murmur2_random"})

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            self._acknowledged += 1

        began = time.monotonic()
        while not self._stop.is_set():
            while self._made < (time.monotonic() - began) * self.rows_per_s:
                key = f"k{self._made % KEYS}"
                row = {"id": self._made, "k": key, "v": self._made}
                producer.produce("source", json.dumps(row), key, on_delivery=delivered)
                self._made += 1
            producer.poll(0.05)
        assert producer.flush(PATIENCE_S) == 0

    # kills

    def kill(self, kind: str, dice: random.Random) -> None:
        """Kill something while it works, let it come back, and wait until rows that were made after that are out."""
        self.kills[kind] += 1
        own = {"engine": self._kill_engine, "jvm": self._kill_jvm, "worker": self._kill_worker}
        own["broker"] = self._kill_broker
        if kind in own:
            own[kind](dice)
        else:
            self.target.kills()[kind](dice.uniform(0, 3))
        self._wait_for_rows(self._made)
        print(f"{sum(self.kills.values())} kills, the last of {kind}", flush=True)

    def _kill_engine(self, dice: random.Random) -> None:
        del dice
        assert self.engine is not None
        self.engine.kill()
        self.starts.after_kill()
        self._start_engine()

    def _kill_jvm(self, dice: random.Random) -> None:
        assert self.engine is not None
        jvm = self.starts.jvm(self.engine)
        if jvm is not None:
            jvm.kill()
        self._kill_engine(dice)

    def _kill_worker(self, dice: random.Random) -> None:
        assert self.engine is not None
        parent = self.starts.python(self.engine)
        children = (
            [] if parent is None else [one for one in parent.children(recursive=True) if "java" not in one.name()]
        )
        with suppress(psutil.Error):
            if children:
                dice.choice(children).kill()

    def _kill_broker(self, dice: random.Random) -> None:
        assert self.broker.process is not None
        os.kill(self.broker.process.pid, signal.SIGKILL)
        time.sleep(dice.uniform(0, 3))  # for how long it is away is what varies
        reap()
        self.broker.start()

    # what comes out

    def _wait_for_rows(self, after: int) -> None:
        """Wait until as many rows are in the target as must be once so many have been made."""
        wanted = sum(n % 5 != 0 for n in range(after)) + 1
        self._wait(lambda: self.target.count() >= wanted, f"{wanted} records")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            log = self.folder / "log"
            said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            assert time.monotonic() < until, f"waited in vain for {what}\n{said}"
            time.sleep(0.1)

    def finish(self) -> KafkaVerdict:
        """Stop producing, wait until all that was acknowledged is out, or nothing more comes, and judge."""
        self._stop.set()
        assert self._feeder is not None
        self._feeder.join(PATIENCE_S)
        assert self._acknowledged == self._made
        wanted = sum(n % 5 != 0 for n in range(self._acknowledged))
        until = time.monotonic() + PATIENCE_S
        while len(records := self.target.records()) < wanted and time.monotonic() < until:
            time.sleep(0.5)
        return judged(self._acknowledged, records)

    def _admin(self) -> tuple[Any, Any]:
        import confluent_kafka.admin

        admin: Any = confluent_kafka.admin
        return admin.AdminClient({"bootstrap.servers": self.broker.servers}), admin

    def close(self) -> None:
        """End everything."""
        self._stop.set()
        self.starts.close()
        self.target.close()
        end(self.broker.mark, 1.0)
        with suppress(OSError):
            self._home.cleanup()
