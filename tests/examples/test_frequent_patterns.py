"""Frequent patterns on Spark, with their loop: what is reported for points of the stream, against batch miners.

The dataflow is that of examples/patterns, with files in the place of the clock: entering and leaving transactions come
from two sources, whose fragments race each other.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from pyspark.ml.fpm import FPGrowth
from pyspark.sql import SparkSession

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, put

pytestmark = pytest.mark.spark

HERE = Path(__file__).parents[2] / "examples" / "patterns"
COLUMNS = "at bigint, items array<string>, change int"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(HERE)
    return importlib.import_module("check_patterns")


def dataflow(folder: Path, files_per_batch: int | None = None, **options: int) -> Dataflow:
    document = yaml.safe_load((HERE / "patterns.yaml").read_text())
    tasks = {task["id"]: task for task in document["tasks"] if task["id"] != "clock"}
    some = {} if files_per_batch is None else {"files_per_batch": files_per_batch}
    for name in ("entering", "leaving"):
        tasks[name] = {"id": name, **files(folder / name, columns=COLUMNS, **some)}
    tasks["detector"]["config"]["options"] |= options
    tasks["report"].update(type="write_memory", config={"name": "report"})
    text = json.dumps({**document, "tasks": list(tasks.values())})
    return parse(text.replace("frequent_patterns.", "examples.patterns.frequent_patterns."), "json").dataflow


def put_transactions(check: ModuleType, folder: Path, window: int, numbers: Sequence[int]) -> None:
    made = importlib.import_module("transactions")
    ticks = [{"value": number} for number in numbers]
    leaving = [row for tick in ticks if (row := made.leaving(tick, window)) is not None]
    put(folder / "leaving", f"{numbers[0]:06d}", leaving)
    put(folder / "entering", f"{numbers[0]:06d}", [made.entering(tick) for tick in ticks])


def mined(spark: SparkSession, transactions: Sequence[Sequence[str]], threshold: int) -> set[str]:
    """The maximal frequent patterns as Spark's own miner finds them."""
    frame = spark.createDataFrame([(list(items),) for items in transactions], "items array<string>")
    miner = FPGrowth(itemsCol="items", minSupport=(threshold - 0.5) / len(transactions), numPartitions=1)
    outcome = [frozenset(row["items"]) for row in miner.fit(frame).freqItemsets.collect()]
    return {" ".join(sorted(one)) for one in outcome if not any(one < other for other in outcome)}


def reported(engine: Engine) -> list[dict[str, Any]]:
    return engine.memory.rows("report")


def test_the_report_is_what_a_miner_finds(
    engine: Engine, spark: SparkSession, tmp_path: Path, check: ModuleType
) -> None:
    window, threshold, step, count = 50, 3, 45, 90
    for name in ("entering", "leaving"):
        (tmp_path / name).mkdir()
    engine.submit(dataflow(tmp_path, threshold=threshold))
    for first in range(0, count, step):
        put_transactions(check, tmp_path, window, range(first, first + step))
        engine.wait_until_idle()  # the loop has drained, so the answer is complete
        last = first + step - 1
        there = [check.transaction(number) for number in range(max(0, last - window + 1), last + 1)]
        outcome = check.maximal_at(reported(engine), last)
        assert outcome == check.maximal(there, threshold)
        patterns = [set(pattern.split()) for pattern in outcome]
        assert all(any(set(known) <= one for one in patterns) for known in check.known(last)), "what was planted"
    assert outcome == mined(spark, there, threshold)
    # And for all points in between, though the micro-batches ended elsewhere.
    assert check.wrong_at(reported(engine), range(0, count, 7), window, threshold) == []
    assert any(row["change"] < 0 for row in reported(engine)), "some patterns must have gone again"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_longer_stream_in_many_micro_batches(engine: Engine, tmp_path: Path, check: ModuleType) -> None:
    """The window and the threshold of the example; a micro-batch of each source has transactions of its own."""
    for first in range(0, 1_200, 60):
        put_transactions(check, tmp_path, check.WINDOW, range(first, first + 60))
    # All of it is there at once, so what leads back may come after the last transaction: the horizon must be as long.
    engine.submit(dataflow(tmp_path, files_per_batch=3, horizon=2_400))
    engine.wait_until_idle()
    assert check.wrong_at(reported(engine), range(0, 1_200, 10), check.WINDOW, check.THRESHOLD) == []
    # What was planted in a phase is found while the window holds little else.
    made = importlib.import_module("transactions")
    ends = range(made.PHASE - 1, 1_200, made.PHASE)
    for end in ends:
        patterns = [set(pattern.split()) for pattern in check.maximal_at(reported(engine), end)]
        assert all(any(set(known) <= one for one in patterns) for known in check.known(end)), end
