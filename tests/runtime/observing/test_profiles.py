"""What a row costs in a task, measured beside the epochs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.model.cluster.observation import TaskProfile
from headgate.runtime.engine.engine import Engine
from headgate.runtime.observing.isolated_task import repeated
from headgate.runtime.observing.measuring import Measuring
from headgate_benchmarks import observe
from tests.runtime.small import flow, memory, numbered, put, wait_for

pytestmark = pytest.mark.spark

WAITING = {"type": "python", "config": {"function": "tests.runtime.functions.waiting"}}


@pytest.fixture
def profiled(spark: SparkSession, tmp_path: Path) -> dict[str, TaskProfile]:
    """The profiles of a task that waits, one that does not, and a keyed one, by dataflow."""
    put(tmp_path / "in", "0", numbered(0, 200))
    config = {"path": str(tmp_path / "in" / "0.json"), "columns": "id long, k string, v double"}
    source = {"id": "src", "type": "replay", "config": {**config, "rate_per_s": 100.0, "repeat": True}}
    hashed = {"type": "derive", "config": {"columns": {"h": "sha2(concat(k, v), 512)"}}}
    with Engine(
        tmp_path / "state", spark=spark, trigger_s=0.2, measuring=Measuring(sample_every=2, share=4.0)
    ) as engine:
        engine.submit(
            flow("waits", source, WAITING, memory("waits")),
            flow("hashes", source, hashed, memory("hashes")),
            flow("counts", source, {"type": "count", "config": {"key": ["k"]}}, memory("counts")),
        )
        names = {task.signature: task.users[0] for task in engine.plan.tasks.values() if len(task.users) == 1}
        observer = engine.observer()
        found: dict[str, TaskProfile] = {}

        def all_there() -> bool:
            for task in observer.observe().tasks:
                if task.profile is not None:
                    found[names[task.task]] = task.profile
            return len(found) == 3

        wait_for(all_there, "every task to be measured", patience_s=600)
        assert not engine.background.failures
    return found


@pytest.mark.timeout(900)
def test_time_waited_is_told_from_time_at_work(profiled: dict[str, TaskProfile]) -> None:
    waits, hashes, counts = profiled["waits"], profiled["hashes"], profiled["counts"]
    assert 0.002 <= waits.sojourn_s_per_row < 0.006
    assert waits.cpu_s_per_row < 0.001
    # What takes microseconds was measured over more rows than came; what takes milliseconds over few.
    assert waits.rows < 2_000 < hashes.rows
    for quick in (hashes, counts):
        assert 0 < quick.cpu_s_per_row <= quick.sojourn_s_per_row < 0.0005
        assert quick.transfer_s_per_row > 0


def test_rows_come_again_in_their_order(spark: SparkSession) -> None:
    # One that comes many times in a row is cheaper than a stream's rows are.
    rows = numbered(0, 100)
    frame = spark.createDataFrame(rows, "id long, k string, v double").coalesce(1).persist()
    assert [row.asDict() for row in repeated(frame, 4).collect()] == 4 * [row.asDict() for row in frame.collect()]
    frame.unpersist()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_cpu_per_row_is_that_of_a_micro_benchmark_of_the_task_alone(spark: SparkSession, tmp_path: Path) -> None:
    observe._write(tmp_path / "data", observe.OBSERVE.long.files, observe.OBSERVE.long.rows, 1)
    measured = observe._truth(spark, tmp_path, print, observe.OBSERVE.long)
    figures, samples = measured.figures, measured.samples
    errors = {name: value for name, value in figures.items() if name.startswith("cpu_error")}
    assert len(errors) == 4
    assert max(errors.values()) <= 0.15, samples
