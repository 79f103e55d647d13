"""An engine as a controller works on it: what was observed, the terms of what runs, and changes with what they are for.

A controller reads what the engine observes anyway. A change of tasks is one plan snapshot, and what the controller
writes down about it is in the same append: both are there, or neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from headgate.adaptation.actions import (
    Action,
    Pause,
    Resume,
    SetPartitions,
    SetRateLimit,
    SwitchAlternate,
    kind_of,
)
from headgate.adaptation.controller.plant import Costed
from headgate.adaptation.policy import Capabilities, Terms
from headgate.errors import InputError
from headgate.machines.provider import AcquiredMachine, machine_class
from headgate.model.cluster.observation import Observation
from headgate.model.cluster.vm_class import PER_SECOND, BillingPeriod, Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, Signature, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.model.stream import DUPLICATE, ByPredicate, Stream
from headgate.model.task import Alternate, Task
from headgate.model.task_type import Role, State
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Feed
from headgate.runtime.engine.choices import Choices
from headgate.runtime.engine.engine import Engine
from headgate.runtime.engine.scaling import Scaling
from headgate.runtime.io.sources import hot_limit
from headgate.sharing.alternates import strictest
from headgate.store.entries import Entry

__all__ = ["POOL", "ControlledEngine", "ScalingProvider"]

POOL = "spark"
"""The one pool of a Spark application: all fragments share its cores."""

KEPT = 200
"""Observations that wait for a controller at most."""

CHOICES = frozenset({"switch_alternate", "set_partitions", "set_rate_limit", "pause", "resume"})
MACHINES = frozenset({"acquire_machine", "release_machine"})
REFUSED = {
    "assign_cores": "Spark's machines come whole",
    "place_fragment": "all fragments share one Spark application",
    "set_epoch": "the length of epochs follows from the trigger and the rows that come",
}
NO_PROVIDER = "this engine cannot acquire machines; run it with --cluster, after 'headgate cluster up'"


class ScalingProvider:
    """The provider of an engine, with Spark's executors following its machines."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling

    def classes(self) -> tuple[VmClass, ...]:
        provider = self._scaling.provider
        return () if provider is None else provider.classes()

    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine:
        self._scaling.check([vm_class], [])
        return self._scaling.acquire(vm_class, key)

    def release(self, machine: str) -> None:
        self._scaling.check([], [machine])
        self._scaling.release(machine)

    def list(self, *, gone: bool = False) -> tuple[AcquiredMachine, ...]:
        return tuple(machine for machine in self._scaling.machines() if gone or not machine.is_gone)


@dataclass(slots=True)
class ControlledEngine:
    """A running engine, behind :class:`headgate.adaptation.controller.plant.ControlledCluster`."""

    engine: Engine
    interval_s: float
    """From one decision to the next."""

    trigger_s: float
    billing: BillingPeriod = PER_SECOND
    price_per_h: Decimal = Decimal("0.10")
    """What this machine costs, where there is no provider."""

    _observed: deque[Observation] = field(default_factory=lambda: deque(maxlen=KEPT))
    _known: tuple[object, tuple[Terms, Capabilities] | None] = (None, None)

    def __post_init__(self) -> None:
        self.engine.history.listeners.append(self._observed.append)

    def observations(self) -> Sequence[Observation]:
        return [self._observed.popleft() for _ in range(len(self._observed))]

    def terms(self, costed: Costed) -> tuple[Terms, Capabilities] | None:
        key = (self.engine.snapshot.number, frozenset(costed), self._classes())
        if self._known[0] != key:
            self._known = (key, self._terms(costed))
        return self._known[1]

    def publish(self, actions: Sequence[Action], by: str, reason: str, done: Callable[[int], Sequence[Entry]]) -> None:
        unknown = [action for action in actions if kind_of(action) not in CHOICES]
        if unknown:
            why = REFUSED.get(kind_of(unknown[0]), "it is no change of tasks")
            raise InputError("ACTION_REFUSED", f"{kind_of(unknown[0])} is not done here: {why}")
        self.engine.change(
            replace(self._choices(actions), by=by, reason=reason), lambda applied: done(applied.snapshot)
        )

    def _choices(self, actions: Sequence[Action]) -> Choices:
        active, partitions, limits, paused = {}, {}, {}, {}
        for action in actions:
            match action:
                case SwitchAlternate(task, alternate):
                    active[task] = alternate
                case SetPartitions(task, count):
                    partitions[task] = count
                case SetRateLimit(source, rows):
                    limits[source] = None if rows is None else max(1, round(rows * self.trigger_s))
                case Pause(name):
                    paused[name] = True
                case Resume(name):
                    paused[name] = False
        return Choices(active, partitions, limits, paused)

    def _classes(self) -> tuple[VmClass, ...]:
        provider = self.engine.scaling.provider
        return () if provider is None else provider.classes()

    def _terms(self, costed: Costed) -> tuple[Terms, Capabilities] | None:
        engine = self.engine
        snapshot, plan = engine.snapshot, engine.plan
        tasks = list(plan.tasks.values())
        if not tasks:
            return None
        flows = [flow for flow in snapshot.dataflows if flow.name not in snapshot.paused]
        names = {task.signature: TaskId(task.name) for task in tasks}
        level = flows[0].service_level if len(flows) == 1 else _joined([flow.service_level for flow in flows])
        graph = Dataflow(
            DataflowName("running"),
            tuple(_task(task, costed) for task in tasks),
            tuple(stream for task in tasks for stream in _streams(task, names)),
            service_level=level,
        )
        cores = sum(executor.cores for executor in engine.scaling.executors.list()) or 1
        here = machine_class("local", cores, 2**30, max(self.price_per_h, Decimal("0.000001")))
        terms = Terms(
            graph,
            {name: signature for signature, name in names.items()},
            Cloud("here", self._classes() or (here,), self.billing),
            self.interval_s,
            60,
            levels={str(flow.name): flow.service_level for flow in flows},
            owners={
                str(flow.name): tuple(str(names[task.signature]) for task in tasks if flow.name in task.used_by)
                for flow in flows
            },
        )
        return terms, self._capabilities(plan, costed)

    def _capabilities(self, plan: CompiledPlan, costed: Costed) -> Capabilities:
        held = self.engine.snapshot.held
        reasons: dict[str, str] = dict(REFUSED)
        provider = self.engine.scaling.provider
        if provider is None:
            reasons |= dict.fromkeys(MACHINES, NO_PROVIDER)
        switchable, resizable, limitable = set(), set(), set()
        for task in plan.tasks.values():
            why = _why_not_switched(task, task.signature in held, costed)
            if why is None:
                switchable.add(task.signature)
            elif len(task.running.task.alternates) > 1:
                reasons[task.signature] = why
            if task.signature not in held and task.role is not Role.SOURCE and task.state is not State.KEYED:
                resizable.add(task.signature)
            if task.role is Role.SOURCE and task.signature not in held and _takes_limit(task):
                limitable.add(task.signature)
        return Capabilities(
            (POOL,),
            CHOICES | (MACHINES if provider is not None else frozenset()),
            switchable=frozenset(switchable),
            resizable=frozenset(resizable),
            limitable=frozenset(limitable),
            reasons=reasons,
        )


def _joined(levels: list[ServiceLevel]) -> ServiceLevel:
    """What binds all of them; budgets and break-even costs stay each one's own."""
    return strictest(levels) if levels else ServiceLevel()


def _task(task: CompiledTask, costed: Costed) -> Task:
    """A task with the alternates that a policy may choose: those of known cost, and the one that is active."""
    ways = task.running.task.alternates
    kept = [way for way in ways if way.name == task.alternate.name or (task.signature, way.name) in costed]
    # What it does is of no concern here, and in a record of decisions it would only take room.
    bare = [Alternate(way.name, way.type, value=way.value, selectivity=way.selectivity) for way in kept]
    return Task(TaskId(task.name), tuple(bare))


def _streams(task: CompiledTask, names: dict[Signature, TaskId]) -> Iterator[Stream]:
    for feed in task.feeds:
        if feed.source in names:
            yield _stream(feed, names[feed.source], names[task.signature])


def _stream(feed: Feed, source: TaskId, target: TaskId) -> Stream:
    routing = DUPLICATE if feed.where is None else ByPredicate(feed.where)
    ports = PortName(feed.source_port), PortName(feed.target_port)
    return Stream(source, ports[0], target, ports[1], routing, feed.side, feed.feedback)


def _why_not_switched(task: CompiledTask, held: bool, costed: Costed) -> str | None:
    ways = task.running.task.alternates
    known = [way.name for way in ways if (task.signature, way.name) in costed]
    if held:
        return "a person has chosen its alternate; 'headgate switch --release' lets policies choose again"
    if task.state is State.CHAINED:
        return "windows and joins cannot be switched while they run"
    if len(known) < 2:
        missing = [way.name for way in ways if way.name not in known and way.name != task.alternate.name]
        return f"it is not known what {', '.join(missing)} costs: give it cost_s" if missing else "it has no choice"
    return None


def _takes_limit(task: CompiledTask) -> bool:
    try:
        return hot_limit(task)
    except InputError:
        return False
