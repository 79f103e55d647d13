"""Processors of a task that waits: with more of them rows are at the sink sooner, as the model says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headgate.adaptation.actions import SetPartitions
from headgate.queueing.fitting.batch_costs import fit_costs
from headgate.queueing.network import Network, Operator
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, batch_s
from headgate.runtime.engine.cluster import SparkCluster
from headgate.runtime.engine.engine import Engine
from headgate_benchmarks.drs.live import Summed
from tests.runtime.small import files, flow, memory, numbered, put

SERVICE_S, ROWS = 0.2, 16
WARM = 2
"""Batches in which Spark's workers start."""


@pytest.mark.spark
@pytest.mark.slow
def test_a_second_processor_shortens_the_sojourn(engine: Engine, tmp_path: Path) -> None:
    """Each batch is handed over when the one before is done, so rows wait for nothing but their own batch."""
    wait = {"function": "headgate_benchmarks.waiting.wait", "options": {"seconds": SERVICE_S}}
    (tmp_path / "in").mkdir()
    engine.submit(flow("f", files(tmp_path / "in"), {"id": "w", "type": "python", "config": wait}, memory("m")))
    task = next(task for task, outcome in engine.plan.tasks.items() if outcome.name == "f.w")
    cluster = SparkCluster(engine)
    seen = {2: Summed(), 1: Summed()}
    for number, processors in enumerate((2, 2, 1, 2, 1, 2)):
        cluster.apply([SetPartitions(task, processors)])
        put(tmp_path / "in", str(number), numbered(number * ROWS, ROWS))
        engine.wait_until_idle()
        observed = cluster.observe()
        if number >= WARM:
            seen[processors].add(observed)
    model = SparkFlow(Network((Operator("w", 1 / SERVICE_S, 0.0, 1.0),)), BatchCosts(0.0))
    costs = fit_costs(model, [sample for k, summed in seen.items() for sample in summed.samples((k,))])
    fitted = SparkFlow(model.network, costs)
    one, two = batch_s(fitted, fitted.fragments[0], np.array([[1], [2]]), np.array([ROWS, ROWS]))
    assert two < one
    assert seen[2].mean_s < seen[1].mean_s
    # Halving the waits shows through whatever batches cost on a busy machine.
    assert seen[1].mean_s - seen[2].mean_s > 0.3 * ROWS * SERVICE_S / 2
