"""A task in full: what it does and how, what it costs and who pays for it, and the snapshots that touched it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.errors import unknown
from headgate.model.alternate_choice import ActiveAlternate
from headgate.model.cluster.alternate_cost import AlternateCost
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.service.console.choices import SnapshotChoices
from headgate.service.console.hourly import MachinePrice
from headgate.service.console.rates import NodeRates, node_rates
from headgate.service.console.recent import TASK, TASKS_KEPT, Recent
from headgate.sharing.running import RunningSet, UsedTask
from headgate.tasks.registry import Registry

__all__ = ["TaskAlternate", "TaskPanel", "TaskSharer", "find_running_task", "task_panel"]


@dataclass(frozen=True, slots=True)
class TaskAlternate:
    """One way to do a task."""

    name: str
    type: str
    options: Mapping[str, object] | None
    """None for who may not see the documents of any dataflow that uses it."""

    active: bool
    value: float
    """Relative to the best."""

    cpu_us: float | None
    """Core-microseconds a row."""

    cost_from: str | None
    """How the cost is known."""

    selectivity: float | None


@dataclass(frozen=True, slots=True)
class TaskSharer:
    """A dataflow that uses a task, and its part of what the task costs."""

    dataflow: str
    owner: str
    task: str
    paused: bool
    cost_per_h: float | None


@dataclass(frozen=True, slots=True)
class TaskPanel:
    """A running task."""

    id: str
    name: str
    summary: str
    """What tasks of its type do."""

    role: str
    stateful: bool
    brought_by: str
    inputs: tuple[str, ...]
    on_error: str
    held: bool
    limit: int | None
    partitions: int | None
    reason: str
    """Why this alternate is active."""

    alternates: tuple[TaskAlternate, ...]
    sharers: tuple[TaskSharer, ...]
    cost_per_h: float
    """Of the machines, this task's part."""

    currency: str
    rates: NodeRates | None
    times: tuple[float, ...]
    series: Mapping[str, tuple[float | None, ...]]


def find_running_task(running: RunningSet, dataflow: str, task: str) -> UsedTask:
    """A task by the name that a dataflow has for it; raises :class:`~headgate.errors.InputError` with the nearest."""
    submitted = running.find(dataflow)
    signature = submitted.signatures.get(TaskId(task))
    if signature is None:
        known = map(str, submitted.signatures)
        raise unknown("UNKNOWN_TASK", f"dataflow '{dataflow}' has no task '{task}'", task, known)
    return running.tasks[signature]


def task_panel(
    running: RunningSet,
    dataflow: str,
    task: str,
    choices: SnapshotChoices,
    registry: Registry,
    recent: Recent,
    prices: tuple[list[MachinePrice], str],
    may_inspect: Callable[[str], bool],
    active_here: ActiveAlternate | None,
) -> TaskPanel:
    """All that is known of a task of a dataflow."""
    used = find_running_task(running, dataflow, task)
    signature, one = used.running.signature, used.running.task
    seen = recent.last()
    active = choices.alternate(signature, one)
    cost = _cost(running, used, choices, prices[0])
    kind = registry.get(active.type)
    times = recent.times(TASKS_KEPT)
    is_open = any(may_inspect(str(running.submitted[name].dataflow.owner)) for name in used.users)
    return TaskPanel(
        signature,
        f"{dataflow}.{task}",
        "" if kind is None else kind.summary,
        "step" if kind is None else kind.role.value,
        kind is not None and kind.stateful,
        str(used.running.brought_by),
        tuple(_name(running, feed.source) for feed in used.running.feeds),
        one.on_error.value,
        signature in choices.held,
        choices.limits.get(signature),
        choices.partitions.get(signature),
        _reason(active_here, len(one.alternates)),
        tuple(
            _alternate(used, index, active.name, () if seen is None else seen.costs, is_open)
            for index in range(len(one.alternates))
        ),
        tuple(_sharers(running, used, choices, cost, may_inspect)),
        cost,
        prices[1],
        None if seen is None else node_rates(running, seen).get(signature),
        tuple(times),
        {column: tuple(recent.task(signature, column)) for column in TASK},
    )


def _name(running: RunningSet, signature: Signature) -> str:
    used = running.tasks[signature]
    flow = used.running.brought_by if used.running.brought_by in used.users else min(used.users)
    return f"{flow}.{used.users[flow]}"


def _reason(active: ActiveAlternate | None, count: int) -> str:
    if count == 1:
        return "It is the only way to do this task."
    if active is None or not active.by:
        return "It has the most value, and nothing else was chosen."
    because = f": {active.reason}" if active.reason else ""
    held = ", and no policy changes it until it is released" if active.held else ""
    return f"Chosen by {active.by}{because}{held}."


def _alternate(used: UsedTask, index: int, active: str, costs: Iterable[AlternateCost], is_open: bool) -> TaskAlternate:
    task = used.running.task
    one, value = task.alternates[index], task.relative_values[index]
    known = next((c for c in costs if c.task == used.running.signature and c.alternate == one.name), None)
    return TaskAlternate(
        one.name,
        one.type,
        one.config.as_dict() if is_open else None,
        one.name == active,
        value,
        None if known is None else known.cpu_s * 1e6,
        None if known is None else known.origin.value,
        None if known is None else known.selectivity,
    )


def _cost(running: RunningSet, used: UsedTask, choices: SnapshotChoices, machines: list[MachinePrice]) -> float:
    """What a task costs an hour: the machines' price, over the tasks that somebody uses."""

    def is_used(names: Iterable[DataflowName]) -> bool:
        return any(name not in choices.paused for name in names)

    count = sum(is_used(other.users) for other in running.tasks.values())
    return float(sum(machine.price_per_h for machine in machines)) / count if count and is_used(used.users) else 0.0


def _sharers(
    running: RunningSet, used: UsedTask, choices: SnapshotChoices, cost: float, may_see: Callable[[str], bool]
) -> Iterable[TaskSharer]:
    paying = sum(name not in choices.paused for name in used.users)
    for name, task in sorted(used.users.items()):
        owner, paused = str(running.submitted[name].dataflow.owner), name in choices.paused
        paid = 0.0 if paused or not paying else cost / paying
        yield TaskSharer(str(name), owner, str(task), paused, paid if may_see(owner) else None)
