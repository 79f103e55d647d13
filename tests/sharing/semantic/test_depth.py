"""How deep the merged graph becomes: filters that imply each other must not read each other in a chain."""

from __future__ import annotations

from pathlib import Path

from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.sharing.running import RunningSet
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from headgate_benchmarks.runtime import tiny_dataflows


def depth(running: RunningSet) -> int:
    """How many tasks are on the longest way from a source to a sink."""
    levels: dict[Signature, int] = {}

    def level(signature: Signature) -> int:
        if signature not in levels:
            feeds = running.tasks[signature].running.feeds
            levels[signature] = 1 + max((level(stream.source) for stream in feeds), default=0)
        return levels[signature]

    return max(map(level, running.tasks))


def merged(flows: list[Dataflow]) -> RunningSet:
    shared = SharedSet(default_registry())
    for dataflow in flows:
        shared, _ = shared.submit(dataflow)
    return shared.running


def test_the_50_tiny_dataflows_of_bench_runtime_are_at_most_7_levels_deep() -> None:
    running = merged(tiny_dataflows(Path("in"), Path("out"), 50))
    assert depth(running) <= 7
    assert len(running.tasks) <= 200
