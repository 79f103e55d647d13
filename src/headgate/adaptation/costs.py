"""The cost of every alternate of every task, from the best knowledge that there is of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.observation import TaskProfile
from headgate.model.names import Signature
from headgate.model.task import Alternate, Task
from headgate.model.task_type import TaskType

__all__ = ["CostedTask", "Profiles", "alternate_costs"]

Profiles = Mapping[tuple[Signature, str], TaskProfile]
"""By task and alternate."""


@dataclass(frozen=True, slots=True)
class CostedTask:
    """A running task, as far as its cost goes."""

    signature: Signature
    task: Task
    active: str
    """Its active alternate."""


def alternate_costs(
    tasks: Iterable[CostedTask],
    kinds: Mapping[str, TaskType],
    measured: Profiles,
    stored: Profiles | None = None,
    speed: float = 1.0,
) -> Iterator[AlternateCost]:
    """The costs of all alternates of some tasks; those of which nothing is known are left out.

    What was measured comes first, on cores of power ``speed``; then what an engine stored before, for the reference
    core; what is declared, corrected by how far off the declaration of the active alternate is; what is declared; and
    what is usual for the task type.

    >>> from headgate.model.names import TaskId
    >>> ways = Alternate("slow", "opaque", cost_s=0.01), Alternate("fast", "opaque", cost_s=0.002)
    >>> task = CostedTask(Signature("s"), Task(TaskId("t"), ways), "slow")
    >>> profile = TaskProfile(100, 0.02, 0.03, 0.0, 0, 0.1)
    >>> for cost in alternate_costs([task], {}, {("s", "slow"): profile}):
    ...     print(cost.alternate, cost.cpu_s, round(cost.wait_s, 3), cost.origin)
    slow 0.02 0.01 measured
    fast 0.004 0.002 scaled
    """
    before = stored or {}
    for task in tasks:
        profiled: dict[str, AlternateCost] = {}
        for way in task.task.alternates:
            key = task.signature, way.name
            if key in measured:
                profiled[way.name] = _profiled(key, way, measured[key], Origin.MEASURED, speed)
            elif key in before:
                profiled[way.name] = _profiled(key, way, before[key], Origin.STORED)
        for way in task.task.alternates:
            cost = profiled.get(way.name) or _unprofiled(task, way, kinds.get(way.type), profiled.get(task.active))
            if cost is not None:
                yield cost


def _profiled(
    key: tuple[Signature, str], way: Alternate, profile: TaskProfile, origin: Origin, speed: float = 1.0
) -> AlternateCost:
    """Work takes longer on a slow core; waiting does not."""
    wait_s = max(profile.sojourn_s_per_row - profile.cpu_s_per_row, 0.0)
    return AlternateCost(*key, profile.cpu_s_per_row * speed, origin, wait_s, profile.spread, way.selectivity)


def _unprofiled(
    task: CostedTask, way: Alternate, kind: TaskType | None, active: AlternateCost | None
) -> AlternateCost | None:
    declared = next(each.cost_s for each in task.task.alternates if each.name == task.active)
    cpu_s, wait_s, origin = way.cost_s, 0.0, Origin.DECLARED
    if cpu_s is not None and active is not None and declared:
        # Who declares a cost means the time for which a core is held, at work or not.
        cpu_s, wait_s = cpu_s * active.cpu_s / declared, cpu_s * active.wait_s / declared
        origin = Origin.SCALED
    elif cpu_s is None and kind is not None:
        cpu_s, origin = kind.typical_cost_s, Origin.DEFAULT
    if cpu_s is None:
        return None
    return AlternateCost(task.signature, way.name, cpu_s, origin, wait_s, selectivity=way.selectivity)
