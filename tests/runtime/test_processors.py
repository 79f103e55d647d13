"""Processors of a task that waits: with more of them rows are at the sink sooner, as the model says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.bench.drs_live import Held, hold
from headgate.queueing.fitting.batch_costs import fit_costs
from headgate.queueing.network import Network, Operator
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow
from headgate.runtime.cluster import SparkCluster
from headgate.runtime.engine import Engine
from headgate.runtime.observing.measuring import Measuring
from tests.runtime.small import flow, memory

SERVICE_S, RATE_PER_S = 0.2, 4.0


@pytest.mark.spark
def test_a_second_processor_shortens_the_sojourn(spark: SparkSession, tmp_path: Path) -> None:
    recording = tmp_path / "recording.json"
    recording.write_text("".join(json.dumps({"id": number}) + "\n" for number in range(2_000)), encoding="utf-8")
    source = {"path": str(recording), "columns": "id bigint", "rate_per_s": RATE_PER_S}
    wait = {"function": "headgate.bench.waiting.wait", "options": {"seconds": SERVICE_S}}
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.1, measuring=Measuring(sample_every=None)) as engine:
        engine.submit(
            flow("f", {"type": "replay", "config": source}, {"id": "w", "type": "python", "config": wait}, memory("m"))
        )
        tasks = {"w": next(task for task, found in engine.plan.tasks.items() if found.name == "f.w")}
        cluster = SparkCluster(engine)
        hold(cluster, tasks, (2,), 2, 1, 10.0)  # Spark's workers start
        two: Held = hold(cluster, tasks, (2,), 1, 3, 8.0)
        one: Held = hold(cluster, tasks, (1,), 2, 3, 8.0)
    model = SparkFlow(Network((Operator("w", 1 / SERVICE_S, 0.0, RATE_PER_S),)), BatchCosts(0.0), 0.1)
    costs = fit_costs(model, [*one.then.samples((1,)), *two.then.samples((2,))])
    predicted = predict_flow(SparkFlow(model.network, costs, 0.1), [[1], [2]]).mean_s
    assert predicted[1] < predicted[0]
    assert two.then.mean_s < one.then.mean_s
