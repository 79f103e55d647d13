"""Windows and joins in a fragment's job: what they need of the rows before them, and what becomes of what they make."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headgate.model.work import ChainWork, RowWise
from headgate.runtime.chains.jobs import registered_chain
from headgate.runtime.compile.fusion import Fusion
from headgate.runtime.compile.plan import ChainedSide, CompiledPlan
from headgate.runtime.compile.schemas import Schemas

__all__ = ["enter_chained", "shaped"]


def shaped(plan: CompiledPlan, schemas: Schemas, of: ChainedSide) -> RowWise:
    """What a window or a join needs of the rows of a side."""
    task = plan.tasks[of.task]
    assert isinstance(task.work, ChainWork)
    return task.work.before(task.options, schemas.names_of_sides(plan, task))[of.side]


def enter_chained(fusion: Fusion, rows: DataFrame, schemas: Schemas) -> None:
    """Let what the tasks of a host of chains have made into a fusion: the tasks that the rows have columns for."""
    plan = fusion.plan
    tasks = []
    for signature in fusion.fragment.roots:
        if signature in plan.tasks:
            _, _, chain = registered_chain(schemas.chain(plan, plan.tasks[signature]))
            tasks.append((signature, chain.output.names, chain.after))
    fusion.chained(tasks, rows)
