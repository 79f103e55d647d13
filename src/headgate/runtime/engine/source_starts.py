"""What a dataflow asks for: from where each of its sources is to begin. Pure.

A source begins where its own ``start`` says, or else that of its dataflow, or else where its type begins. Where it
begins is no part of what it is, so its own ``start`` is no part of its signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headgate.errors import InputError
from headgate.model.config import Config
from headgate.model.names import TaskId
from headgate.model.start import Start, StartKind
from headgate.model.task import Task
from headgate.model.work import Past, SourceWork
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.tasks.registry import Registry

__all__ = ["Asked", "asked_of", "moment", "source_work"]

TIMES = (StartKind.TIME, StartKind.AGE)


@dataclass(frozen=True, slots=True)
class Asked:
    """A dataflow without the starts of its sources, and those."""

    signed: SignedDataflow
    start: Start | None
    """That of the dataflow."""

    starts: Mapping[TaskId, Start]
    """Of each source that has a past."""

    without_past: Mapping[TaskId, str]
    """Where the others begin: as their own options say, or their types."""

    timeless: frozenset[TaskId]
    """Sources of which nobody knows when their rows came."""

    allow_partial: bool = False
    """Whether it takes what is there where some of its past is gone."""

    @property
    def words(self) -> str:
        """From where it begins, for people."""
        if self.start is not None:
            return str(self.start)
        each = {**{task: str(one) for task, one in self.starts.items()}, **self.without_past}
        words = dict.fromkeys(each.values())
        return ", ".join(words if len(words) < 2 else (f"{task} {one}" for task, one in each.items()))

    def from_when(self, now_s: float) -> str:
        """From when on its output is complete, of several sources the last; nothing for the earliest."""
        times = [one.since_s(now_s) for one in self.starts.values() if one.kind in TIMES]
        times += [now_s for one in self.starts.values() if one.kind is StartKind.NOW]
        times += [now_s for one in self.without_past.values() if one == "now"]
        return moment(round(max(times) * 1e9)) if times else ""

    def task(self, name: TaskId) -> Task:
        """One of its tasks."""
        return next(task for task in self.signed.dataflow.tasks if task.id == name)

    def check(self, now_s: float) -> None:
        """Raise :class:`InputError` for a start that has not come, and for a time that a source does not know."""
        for task, start in self.starts.items():
            where = f"dataflow '{self.signed.name}': start: {start}"
            if start.kind in TIMES and start.since_s(now_s) > now_s:
                raise InputError("START_IN_FUTURE", f"{where} is in the future; give a time that has passed, or now")
            if start.kind in TIMES and task in self.timeless:
                message = f"{where} needs a source that knows when its rows came, which '{task}' is not"
                raise InputError("NO_TIMES", f"{message}; give that source start: earliest or now")


def moment(ns: int) -> str:
    """A time in nanoseconds since 1970, rounded up to seconds, as a start has it.

    >>> moment(1_800_000_000_000_000_001)
    '2027-01-15T08:00:01Z'
    """
    return str(Start(StartKind.TIME, datetime.fromtimestamp(-(-ns // 1_000_000_000), UTC)))


def source_work(task: Task, registry: Registry) -> SourceWork:
    """The work of a source task."""
    work = registry[task.type].work
    assert isinstance(work, SourceWork)
    return work


def asked_of(signed: SignedDataflow, registry: Registry, allow_partial: bool = False) -> Asked:
    """What a dataflow asks for; raises :class:`InputError` if two of its sources differ in nothing but their start."""
    flow = signed.dataflow
    sources = [
        task for task in flow.tasks if task.id in signed.signatures and isinstance(registry[task.type].work, SourceWork)
    ]
    own = {task.id: Start.parse(text) for task in sources if (text := _own(task, registry)) is not None}
    plain = signed
    if own:
        tasks = tuple(_without(task) if task.id in own else task for task in flow.tasks)
        plain = deduplicate(replace(flow, tasks=tasks))
        for dropped, kept in plain.stands_for.items():
            message = f"sources '{kept}' and '{dropped}' of dataflow '{flow.name}' differ in nothing but their start"
            raise InputError("SAME_SOURCE", f"{message}; give them one start, or make them two dataflows")
    past = {task.id: source_work(task, registry) for task in sources if source_work(task, registry).past}
    usual = flow.start if flow.start is not None and flow.start.kind is not StartKind.WITH else None
    starts = {task: own.get(task) or usual or Start(StartKind(work.begins)) for task, work in past.items()}
    timeless = frozenset(t.id for t in sources if source_work(t, registry).past and not source_work(t, registry).timed)
    rest = {task.id: _elsewhere(task, registry) for task in sources if task.id not in past}
    return Asked(plain, flow.start, starts, rest, timeless, allow_partial)


def _own(task: Task, registry: Registry) -> str | None:
    start = None if task.is_dynamic or source_work(task, registry).past is Past.NONE else task.config.get("start")
    return start if isinstance(start, str) else None


def _elsewhere(task: Task, registry: Registry) -> str:
    """Where a source without a past begins: a table has positions of its own."""
    start = None if task.is_dynamic else task.config.get("start")
    return source_work(task, registry).begins if start is None else str(start)


def _without(task: Task) -> Task:
    config = {name: value for name, value in task.config.as_dict().items() if name != "start"}
    alternate = replace(task.alternates[0], config=Config(config))
    return replace(task, alternates=(alternate,))
