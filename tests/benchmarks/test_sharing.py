"""``headgate bench sharing``: bounds that hold on small sizes, and pictures from the samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from headgate_benchmarks.share.collections import riotbench_like
from headgate_benchmarks.sharing import SHARING, _speed
from headgate_benchmarks.sharing_spark import runnable


def test_figures_table_and_pictures(tmp_path: Path) -> None:
    measured = SHARING.parts["merging"](1, lambda _: None, SHARING.smoke)
    figures = measured.figures
    assert figures["semantic_reuses"] > 0
    assert 0.2 < figures["riotbench_rw1_task_reduction"] < 0.6
    assert figures["riotbench_rw1_hot_operation_s"] < figures["riotbench_rw1_none_operation_s"]
    assert figures["paper_riotbench_rw1_task_reduction"] == 0.45
    (table,) = measured.tables
    incremental = next(row for row in table.rows if (row["trace"], row["strategy"]) == ("RW1", "incremental"))
    assert str(incremental["task_reduction"]).endswith("(45%)")
    assert SHARING.plot is not None
    pictures = SHARING.plot(measured, tmp_path / "plots")
    assert [path.name for path in pictures] == [
        f"sharing-{name}.png" for name in ("tasks", "workers", "operations", "costs")
    ]
    assert all(path.stat().st_size > 10_000 for path in pictures)


def test_runnable_dataflows_have_the_shape_of_the_collection() -> None:
    shared, tasks = SharedSet(default_registry(), semantic=False), 0
    collection = riotbench_like(1)
    for flow in collection.dataflows:
        made = runnable(flow, Path("in"), Path("out"))
        steps = [task for task in made.tasks if task.type != "write_files"]
        assert [task.id for task in steps] == [task.id for task in flow.tasks]
        between = [(s.source, s.target) for s in made.streams if not s.target.endswith("_out")]
        assert sorted(between) == sorted((s.source, s.target) for s in flow.streams)
        shared, _ = shared.submit(made)
        tasks += len(steps)
    running = [used.running.task for used in shared.running.tasks.as_dict().values()]
    merged = [task for task in running if task.type != "write_files"]
    assert (tasks, len(merged)) == (138, collection.facts()["merged"])


@pytest.mark.slow
def test_a_merge_costs_what_its_own_size_is() -> None:
    figures = _speed(1, lambda _: None, SHARING.long).figures
    assert figures["merges_per_s"] >= 5_000
    assert figures["growth"] <= 1.5
