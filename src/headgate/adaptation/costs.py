"""The cost of every alternate of every task, from the best knowledge that there is of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.observation import TaskProfile
from headgate.model.names import Signature
from headgate.model.task import Alternate, Task

__all__ = ["DEFAULT_CPU_S", "CostedTask", "Profiles", "alternate_costs"]

Profiles = Mapping[tuple[Signature, str], TaskProfile]
"""By task and alternate."""

DEFAULT_CPU_S = 1e-6
"""Of a row in a source or a sink whose cost nobody has measured or declared: their part of an epoch is small."""


@dataclass(frozen=True, slots=True)
class CostedTask:
    """A running task, as far as its cost goes."""

    signature: Signature
    task: Task
    active: str
    """Its active alternate."""

    is_end: bool = False
    """Whether it is a source or a sink."""


def alternate_costs(
    tasks: Iterable[CostedTask], measured: Profiles, stored: Profiles | None = None
) -> Iterator[AlternateCost]:
    """The costs of all alternates of some tasks; those of which nothing is known are left out.

    What was measured comes first, then what an engine stored before, what is declared, corrected by how far off the
    declaration of the active alternate is, and what is declared.

    >>> from headgate.model.names import TaskId
    >>> ways = Alternate("slow", "opaque", cost_s=0.01), Alternate("fast", "opaque", cost_s=0.002)
    >>> task = CostedTask(Signature("s"), Task(TaskId("t"), ways), "slow")
    >>> profile = TaskProfile(100, 0.02, 0.03, 0.0, 0, 0.1)
    >>> for cost in alternate_costs([task], {("s", "slow"): profile}):
    ...     print(cost.alternate, cost.cpu_s, round(cost.wait_s, 3), cost.origin)
    slow 0.02 0.01 measured
    fast 0.004 0.0 scaled
    """
    before = stored or {}
    for task in tasks:
        known = measured.get((task.signature, task.active)) or before.get((task.signature, task.active))
        for way in task.task.alternates:
            key = task.signature, way.name
            if key in measured:
                yield _profiled(key, way, measured[key], Origin.MEASURED)
            elif key in before:
                yield _profiled(key, way, before[key], Origin.STORED)
            elif (cost := _declared(task, way, known)) is not None:
                yield cost


def _profiled(key: tuple[Signature, str], way: Alternate, profile: TaskProfile, origin: Origin) -> AlternateCost:
    wait_s = max(profile.sojourn_s_per_row - profile.cpu_s_per_row, 0.0)
    return AlternateCost(*key, profile.cpu_s_per_row, origin, wait_s, profile.spread, way.selectivity)


def _declared(task: CostedTask, way: Alternate, known: TaskProfile | None) -> AlternateCost | None:
    key = task.signature, way.name
    if way.cost_s is None:
        return AlternateCost(*key, DEFAULT_CPU_S, Origin.DEFAULT, selectivity=way.selectivity) if task.is_end else None
    active = next(each for each in task.task.alternates if each.name == task.active)
    if known is not None and active.cost_s:
        cpu_s = way.cost_s * known.cpu_s_per_row / active.cost_s
        return AlternateCost(*key, cpu_s, Origin.SCALED, selectivity=way.selectivity)
    return AlternateCost(*key, way.cost_s, Origin.DECLARED, selectivity=way.selectivity)
