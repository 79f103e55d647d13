"""The Spark part of ``headgate bench sharing``: on few dataflows it measures all that it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.model.strategy import StrategyName
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from headgate_benchmarks import sharing_spark
from headgate_benchmarks.share.collections import riotbench_like
from headgate_benchmarks.sharing_plots import plot


def test_runnable_dataflows_have_the_shape_of_the_collection() -> None:
    shared, tasks = SharedSet(default_registry(), semantic=False), 0
    collection = riotbench_like(1)
    for flow in collection.dataflows:
        made = sharing_spark.runnable(flow, Path("in"), Path("out"))
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
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_every_strategy_on_few_dataflows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"DATAFLOWS": 3, "WITHDRAWALS": 1, "WARM": 0, "FILES": 1, "ROWS": 200}.items():
        monkeypatch.setattr(sharing_spark, name, value)
    measured = sharing_spark.run(1, print)
    for strategy in StrategyName:
        assert measured.figures[f"cpu_ratio_{strategy.value}"] > 0
        assert measured.figures[f"operation_s_{strategy.value}"] > 0
        assert strategy.value in measured.table
    assert measured.figures["same_rows"] == 1.0
    assert measured.figures["queries_none"] > measured.figures["queries_hot"]
    assert [path.name for path in plot(measured, tmp_path)] == ["sharing-spark.png"]
