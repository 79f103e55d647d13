"""What is observed of workers is what they did: busy shares against tasks of known length, speed against itself."""

from __future__ import annotations

import json
import math
import threading
import time
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.runtime.observing.speed import calibrated
from headgate.runtime.observing.workers import Workers
from headgate.runtime.spark_internals.executors import Executors
from tests.runtime.small import wait_for

pytestmark = pytest.mark.spark


def sleep_in_tasks(spark: SparkSession, tasks: int, seconds: float) -> None:
    spark.sparkContext.parallelize(range(tasks), tasks).foreach(lambda _: time.sleep(seconds))


def test_busy_is_the_share_of_cores_that_tasks_took(spark: SparkSession, tmp_path: Path) -> None:
    workers = Workers(spark, tmp_path, probe_every_s=math.inf)
    sleep_in_tasks(spark, 2, 0.1)  # Python's workers are up
    wait_for(lambda: not workers.executors.running_s(time.time()), "tasks of before")
    workers.observe(1.0)
    began = time.monotonic()
    sleep_in_tasks(spark, 1, 1.5)
    (one,) = workers.observe(time.monotonic() - began)
    assert one.workers == 1
    # One task of 1.5 s on one of several cores, from hand-over to result.
    took = time.monotonic() - began
    assert one.busy == pytest.approx(1.5 / took / one.cores, rel=0.35)
    wait_for(lambda: workers.observe(1.0).busy == (0.0,), "idle")


def test_tasks_under_way_count_as_they_go_and_not_when_they_end(spark: SparkSession, tmp_path: Path) -> None:
    workers = Workers(spark, tmp_path, probe_every_s=math.inf)
    sleep_in_tasks(spark, 2, 0.1)
    workers.observe(1.0)
    working = InheritableThread(target=sleep_in_tasks, args=(spark, 1, 4.0))
    working.start()
    wait_for(lambda: workers.executors.running_s(time.time()), "the task")
    workers.observe(1.0)
    shares = []
    for _ in range(2):
        began = time.monotonic()
        time.sleep(1.0)
        (seen,) = workers.observe(time.monotonic() - began)
        assert seen.busy is not None
        shares.append(seen.busy * seen.cores)
    working.join()
    assert shares == pytest.approx([1.0, 1.0], abs=0.35)


def test_machines_are_those_of_the_provider(spark: SparkSession, tmp_path: Path) -> None:
    (executor,) = Executors(spark).list()
    small = machine_class("small", 1, 2**30, Decimal("0.1"))
    machine = AcquiredMachine("small-7", small, executor.host, MachineState.READY, 0.0)
    known = Workers(spark, tmp_path, lambda: [machine], probe_every_s=math.inf)
    unknown = Workers(spark, tmp_path, probe_every_s=math.inf)
    assert [(seen.name, seen.vm_class) for seen in known.observe(1.0)] == [("small-7", "small")]
    assert [(seen.name, seen.vm_class) for seen in unknown.observe(1.0)] == [(executor.host, None)]


def test_a_core_is_about_as_fast_as_itself_and_a_probe_keeps_nobody_waiting(
    spark: SparkSession, tmp_path: Path
) -> None:
    workers = Workers(spark, tmp_path)
    (first,) = workers.observe(1.0)
    assert first.speed is None
    workers.wait_until_probed()
    for _ in range(4):
        workers.probe()
    (probed,) = workers.observe(1.0)
    assert probed.speed is not None
    assert 0.4 < probed.speed < 1.6
    assert not any(thread.name == "headgate-probe" for thread in threading.enumerate())


def test_the_reference_is_kept_and_one_of_another_python_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "reference.json"
    measured = calibrated(path)
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "seconds": 2 * measured}))
    assert calibrated(path) == 2 * measured
    path.write_text(json.dumps({**stored, "python": "2.7.18", "seconds": 100.0}))
    assert calibrated(path) < 10
    path.write_text("{half")
    assert calibrated(path) < 10


def test_work_on_each_executor_tells_where_it_was(spark: SparkSession) -> None:
    assert Executors(spark).on_each(lambda: "here") == {"driver": "here"}
