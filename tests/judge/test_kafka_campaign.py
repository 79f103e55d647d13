"""Kafka to Kafka, to PostgreSQL and to Delta under kills, judged; and the judge judged."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.machines.services.broker import Broker
from headgate.machines.services.database import server_programs
from headgate.machines.services.jars import kafka_jars
from tests.judge.kafka_campaign import KEYS, KINDS, KafkaCampaign, judged
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
