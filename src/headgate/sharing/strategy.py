"""Strategies: how a change of the running set is brought about where it runs.

What is launched and stopped as one is a *unit*: a Storm topology in SHARE, a streaming query here. The strategies are
the paper's four and ours:

==================  ====  =============================================================================================
``none``            NRU   every dataflow is a unit of its own and shares nothing
``incremental``     RU    what is new becomes a unit, fed by a proxy for each running task that it reads; what nobody
                          needs any more is paused in place, and resumed when it is asked for again
``replace``         MR    a submission stops the units that it links and launches one in their place, without proxies;
                          paused tasks stay
``replace-prune``   MPR   as ``replace``, also after a withdrawal, and without the paused tasks
``hot``             ours  tasks join and leave running units in place; only a new source is launched, and only a
                          source that nobody reads any more is stopped
==================  ====  =============================================================================================

Everything here is pure: from a deployment and a change to the next deployment and the steps that lead there. SHARE adds
a proxy for each boundary stream; here two streams from one running task share a proxy, since the proxy forwards the
task's whole output.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from headgate.model.names import DataflowName, Signature
from headgate.sharing.change import Change, Operation
from headgate.sharing.running import RunningSet

__all__ = ["Deployment", "Steps", "Strategy", "Unit", "deploy"]

Tasks = frozenset[Signature]
_NONE: Tasks = frozenset()


class Strategy(StrEnum):
    """How dataflows are merged where they run."""

    NONE = "none"
    INCREMENTAL = "incremental"
    REPLACE = "replace"
    REPLACE_PRUNE = "replace-prune"
    HOT = "hot"


@dataclass(frozen=True, slots=True)
class Unit:
    """What is launched and stopped as one."""

    active: Tasks = _NONE
    paused: Tasks = _NONE
    proxies: Tasks = _NONE
    """The running tasks of other units whose output it reads, each through a proxy task of its own."""

    @property
    def tasks(self) -> Tasks:
        return self.active | self.paused

    @property
    def size(self) -> int:
        """How many tasks take up room: proxies and paused ones do."""
        return len(self.active) + len(self.paused) + len(self.proxies)


@dataclass(frozen=True, slots=True)
class Steps:
    """What has to be done, in this order: stop, launch, then tell running units."""

    stopped: tuple[Unit, ...] = ()
    launched: tuple[Unit, ...] = ()
    paused: Tasks = _NONE
    resumed: Tasks = _NONE
    joined: Tasks = _NONE
    """Tasks that join running units in place."""

    left: Tasks = _NONE
    """Tasks that leave running units in place."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The units that are there, by number."""

    units: Mapping[int, Unit] = field(default_factory=dict)
    of_dataflow: Mapping[DataflowName, int] = field(default_factory=dict)
    """The unit of each dataflow, where dataflows have units of their own."""

    made: int = 0

    @property
    def active(self) -> int:
        """How many tasks are at work, proxies not counted."""
        return sum(len(unit.active) for unit in self.units.values())

    def workers(self, packing: int = 8) -> int:
        """How many workers the units take, a worker holding at most so many tasks, all of one unit."""
        return sum(-(-unit.size // packing) for unit in self.units.values())

    def holding(self, tasks: Tasks) -> list[int]:
        """The units that hold any of the tasks, at work or paused."""
        return [number for number, unit in self.units.items() if not tasks.isdisjoint(unit.tasks)]

    def with_units(self, units: Iterable[Unit], without: Iterable[int] = ()) -> Deployment:
        gone = set(without)
        kept = {number: unit for number, unit in self.units.items() if number not in gone}
        added = dict(enumerate(units, self.made + 1))
        return replace(self, units=kept | added, made=self.made + len(added))

    def changed(self, units: Mapping[int, Unit]) -> Deployment:
        return replace(self, units={**self.units, **units})


def deploy(strategy: Strategy, deployment: Deployment, change: Change, after: RunningSet) -> tuple[Deployment, Steps]:
    """Bring a change about; ``after`` is the running set that it has led to.

    >>> from headgate.documents import parse
    >>> sink = "{{id: c, type: write_memory, config: {{name: {0}}}, inputs: [r]}}"
    >>> text = "name: {0}\\ntasks: [{{id: r, type: rate}}, " + sink + "]"
    >>> running, deployment = RunningSet(), Deployment()
    >>> for name in ("one", "two"):
    ...     running, change = running.submit(parse(text.format(name), "yaml").dataflow)
    ...     deployment, steps = deploy(Strategy.INCREMENTAL, deployment, change, running)
    >>> [(len(unit.active), len(unit.proxies)) for unit in deployment.units.values()]
    [(2, 0), (1, 1)]
    """
    return _DOING[strategy, change.operation](deployment, change, after)


Done = tuple[Deployment, Steps]


def _own(change: Change) -> Tasks:
    return frozenset(task.signature for task in change.own)


def _shared(change: Change) -> Tasks:
    return frozenset(shared.running.signature for shared in change.shared)


def _launch_alone(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    del after
    unit = Unit(active=_own(change) | _shared(change))
    grown = deployment.with_units([unit])
    homes = {**grown.of_dataflow, change.dataflow: grown.made}
    return replace(grown, of_dataflow=homes), Steps(launched=(unit,))


def _stop_alone(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    del after
    number = deployment.of_dataflow[change.dataflow]
    homes = {name: home for name, home in deployment.of_dataflow.items() if name != change.dataflow}
    shrunk = replace(deployment.with_units([], without=[number]), of_dataflow=homes)
    return shrunk, Steps(stopped=(deployment.units[number],))


def _resume(deployment: Deployment, wanted: Tasks) -> tuple[Deployment, Tasks]:
    """Resume what is paused of the wanted tasks, in place."""
    changed, resumed = {}, _NONE
    for number in deployment.holding(wanted):
        unit = deployment.units[number]
        back = unit.paused & wanted
        changed[number] = replace(unit, active=unit.active | back, paused=unit.paused - back)
        resumed |= back
    return deployment.changed(changed), resumed


def _pause(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    del after
    own = _own(change)
    changed = {}
    for number in deployment.holding(own):
        unit = deployment.units[number]
        changed[number] = replace(unit, active=unit.active - own, paused=unit.paused | (unit.active & own))
    return deployment.changed(changed), Steps(paused=own)


def _launch_increment(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    del after
    resumed_deployment, resumed = _resume(deployment, _own(change))
    fresh = _own(change) - resumed
    if not fresh:
        return resumed_deployment, Steps(resumed=resumed)
    feeds = (stream.source for task in change.own if task.signature in fresh for stream in task.feeds)
    unit = Unit(active=fresh, proxies=frozenset(feeds) - fresh)
    return resumed_deployment.with_units([unit]), Steps(launched=(unit,), resumed=resumed)


def _replace_linked(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    del after
    resumed_deployment, resumed = _resume(deployment, _own(change))
    fresh = _own(change) - resumed
    if not fresh:
        return resumed_deployment, Steps(resumed=resumed)
    linked = resumed_deployment.holding(_shared(change) | resumed)
    stopped = tuple(deployment.units[number] for number in linked)
    old = [resumed_deployment.units[number] for number in linked]
    unit = Unit(active=fresh.union(*(unit.active for unit in old)), paused=_NONE.union(*(unit.paused for unit in old)))
    return resumed_deployment.with_units([unit], without=linked), Steps(stopped, (unit,), resumed=resumed)


def _prune(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    own = _own(change)
    holding = deployment.holding(own)
    stopped = tuple(deployment.units[number] for number in holding)
    launched = tuple(unit for old in stopped for unit in _parts(old.active - own, after))
    return deployment.with_units(launched, without=holding), Steps(stopped, launched)


def _join(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    del after
    own = _own(change)
    if not own:
        return deployment, Steps()
    sources = _roots(change)
    linked = deployment.holding(_shared(change))
    whole = Unit(active=own.union(*(deployment.units[number].active for number in linked)))
    steps = Steps(launched=(Unit(sources),) if sources else (), joined=own - sources)
    return deployment.with_units([whole], without=linked), steps


def _leave(deployment: Deployment, change: Change, after: RunningSet) -> Done:
    own = _own(change)
    holding = deployment.holding(own)
    sources = _roots(change)
    parts = [unit for number in holding for unit in _parts(deployment.units[number].active - own, after)]
    steps = Steps(stopped=(Unit(sources),) if sources else (), left=own - sources)
    return deployment.with_units(parts, without=holding), steps


def _roots(change: Change) -> Tasks:
    """The sources that come or go; their queries start and end at the same time, side by side."""
    return frozenset(task.signature for task in change.own if task.root == task.signature)


def _parts(tasks: Tasks, after: RunningSet) -> list[Unit]:
    """Tasks by the running dataflow of which they are part, a unit each."""
    parts: dict[Hashable, set[Signature]] = {}
    for signature in sorted(tasks):
        parts.setdefault(after.components.of(after.tasks[signature].running.root), set()).add(signature)
    return [Unit(active=frozenset(part)) for part in parts.values()]


_DOING: Mapping[tuple[Strategy, Operation], Callable[[Deployment, Change, RunningSet], Done]] = {
    (Strategy.NONE, Operation.SUBMIT): _launch_alone,
    (Strategy.NONE, Operation.WITHDRAW): _stop_alone,
    (Strategy.INCREMENTAL, Operation.SUBMIT): _launch_increment,
    (Strategy.INCREMENTAL, Operation.WITHDRAW): _pause,
    (Strategy.REPLACE, Operation.SUBMIT): _replace_linked,
    (Strategy.REPLACE, Operation.WITHDRAW): _pause,
    (Strategy.REPLACE_PRUNE, Operation.SUBMIT): _replace_linked,
    (Strategy.REPLACE_PRUNE, Operation.WITHDRAW): _prune,
    (Strategy.HOT, Operation.SUBMIT): _join,
    (Strategy.HOT, Operation.WITHDRAW): _leave,
}
