"""Plans of dataflows that are merged just as they are."""

from __future__ import annotations

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.stored import stored_dataflow
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry

__all__ = ["plan_of"]


def plan_of(*dataflows: Dataflow, number: int = 1) -> CompiledPlan:
    """The plan of a snapshot that has these dataflows."""
    shared, stored = SharedSet(default_registry()), dict[DataflowName, str]()
    for dataflow in dataflows:
        shared, _ = shared.merge(dataflow)
        stored[dataflow.name] = stored_dataflow(shared.running.find(dataflow.name)).id
    return compile_plan(Snapshot(shared, number, stored))
