"""What is observed equals what happened: rows into every task and out of it, sojourn at sinks, parts of batches."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import Signature
from headgate.model.observation import Observation
from headgate.model.task import Alternate
from headgate.runtime.engine import Engine
from headgate.sharing.deduplicate import deduplicate
from tests.runtime.flows import COLUMNS, Expected, dataflow_of, documents, drop_file, make_rows

pytestmark = pytest.mark.spark


class Counting(Expected):
    """Counts the rows of every task as well."""

    def __init__(self, spark: SparkSession, dataflow: Dataflow) -> None:
        super().__init__(spark, dataflow)
        self.counts: Counter[tuple[str, str]] = Counter()

    def passed(self, task_id: str, rows_in: DataFrame, rows_out: DataFrame | None) -> None:
        self.counts[task_id, "in"] += rows_in.count()
        self.counts[task_id, "out"] += (rows_in if rows_out is None else rows_out).count()


def counts_of(observation: Observation) -> dict[str, tuple[int, int]]:
    """Rows into tasks and out of them, by signature."""
    found = {str(task.task): (task.rows_in, task.rows_out) for task in observation.tasks}
    return found | {str(sink.task): (sink.rows, sink.rows) for sink in observation.sinks}


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_rows_of_every_task_are_counted_exactly(spark: SparkSession, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        source = {
            "type": "read_files",
            "config": {"path": str(folder / "in"), "columns": COLUMNS, "files_per_batch": 1},
        }
        (folder / "in").mkdir()
        flows = [dataflow_of(data.draw(documents(name, source))) for name in ("a", "b", "c")]
        rows = [drop_file(folder / "in", number, make_rows(number, 40, 1)) for number in range(2)]
        with Engine(folder / "state", spark=spark, trigger_s=0.1) as engine:
            observer = engine.observer()
            engine.submit(*flows)
            engine.wait_until_idle()
            found = counts_of(observer.observe())
        needed = {signature for dataflow in flows for signature in leading_to_sinks(dataflow)}
        for dataflow in flows:
            expected = Counting(spark, dataflow)
            for file in rows:
                expected.epoch(file, partial(best_of, dataflow))
            signatures = deduplicate(dataflow).signatures
            for task in dataflow.tasks:
                wanted = tuple(expected.counts[task.id, side] for side in ("in", "out"))
                # What leads to no sink is not run.
                runs = signatures.get(task.id) in needed
                if task.id != "source" and task.id in signatures:
                    assert found[signatures[task.id]] == (wanted if runs else (0, 0)), (task, dataflow)
                elif task.id == "source":
                    assert found[signatures[task.id]] == (80, 80)


def leading_to_sinks(dataflow: Dataflow) -> set[Signature]:
    """The tasks from which rows reach a sink."""
    graph, signatures = Graph(dataflow), deduplicate(dataflow).signatures
    found = {task.id for task in dataflow.tasks if task.type == "write_memory"}
    for task_id in reversed(graph.order()):
        if task_id in found:
            found |= {stream.source for stream in graph.feeds[task_id]}
    return {signatures[task_id] for task_id in found}


def best_of(dataflow: Dataflow, task_id: str) -> Alternate:
    (task,) = [task for task in dataflow.tasks if task.id == task_id]
    return max(task.alternates, key=lambda way: way.value)
