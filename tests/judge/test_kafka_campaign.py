"""Kafka to Kafka, to PostgreSQL and to Delta under kills, judged; and the judge judged."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.errors import InputError
from headgate.machines.services.broker import Broker
from headgate.machines.services.database import server_programs
from headgate.machines.services.jars import kafka_jars
from headgate.model.task_type import TaskConfig
from headgate.model.work import SinkContext, SinkWork
from headgate.tasks.database.write import WRITE_TABLE, WriteTable
from headgate.tasks.lakehouse.delta import WRITE_DELTA, WriteDelta
from tests.judge.kafka_campaign import KEYS, KINDS, KafkaCampaign, KafkaVerdict, judged
from tests.judge.kafka_targets import DeltaTarget, KafkaTarget, PostgresTarget, Target
from tests.judge.processes import WarmStarts


def records(numbers: list[int]) -> list[dict[str, Any]]:
    rows = [{"id": n, "k": f"k{n % KEYS}", "v": n, "twice": 2 * n} for n in numbers]
    return [
        {"partition": n % KEYS % 3, "offset": at, "key": row["k"], "payload": json.dumps(row)}
        for at, (n, row) in enumerate(zip(numbers, rows, strict=True))
    ]


GOOD = [n for n in range(200) if n % 5]


def test_the_judge_sees_each_kind_of_fault() -> None:
    assert judged(200, records(GOOD)).is_clean
    assert judged(200, records(GOOD[:7] + GOOD[8:])).lost == 1
    assert judged(200, records([*GOOD, GOOD[3]])).doubled == 1
    assert judged(200, records([*GOOD, 5])).wrong == 1
    assert judged(200, records([21, 1, *GOOD[1:20], *GOOD[21:]])).out_of_order == 1
    changed = records(GOOD)
    changed[3]["payload"] = changed[3]["payload"].replace('"twice": 8', '"twice": 9')
    assert judged(200, changed).wrong == 1


def check_target(target: Target, work: Any, options: TaskConfig) -> None:
    """Rows that a sink writes are read by the target as the judge wants them; a row that comes twice is seen."""
    assert isinstance(work, SinkWork)
    for epoch, numbers in enumerate((GOOD[:90], GOOD[90:])):
        rows = [{"id": n, "k": f"k{n % KEYS}", "v": n, "twice": 2 * n} for n in numbers]
        work.write(options, Delivered(epoch, pa.Table.from_pylist(rows)), SinkContext(None, None, "f.t", "0af3"))
        assert target.count() == (90, len(GOOD))[epoch]
    assert judged(200, target.records()).is_clean
    again = pa.Table.from_pylist([{"id": 1, "k": "k1", "v": 1, "twice": 2}])
    work.write(options, Delivered(2, again), SinkContext(None, None, "f.t", "0af3"))
    assert judged(200, target.records()) == KafkaVerdict(len(GOOD) + 1, 0, 1, 0, 0)


@dataclass(frozen=True)
class Delivered:
    """The rows of an epoch."""

    epoch: int
    rows: pa.Table
    origin: str = "run-1"
    files: tuple[tuple[str, int], ...] = ()

    def table(self) -> pa.Table:
        return self.rows


def test_what_is_read_of_a_delta_table(tmp_path: Path) -> None:
    target = DeltaTarget(tmp_path / "t")
    check_target(target, WRITE_DELTA.work, WriteDelta.model_validate(target.sink()["config"]))


@pytest.mark.spark  # not for Spark: for the server
def test_what_is_read_of_a_table_of_postgresql() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        target = PostgresTarget(Path(place) / "data")
        try:
            target.begin()
            check_target(target, WRITE_TABLE.work, WriteTable.model_validate(target.sink()["config"]))
        finally:
            target.close()


TARGETS: dict[str, Callable[[Path, Broker], Target]] = {
    "kafka": lambda _, broker: KafkaTarget(broker),
    "postgresql": lambda folder, _: PostgresTarget(folder),
    "delta": lambda folder, _: DeltaTarget(folder),
}


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("to", TARGETS)
def test_from_kafka_while_everything_is_killed(tmp_path: Path, to: str) -> None:
    """As many kills of each kind as HEADGATE_KAFKA_KILLS says, in random order. Prints what was judged."""
    if shutil.which("kcat") is None:
        pytest.skip("no kcat: a client that is not ours has to check what was written")
    try:
        kafka_jars().fetch()
        server_programs()
    except InputError as error:
        pytest.skip(error.message)
    dice = random.Random(int(os.environ.get("HEADGATE_KAFKA_SEED", "7")))
    campaign = KafkaCampaign(tmp_path, WarmStarts(), TARGETS[to])
    kinds = [*KINDS, *campaign.target.kills()] * int(os.environ.get("HEADGATE_KAFKA_KILLS", "3"))
    dice.shuffle(kinds)
    try:
        campaign.begin()
        for kind in kinds:
            campaign.kill(kind, dice)
        verdict = campaign.finish()
    finally:
        campaign.close()
    print(to, dict(campaign.kills), verdict)
    assert verdict.is_clean, verdict
    assert verdict.rows > 0
