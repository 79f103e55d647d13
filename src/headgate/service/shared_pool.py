"""Simulations in which tasks share the cores of one pool, as on Spark; of several dataflows, merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from headgate.capacity.sharing import Sharing
from headgate.errors import BadValue, InputError
from headgate.model.capacity import FragmentLoad, Pool, StageLoad
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import TaskId
from headgate.model.service_level import ServiceLevel
from headgate.model.task_type import State
from headgate.service.load import load
from headgate.sharing.merge import merge
from headgate.simulation.setting import Setting
from headgate.tasks.registry import Registry

__all__ = ["SharedPool", "SimulatedGraph", "graph_of", "shared_setting"]

TASK_S = 0.005
"""Core-seconds of a partition without rows, as the engine assumes."""

TRIGGER_S = 0.5


@dataclass(frozen=True, slots=True)
class SharedPool:
    """The one pool of a simulation, and what epochs cost."""

    epoch_s: float = 2.0
    """Seconds that epochs aim at (L); 0 for messages that flow, which cost nothing but their work."""

    fixed_s: float = 0.2
    """Seconds of the driver in each epoch (f)."""

    def __post_init__(self) -> None:
        if self.epoch_s < 0 or self.fixed_s < 0 or (self.epoch_s and self.fixed_s >= self.epoch_s):
            message = f"epochs of {self.epoch_s:g} s, of which {self.fixed_s:g} s are spent before any row is processed"
            raise InputError("BAD_SETTING", f"{message}; expected epochs that are longer than that")


@dataclass(frozen=True, slots=True)
class SimulatedGraph:
    """What runs for one dataflow, or for several."""

    graph: Dataflow
    owners: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, ServiceLevel]


def graph_of(files: Sequence[Path], registry: Registry) -> SimulatedGraph:
    """One dataflow as it is; several merged, tasks that are equivalent once."""
    dataflows = [load(file, registry).dataflow for file in files]
    if len(dataflows) == 1:
        return SimulatedGraph(dataflows[0], {}, {})
    merged = merge(dataflows)
    owners = {
        str(dataflow.name): tuple(str(task) for task, users in merged.users.items() if dataflow.name in users)
        for dataflow in dataflows
    }
    levels = {str(dataflow.name): dataflow.service_level for dataflow in dataflows}
    graph = replace(merged.graph, service_level=_together(list(levels.values())))
    return SimulatedGraph(graph, owners, levels)


def _together(levels: Sequence[ServiceLevel]) -> ServiceLevel:
    """The strictest throughput; budgets and break-even costs add up where all name them."""
    best = [each.break_even_at_best_per_h for each in levels]
    worst = [each.break_even_at_worst_per_h for each in levels]
    return ServiceLevel(
        max(each.throughput_min for each in levels),
        min(each.throughput_tolerance for each in levels),
        budget_per_h=_sum([each.budget_per_h for each in levels]),
        break_even_at_best_per_h=_sum(best),
        break_even_at_worst_per_h=None if _sum(best) is None else _sum(worst),
    )


def _sum(amounts: Sequence[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal()) if len(known) == len(amounts) else None


def shared_setting(setting: Setting, registry: Registry, pool: SharedPool) -> Setting:
    """The same setting with one pool that all fragments share."""
    fluid = pool.epoch_s == 0
    loads = tuple(
        FragmentLoad(
            name,
            "spark",
            (StageLoad(tasks),),
            0.0 if fluid else pool.fixed_s,
            0.0 if fluid else TASK_S,
            min(TRIGGER_S, pool.epoch_s),
        )
        for name, tasks in fragments_of(setting.dataflow, registry).items()
    )
    try:
        return replace(setting, sharing=Sharing(loads, (Pool("spark", (), pool.epoch_s),)))
    except BadValue as error:
        raise InputError("BAD_SETTING", error.sentence) from None


def fragments_of(dataflow: Dataflow, registry: Registry) -> dict[str, tuple[str, ...]]:
    """What waits together: a source with the stateless tasks behind it; each task with state by itself.

    A task that rows of several fragments reach begins one, too; an engine would run it in each of them.
    """
    graph = Graph(dataflow)
    home: dict[TaskId, str] = {}
    for task in graph.order():
        before = {home[stream.source] for stream in graph.feeds[task] if not stream.feedback}
        kinds = {registry[way.type].state for way in graph.tasks[task].alternates}
        home[task] = before.pop() if len(before) == 1 and kinds == {State.NONE} else str(task)
    fragments: dict[str, tuple[str, ...]] = {}
    for task, root in home.items():
        fragments[root] = (*fragments.get(root, ()), str(task))
    return fragments
