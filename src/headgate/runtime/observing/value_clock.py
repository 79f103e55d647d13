"""The value of tasks over time: an alternate counts from the end of the first epoch in which it has made rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from headgate.errors import HeadgateError
from headgate.model.cluster.observation import Observation
from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask
from headgate.runtime.observing.records import EpochRecord

__all__ = ["ValueClock", "alternate_value"]


def alternate_value(task: CompiledTask) -> float:
    """The value of a task's active alternate, relative to the best."""
    ways = task.running.task
    names = [way.name for way in ways.alternates]
    return ways.relative_values[names.index(task.alternate.name)]


@dataclass(slots=True)
class ValueClock:
    """Keeps which value each task with alternates had when an interval ended."""

    _at_end: dict[Signature, float] = field(default_factory=dict)

    def valued(
        self,
        seen: Observation,
        plan: CompiledPlan,
        records: Sequence[EpochRecord],
        plans: Callable[[int], CompiledPlan],
    ) -> Observation:
        """An observation with the mean value over its interval of every task that has alternates."""
        dynamic = {signature for signature, task in plan.tasks.items() if task.running.task.is_dynamic}
        means, at_end = {}, {}
        for task in seen.tasks:
            if task.task in dynamic:
                changes = _changes(task.task, plan, records, plans)
                first = self._at_end.get(task.task, changes[0][1] if changes else task.value)
                means[task.task] = _mean(first, changes, seen)
                at_end[task.task] = changes[-1][1] if changes else first
        self._at_end = at_end
        if not means:
            return seen
        return replace(seen, tasks=tuple(replace(task, value=means.get(task.task, task.value)) for task in seen.tasks))


def _changes(
    task: Signature, plan: CompiledPlan, records: Iterable[EpochRecord], plans: Callable[[int], CompiledPlan]
) -> list[tuple[float, float]]:
    """When epochs of a task ended, and the value of the alternate that they ran."""
    changes = []
    for record in sorted(records, key=lambda one: one.ended):
        if record.fragment in plan.homes.get(task, ()):
            with suppress(HeadgateError):  # its snapshot is gone
                ran = plan if record.snapshot == plan.number else plans(record.snapshot)
                if task in ran.tasks:
                    changes.append((record.ended, alternate_value(ran.tasks[task])))
    return changes


def _mean(value: float, changes: Iterable[tuple[float, float]], seen: Observation) -> float:
    """The mean over the interval of a value that changes now and then."""
    at, total = seen.ended - seen.seconds, 0.0
    for when, after in changes:
        moment = min(max(when, at), seen.ended)
        total, at, value = total + value * (moment - at), moment, after
    return (total + value * (seen.ended - at)) / seen.seconds
