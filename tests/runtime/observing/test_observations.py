"""What is observed equals what happened: rows into every task and out of it, sojourn at sinks, parts of batches."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from headgate.model.cluster.observation import Observation
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import Signature
from headgate.model.task import Alternate
from headgate.runtime.engine.engine import Engine
from headgate.sharing.deduplicate import deduplicate
from tests.runtime import functions
from tests.runtime.flows import COLUMNS, Expected, dataflow_of, documents, drop_file, make_rows
from tests.runtime.small import flow, memory, numbered, put, wait_for

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
    max_examples=2,
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


def test_sojourn_at_sinks_is_what_time_stamps_say(engine: Engine) -> None:
    source = {"id": "ticks", "type": "rate", "config": {"rows_per_s": 400}}
    call = {"type": "write_call", "config": {"function": "tests.runtime.functions.stamped"}}
    flows: dict[str, list[dict[str, Any]]] = {
        "plain": [],
        "filtered": [{"type": "filter", "config": {"where": "value % 3 = 0"}}],
        "python": [{"type": "python", "config": {"function": "tests.runtime.functions.same"}}],
        "keyed": [
            {"type": "derive", "config": {"columns": {"k": "value % 7"}}},
            {"type": "count", "config": {"key": ["k"]}},
        ],
    }
    functions.AGES_S.clear()
    named = {name: {"type": "derive", "config": {"columns": {"name": f"'{name}'"}}} for name in flows}
    observer = engine.observer()
    engine.submit(*(flow(name, source, *tasks, named[name], call) for name, tasks in flows.items()))
    wait_for(lambda: all(len(functions.AGES_S.get(name, ())) > 800 for name in flows), "rows at every sink")
    engine.stop()
    for sink in observer.observe().sinks:
        assert sink.sojourn is not None
        by_hand = np.array(functions.AGES_S[sink.name.split(".")[0]])
        assert sink.rows == len(by_hand)
        for told, share in ((sink.sojourn.p50_s, 50), (sink.sojourn.p95_s, 95), (sink.sojourn.p99_s, 99)):
            assert told == pytest.approx(np.percentile(by_hand, share), rel=0.10, abs=0.02), (sink, share)
        assert sink.sojourn.mean_s == pytest.approx(by_hand.mean(), rel=0.10, abs=0.02)


def test_parts_of_batches_and_rows_behind(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 4_000))
    recording = tmp_path / "in" / "0.json"
    config = {"path": str(recording), "columns": "id long, k string, v double", "rate_per_s": 2_000.0, "repeat": True}
    source = {"id": "src", "type": "replay", "config": config}
    began = time.monotonic()
    engine.submit(flow("a", source, {"type": "filter", "config": {"where": "id >= 0"}}, memory("a")))
    engine.limit("a", "src", 50)
    observer = engine.observer()
    wait_for(lambda: engine.fragments and next(iter(engine.fragments.values())).last.epoch >= 8, "some epochs")
    seen = observer.observe()
    (fragment,) = seen.fragments
    assert fragment.batches > 0
    assert fragment.rows_in == sum(sink.rows for sink in seen.sinks) == seen.tasks[0].rows_out
    parts = (fragment.planning_s, fragment.scheduling_s, fragment.execution_s, fragment.commit_s)
    assert min(parts) >= 0
    assert min(fragment.execution_s, fragment.commit_s) > 0
    assert sum(parts) == pytest.approx(fragment.batch_s)
    # It takes 50 rows an epoch and 2,000 a second are due: what it has not taken waits for it.
    assert fragment.bytes_behind is None, "a recording's bytes are not known"
    assert fragment.rows_behind is not None
    assert 0 < fragment.rows_behind <= 2_000 * (time.monotonic() - began)


def test_workers_are_forked_from_a_process_that_has_imported(spark: SparkSession) -> None:
    import pyarrow as pa

    def told(batches: Any) -> Any:
        import os
        from pathlib import Path

        list(batches)
        parent = Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0")
        yield pa.RecordBatch.from_pydict({"parent": [" ".join(parent)]})

    found = {row.parent for row in spark.range(1).mapInArrow(told, "parent string").collect()}
    assert all("headgate.runtime.spark_internals.daemon" in parent for parent in found), found
