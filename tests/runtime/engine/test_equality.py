"""The merged run puts out what each dataflow puts out alone, whatever is changed while it runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature, TaskId
from headgate.model.task import Alternate
from headgate.runtime.compile.plan import alternate_key
from headgate.runtime.engine.engine import Engine
from headgate.runtime.engine.plans import read_snapshot
from headgate.runtime.engine.snapshot import Snapshot
from headgate.sharing.deduplicate import deduplicate
from headgate.tasks.registry import default_registry
from tests.runtime.flows import COLUMNS, Expected, dataflow_of, documents, drop_file, make_rows, multiset
from tests.runtime.small import beside, ran_by

pytestmark = pytest.mark.spark


def source_in(folder: Path) -> dict[str, Any]:
    return {"type": "read_files", "config": {"path": str(folder), "columns": COLUMNS, "files_per_batch": 1}}


def snapshots_of_epochs(engine: Engine, files: int) -> list[Snapshot]:
    """The snapshot that each epoch of the source ran; an epoch reads one file."""
    (source,) = [f for f in engine.fragments.values() if f.fragment.kind == "source"]
    ran = ran_by(engine, source)
    return [read_snapshot(engine.journal, ran[epoch], default_registry()) for epoch in range(files)]


class History:
    """What one dataflow must have put out, over the epochs that ran it."""

    def __init__(self, spark: SparkSession, dataflow: Dataflow) -> None:
        self.spark = spark
        self.dataflow = dataflow
        self.signatures = deduplicate(dataflow).signatures
        self.expected = Expected(spark, dataflow)
        self.since: Mapping[str, int] = {}

    def epoch(self, file: Path, snapshot: Snapshot) -> None:
        if self.dataflow.name not in {flow.name for flow in snapshot.running}:
            return
        for task in self.dataflow.tasks:
            signature = Signature(self.signatures.get(task.id, ""))
            life = snapshot.since.get(signature, 0)
            if life != self.since.get(task.id, life):
                for alternate in task.alternates:
                    self.expected.states.pop((task.id, alternate.name), None)
            self.since = {**self.since, task.id: life}

        def active(task_id: str) -> Alternate:
            task = self.expected.graph.tasks[TaskId(task_id)]
            chosen = snapshot.active.get(self.signatures[task.id])
            best = max(task.alternates, key=lambda way: way.value)
            return next((way for way in task.alternates if alternate_key(way) == chosen), best)

        self.expected.epoch(file, active)


def check(engine: Engine, spark: SparkSession, flows: list[Dataflow], files: list[Path]) -> None:
    snapshots = snapshots_of_epochs(engine, len(files))
    note(f"snapshots of epochs: {[s.number for s in snapshots]}")
    for flow in flows:
        history = History(spark, flow)
        for file, snapshot in zip(files, snapshots, strict=True):
            history.epoch(file, snapshot)
        for task in flow.tasks:
            name = str(task.config.get("name", ""))
            if task.type == "write_memory" and task.id in history.signatures:
                assert multiset(engine.memory.rows(name)) == multiset(history.expected.sinks.get(name, [])), name


@contextmanager
def fresh_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headgate-test-") as parent:
        folder = Path(parent) / "in"
        folder.mkdir()
        yield folder


def run_many(spark: SparkSession, folder: Path, data: st.DataObject, seed: int) -> None:
    files = [drop_file(folder, 0, make_rows(0, 30, seed))]
    count = data.draw(st.integers(2, 5), label="dataflows")
    drawn = [data.draw(documents(f"flow{n}", source_in(folder))) for n in range(count)]
    flows = [dataflow_of(document) for document in drawn]
    with Engine(folder.parent / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(*flows)
        files += [drop_file(folder, n, make_rows(n, 30, seed)) for n in range(1, 4)]
        engine.wait_until_idle()
        check(engine, spark, [deduplicate(flow).dataflow for flow in flows], files)


def run_changes(spark: SparkSession, folder: Path, data: st.DataObject, seed: int, changes: int) -> None:
    files = [drop_file(folder, 0, make_rows(0, 20, seed))]
    keeper = dataflow_of(
        {
            "name": "keeper",
            "tasks": [
                {"id": "source", **source_in(folder)},
                {"id": "out", "type": "write_memory", "config": {"name": "keeper.0"}, "inputs": ["source"]},
            ],
        }
    )
    drawn = [dataflow_of(data.draw(documents(f"flow{n}", source_in(folder)))) for n in range(3)]
    flows = [beside(deduplicate(one).dataflow, "keeper") for one in drawn]
    with Engine(folder.parent / "state", spark=spark, trigger_s=0.05) as engine:
        engine.submit(keeper, flows[0])
        for number in range(1, changes + 1):
            change(engine, flows, data)
            files.append(drop_file(folder, number, make_rows(number, 20, seed)))
            if data.draw(st.booleans(), label="wait"):
                engine.wait_until_idle()
            engine.housekeep()
        engine.wait_until_idle()
        check(engine, spark, [keeper, *flows], files)


def change(engine: Engine, flows: list[Dataflow], data: st.DataObject) -> None:
    flow = data.draw(st.sampled_from(flows), label="dataflow")
    running = {known.name for known in engine.snapshot.dataflows}
    if flow.name not in running:
        engine.submit(flow)
        return
    kind = data.draw(st.sampled_from(["withdraw", "switch", "switch", "repartition", "pause"]), label="change")
    task = data.draw(st.sampled_from([t for t in flow.tasks if t.id != "source"]), label="task")
    if kind == "withdraw":
        engine.withdraw(flow.name)
    elif kind == "switch":
        dynamic = [t for t in flow.tasks if t.is_dynamic]
        if dynamic:
            chosen = data.draw(st.sampled_from(dynamic))
            engine.switch(flow.name, chosen.id, data.draw(st.sampled_from(["a", "b"])))
    elif kind == "repartition":
        engine.repartition(flow.name, task.id, data.draw(st.sampled_from([1, 3, None])))
    elif flow.name in engine.snapshot.paused:
        engine.resume(flow.name)
    else:
        engine.pause(flow.name)


# An example takes seconds, so a failing one is shown as it was drawn instead of being made smaller for many minutes.
quick = settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
thorough = settings(quick, max_examples=40, derandomize=False)


@quick
@given(data=st.data(), seed=st.integers(0, 999))
def test_merged_dataflows_put_out_what_each_does_alone(spark: SparkSession, data: st.DataObject, seed: int) -> None:
    with fresh_folder() as folder:
        run_many(spark, folder, data, seed)


@quick
@given(data=st.data(), seed=st.integers(0, 999))
def test_changes_while_running_put_out_what_their_snapshots_name(
    spark: SparkSession, data: st.DataObject, seed: int
) -> None:
    with fresh_folder() as folder:
        run_changes(spark, folder, data, seed, changes=6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@thorough
@given(data=st.data(), seed=st.integers(0, 999))
def test_many_random_merged_dataflows(spark: SparkSession, data: st.DataObject, seed: int) -> None:
    with fresh_folder() as folder:
        run_many(spark, folder, data, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@thorough
@given(data=st.data(), seed=st.integers(0, 999))
def test_many_random_changes(spark: SparkSession, data: st.DataObject, seed: int) -> None:
    with fresh_folder() as folder:
        run_changes(spark, folder, data, seed, changes=10)


def test_a_change_that_cannot_be_made_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    drop_file(folder, 0, make_rows(0, 5, 1))
    tasks = [
        {"id": "source", **source_in(folder)},
        {"id": "bad", "type": "filter", "config": {"where": "k + array(1) > 1"}, "inputs": ["source"]},
        {"id": "out", "type": "write_memory", "config": {"name": "bad"}, "inputs": ["bad"]},
    ]
    with pytest.raises(InputError, match=r"task 'f\.bad'"):
        engine.submit(dataflow_of({"name": "f", "tasks": tasks}))
    assert engine.snapshot.number == 0
    assert not engine.fragments
