"""``headgate bench kafka``: Kafka to Kafka beside Structured Streaming, with a real broker on the same machine.

Everything is measured in one run, on one Spark, the two sides of each ratio taking turns on the same topic:

- ``cpu_vs_pyspark``: CPU of one dataflow from topic to topic over that of the same query written by hand over Spark's
  connector; ``shared_cpu_vs_pyspark``: of 8 dataflows with a common prefix over 8 such queries. The broker's CPU is
  left out (``broker_share`` is its part on Headgate's side). Headgate writes exactly once, Spark's sink at least once;
- ``microbatch_p50_ms``, ``microbatch_p99_ms``: micro-batches at 5,000 rows/s with a trigger of 300 ms.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import psutil

from headgate.machines.processes import end
from headgate.machines.services.broker import Broker
from headgate.machines.services.jars import PinnedJars
from headgate.machines.standalone import free_port
from headgate.model.dataflow import Dataflow
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.cpu_clock import cpu_seconds
from headgate_benchmarks.on_spark import READINGS, on_spark, readings
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.workloads import dataflow_of

__all__ = ["KAFKA"]

PARTITIONS, BATCHES = 4, 4
TRIGGER_S = 0.3
CLEAN = "t between -10 and 50 and h between 5 and 95"


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int = 3
    one: int = 400_000
    eight: int = 100_000
    rows_per_s: int = 5_000
    seconds: float = 60.0
    warm: int = 20


@contextmanager
def _broker() -> Iterator[Broker]:
    """A broker of its own; its processes are this one's children, so their CPU is counted and taken off again."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-kafka-"))
    broker = Broker(folder, free_port("127.0.0.1"), free_port("127.0.0.1"), f"measured {folder}")
    try:
        broker.start()
        yield broker
    finally:
        end(broker.mark, 5.0)
        shutil.rmtree(folder, ignore_errors=True)


def _topic(broker: Broker, name: str) -> str:
    import confluent_kafka.admin

    admin: Any = confluent_kafka.admin
    client = admin.AdminClient({"bootstrap.servers": broker.servers})
    client.create_topics([admin.NewTopic(name, PARTITIONS, 1)])[name].result(60)
    return name


def _fill(broker: Broker, name: str, rows: int, seed: int) -> str:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 20, "compression.type": "lz4"})
    for line in readings(rows, random.Random(seed)).splitlines():
        while True:
            try:
                producer.produce(name, line)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    return name


def _tail(number: int) -> tuple[str, dict[str, str], list[str]]:
    """What a dataflow has of its own."""
    made = {"heat": f"t * {1 + number / 10} + h / {2 + number}", "place": f"upper(concat(zone, '-{number}'))"}
    return f"t > {number % 40 - 10}", made, ["id", "sensor", "heat", "place"]


def _dataflow(name: str, broker: Broker, source: str, target: str, number: int, rows_per_batch: int | None) -> Dataflow:
    where, made, kept = _tail(number)
    servers = {"servers": broker.servers}
    read = {**servers, "topics": [source], "start": "earliest", "format": "json", "columns": READINGS}
    limit = {} if rows_per_batch is None else {"rows_per_batch": rows_per_batch}
    write = {**servers, "topic": target, "key": "sensor", "transactional_id": target}
    tasks: list[dict[str, Any]] = [
        {"id": "read", "type": "read_kafka", "config": {**read, **limit}},
        {"id": "clean", "type": "filter", "config": {"where": CLEAN}, "inputs": ["read"]},
        {"id": "mine", "type": "filter", "config": {"where": where}, "inputs": ["clean"]},
        {"id": "made", "type": "derive", "config": {"columns": made}, "inputs": ["mine"]},
        {"id": "kept", "type": "select", "config": {"columns": kept}, "inputs": ["made"]},
        {"id": "out", "type": "write_kafka", "config": write, "inputs": ["kept"]},
    ]
    return dataflow_of(name, tasks)


def _costs(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    spent: dict[str, list[float]] = {}
    with on_spark() as (spark, folder), _broker() as broker:
        _with_connector(spark)
        progress("filling topics")
        sources = {1: _fill(broker, _topic(broker, "one"), sizes.one, seed)}
        sources[8] = _fill(broker, _topic(broker, "eight"), sizes.eight, seed)
        rows = {1: sizes.one, 8: sizes.eight}
        for turn in range(sizes.rounds + 1):
            for count, source in sources.items():
                outputs = []
                for side, run in (("hand", _by_hand), ("headgate", _under_headgate)):
                    progress(f"cost of {count}, {side}, round {turn} of {sizes.rounds}, 0 warms up")
                    targets = [_topic(broker, f"{side}-{count}-{turn}-{n}") for n in range(count)]
                    work = partial(run, spark, broker, folder / targets[0], source, targets, rows[count] // BATCHES)
                    used, of_broker = _cpu_of(work, broker)
                    if turn:
                        spent.setdefault(f"{side}_{count}", []).append(used)
                        spent.setdefault(f"{side}_{count}_broker", []).append(of_broker)
                    outputs.append([_count(broker, target) for target in targets])
                assert outputs[0] == outputs[1], f"the two sides put out different numbers of rows: {outputs}"
    medians = {name: statistics.median(values) for name, values in spent.items()}
    figures = {
        "cpu_vs_pyspark": medians["headgate_1"] / medians["hand_1"],
        "shared_cpu_vs_pyspark": medians["headgate_8"] / medians["hand_8"],
        "hand_cpu_s_per_million": medians["hand_1"] / sizes.one * 1e6,
        "headgate_cpu_s_per_million": medians["headgate_1"] / sizes.one * 1e6,
        "broker_share": medians["headgate_1_broker"] / (medians["headgate_1"] + medians["headgate_1_broker"]),
    }
    return Measured(figures, spent)


def _cpu_of(work: Callable[[], None], broker: Broker) -> tuple[float, float]:
    """CPU seconds of some work without the broker's, and the broker's."""
    assert broker.process is not None
    process = psutil.Process(broker.process.pid)

    def of_broker() -> float:
        times = process.cpu_times()
        return times.user + times.system

    before, broker_before = cpu_seconds(), of_broker()
    work()
    spent, at_broker = cpu_seconds() - before, of_broker() - broker_before
    return spent - at_broker, at_broker


def _with_connector(spark: Any) -> None:
    """Let a running Spark have its connector, for the side that is written by hand."""
    package = resources.files("headgate_benchmarks.kafka")
    pom, pins = (package.joinpath(f"connector.{suffix}").read_bytes() for suffix in ("pom", "sha256"))
    for jar in sorted(PinnedJars("connector", "Spark's connector for Kafka", pom, pins).fetch().glob("*.jar")):
        spark.sql(f"add jar '{jar}'")


def _by_hand(spark: Any, broker: Broker, place: Path, source: str, targets: list[str], rows: int) -> None:
    """The pipelines as one would write them: a query each."""
    queries = []
    for number, target in enumerate(targets):
        where, made, kept = _tail(number)
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.servers)
        reader = reader.option("subscribe", source).option("startingOffsets", "earliest")
        frame = reader.option("maxOffsetsPerTrigger", rows).load()
        frame = frame.selectExpr(f"from_json(cast(value as string), '{READINGS}') as row").select("row.*")
        frame = frame.where(CLEAN).where(where)
        frame = frame.selectExpr("*", *(f"{text} as {name}" for name, text in made.items())).select(*kept)
        frame = frame.selectExpr("sensor as key", "to_json(struct(*)) as value")
        writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", broker.servers)
        writer = writer.option("topic", target).option("checkpointLocation", str(place / f"check{number}"))
        queries.append(writer.trigger(availableNow=True).start())
    for query in queries:
        query.awaitTermination()


def _under_headgate(spark: Any, broker: Broker, place: Path, source: str, targets: list[str], rows: int) -> None:
    from headgate.runtime.engine.engine import Engine

    flows = [_dataflow(f"flow{n}", broker, source, target, n, rows) for n, target in enumerate(targets)]
    with Engine(place, spark=spark, trigger_s=0.0) as engine:
        engine.submit(*flows)
        engine.wait_until_idle()
        assert not engine.failures(), engine.failures()


def _count(broker: Broker, topic: str) -> int:
    """The committed records of a topic, as a client of its own counts them."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": broker.servers, "group.id": "count", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    count = ended = 0
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, 1.0):
            ended += message.error() is not None
            count += message.error() is None
    consumer.close()
    return count


def _latency(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """One dataflow from topic to topic at a steady rate."""
    from headgate.runtime.engine.engine import Engine

    took: dict[int, float] = {}
    with on_spark() as (spark, place), _broker() as broker:
        source, target = _topic(broker, "source"), _topic(broker, "target")
        progress(f"{sizes.rows_per_s:,} rows/s for {sizes.seconds:g} s")
        with Engine(place / "state", spark=spark, trigger_s=TRIGGER_S) as engine:
            engine.submit(_dataflow("steady", broker, source, target, 0, None))
            (fragment,) = engine.fragments.values()
            for _ in _fed(broker, source, sizes, seed):
                if fragment.query is not None:
                    for each in fragment.query.recentProgress[-20:]:
                        took[each["batchId"]] = float(each["durationMs"]["triggerExecution"])
            assert not engine.failures(), engine.failures()
    kept = [ms for _, ms in sorted(took.items())][sizes.warm :]
    ordered = sorted(kept)
    p99 = ordered[min(int(0.99 * len(ordered)), len(ordered) - 1)]
    return Measured({"microbatch_p50_ms": statistics.median(kept), "microbatch_p99_ms": p99}, {"microbatch_ms": kept})


def _fed(broker: Broker, topic: str, sizes: Sizes, seed: int) -> Iterator[None]:
    """Produce at the rate, for the time; a turn of the caller's in between."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 5})
    lines = readings(10_000, random.Random(seed)).splitlines()
    began, made = time.monotonic(), 0
    while (passed := time.monotonic() - began) < sizes.seconds:
        while made < passed * sizes.rows_per_s:
            producer.produce(topic, lines[made % len(lines)])
            made += 1
        producer.poll(0.05)
        yield
    producer.flush(60)


KAFKA = Benchmark(
    "kafka",
    "Kafka to Kafka beside Structured Streaming: CPU of one dataflow and of eight, and micro-batches.",
    {"cost": _costs, "latency": _latency},
    Sizes(),
    Sizes(1, 2_000, 1_000, 500, 6.0, 2),
    "cpu_vs_pyspark shared_cpu_vs_pyspark hand_cpu_s_per_million headgate_cpu_s_per_million broker_share "
    "microbatch_p50_ms microbatch_p99_ms",
    spark=("local[2]", "3g"),
)
