"""From where a dataflow that is submitted reads, and how it gets what has passed already. Pure.

A source that runs has been read, and a dataflow that comes late wants that too. A bounded copy of it catches up with
what the running tasks have read, and they go on for it (*catch up*). Where it would need their state of the past, its
tasks with state are its own: the copy hands its rows to them, and then the running tasks do. In a loop, and under
strategies that cut the graph elsewhere, it reads its source by itself from the beginning (*alone*). All of these put
out what the dataflow would put out if nobody else ran.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import Signature, TaskId
from headgate.model.start import Start, StartKind
from headgate.model.strategy import StrategyName
from headgate.model.task import Task
from headgate.model.task_type import Role, State
from headgate.model.work import SourceWork
from headgate.runtime.engine.past import Begin, Reading
from headgate.runtime.engine.snapshot import Snapshot
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.past import handing_mark, marked
from headgate.sharing.shared_set import HowStarted, StartTaken
from headgate.tasks.registry import Registry
from headgate.tasks.sources import ReadFiles

__all__ = ["Beginning", "Position", "beginning_of", "handed_tasks", "joining", "reads_past"]

Position = Callable[[Signature], int]
"""Up to when a running source has read: the time of modification of its last file, in nanoseconds since 1970."""

NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a dataflow begins: as it is to be merged, and what its sources have to be told."""

    signed: SignedDataflow
    """With its marks."""

    taken: StartTaken
    begin: Begin = field(default_factory=Begin)
    late: frozenset[TaskId] = frozenset()
    """Its sources that run already and whose past it wants."""

    hands_over: bool = False
    """Whether its tasks with state are its own, and get the past first."""

    since_ns: int = 0
    """From when on it wants files."""

    readings: Mapping[TaskId, Reading] = field(default_factory=dict)
    """Of its sources that read by themselves, and not all there is."""

    sources: Mapping[TaskId, Signature] = field(default_factory=dict)
    """Its sources that have a past, without their marks."""

    def readings_of(self, signatures: Mapping[TaskId, Signature]) -> dict[Signature, Reading]:
        """The same by signatures, as they run."""
        return {signatures[task]: one for task, one in self.readings.items() if task in signatures}


def reads_past(task: Task, registry: Registry) -> bool:
    """Whether what a source has handed over can be read again."""
    work = registry[task.type].work
    return isinstance(work, SourceWork) and work.past


def beginning_of(
    signed: SignedDataflow, base: Snapshot, pending: Snapshot, now_s: float, position: Position
) -> Beginning:
    """How a dataflow begins, given what runs (``base``) and what it is submitted to (``pending``)."""
    flow = signed.dataflow
    start = flow.start or Start(StartKind.EARLIEST)
    registry = pending.shared.registry
    sources = {
        t.id: signed.signatures[t.id] for t in flow.tasks if reads_past(t, registry) and t.id in signed.signatures
    }
    if flow.name in base.stored:
        taken = StartTaken(str(start), HowStarted.CONTINUED, "it goes on where the one before stands")
        return _inherited(signed, sources, base.begins.get(flow.name, Begin()), base, taken)
    if start.kind is StartKind.WITH:
        other = pending.find(start.name).dataflow.name
        taken = StartTaken(
            str(start), HowStarted.WITH, f"it shares what '{other}' has counted, and begins where that stands"
        )
        return _inherited(signed, sources, pending.begins.get(other, Begin()), pending, taken)
    if start.kind is StartKind.NOW:
        return _from_now(signed, sources, base, now_s)
    if start.kind is StartKind.EARLIEST:
        return _from_earliest(signed, sources, base)
    return _since(signed, sources, base, start, now_s, position)


def _inherited(
    signed: SignedDataflow, sources: Mapping[TaskId, Signature], begin: Begin, of: Snapshot, taken: StartTaken
) -> Beginning:
    """With the marks of another dataflow, so that what is the same in both is shared."""
    marks = {task: begin.sources[source] for task, source in sources.items() if source in begin.sources}
    known = {(reading.of, reading.mark): reading for reading in of.readings.values()}
    readings = {task: known[sources[task], mark] for task, mark in marks.items() if (sources[task], mark) in known}
    return Beginning(_with_marks(signed, marks, begin.state, of), taken, begin, readings=readings)


def _from_now(signed: SignedDataflow, sources: Mapping[TaskId, Signature], base: Snapshot, now_s: float) -> Beginning:
    number = base.number + 1
    mark = f"from {number}"
    shares = base.strategy is not StrategyName.NONE
    others = {o.of: o for source, o in base.readings.items() if shares and not o.bounded and _runs(base, source)}
    marks: dict[TaskId, str] = {}
    readings: dict[TaskId, Reading] = {}
    for task, source in sources.items():
        if _runs(base, source):
            continue
        known = others.get(source)
        readings[task] = known or Reading(source, mark, number, arrived_since_ns=round(now_s * NS))
        marks[task] = readings[task].mark
    begin = Begin(mark, {sources[task]: one for task, one in marks.items()})
    joins = any(_runs(base, source) for source in sources.values())
    detail = "from the next micro-batch of the running source" if joins else "from the files that come from now on"
    taken = StartTaken("now", HowStarted.NOW, detail if sources else "")
    return Beginning(_with_marks(signed, marks, mark, base), taken, begin, readings=readings)


def _from_earliest(signed: SignedDataflow, sources: Mapping[TaskId, Signature], base: Snapshot) -> Beginning:
    late = frozenset(task for task, source in sources.items() if _runs(base, source))
    first = "earliest" if sources else "now"
    return Beginning(signed, StartTaken(first, HowStarted.NEW), late=late, sources=sources)


def _since(
    signed: SignedDataflow,
    sources: Mapping[TaskId, Signature],
    base: Snapshot,
    start: Start,
    now_s: float,
    position: Position,
) -> Beginning:
    since_s = start.since_s(now_s)
    if since_s > now_s:
        message = f"dataflow '{signed.name}': start: {start} is in the future; give a time that has passed, or now"
        raise InputError("START_IN_FUTURE", message)
    number, since_ns = base.number + 1, round(since_s * NS)
    mark = f"since {since_ns} {number}"
    late = frozenset(t for t, source in sources.items() if _runs(base, source) and position(source) >= since_ns)
    readings = {
        task: Reading(source, mark, number, modified_since_ns=since_ns)
        for task, source in sources.items()
        if task not in late
    }
    marks = {task: one.mark for task, one in readings.items()}
    begin = Begin(mark, {sources[task]: mark for task in marks})
    taken = StartTaken(str(start), HowStarted.NEW)
    return Beginning(
        _with_marks(signed, marks, mark, base),
        taken,
        begin,
        late,
        since_ns=since_ns,
        readings=readings,
        sources=sources,
    )


def joining(
    beginning: Beginning, plain: SignedDataflow, base: Snapshot, run: Dataflow, signatures: Mapping[TaskId, Signature]
) -> Beginning:
    """How a dataflow that is late gets the past, given how it would ``run`` among the running tasks."""
    reason = can_join(run, signatures, beginning.late, base)
    if not reason:
        check_there(plain.dataflow, beginning.late, base.shared.registry)
        return beginning
    if any(stream.feedback for stream in run.streams) or base.strategy is not StrategyName.HOT:
        return alone(beginning, plain, base, reason)
    check_there(plain.dataflow, beginning.late, base.shared.registry)
    mark = handing_mark(base.number + 1)
    marks = dict.fromkeys(_counting(beginning.signed.dataflow, base.shared.registry), mark)
    begin = replace(beginning.begin, state=f"{beginning.begin.state} {mark}".strip())
    signed = deduplicate(marked(beginning.signed.dataflow, marks))
    return replace(beginning, signed=signed, begin=begin, hands_over=True)


def handed_tasks(run: Dataflow, late: Collection[TaskId], registry: Registry) -> frozenset[TaskId]:
    """The tasks with state that rows of late sources reach first."""
    handed, reached, waiting = set[TaskId](), {*late}, [*late]
    counting = {*_counting(run, registry)} - {t.id for t in run.tasks if registry[t.type].role is Role.SINK}
    readers: dict[TaskId, list[TaskId]] = {}
    for stream in run.streams:
        readers.setdefault(stream.source, []).append(stream.target)
    while waiting:
        for task in readers.get(waiting.pop(), ()):
            if task in counting:
                handed.add(task)
            elif task not in reached:
                reached.add(task)
                waiting.append(task)
    return frozenset(handed)


def alone(beginning: Beginning, plain: SignedDataflow, base: Snapshot, reason: str) -> Beginning:
    """The same for a dataflow that cannot join what runs, for a reason: its late sources read by themselves."""
    number, flow = base.number + 1, beginning.signed.dataflow
    mark = f"alone {number}"
    readings = {
        task: Reading(plain.signatures[task], mark, number, modified_since_ns=beginning.since_ns)
        for task in beginning.late
    }
    sources = {**beginning.begin.sources, **{one.of: mark for one in readings.values()}}
    return Beginning(
        deduplicate(marked(flow, dict.fromkeys(beginning.late, mark))),
        StartTaken(beginning.taken.start, HowStarted.ALONE, reason),
        Begin(beginning.begin.state, sources),
        readings={**beginning.readings, **readings},
    )


def can_join(run: Dataflow, signatures: Mapping[TaskId, Signature], late: frozenset[TaskId], base: Snapshot) -> str:
    """Why a dataflow cannot go on with the running tasks once a copy of it has caught up; nothing if it can.

    Tasks without state can. A keyed task can if it runs, and has counted from the beginning of its source.
    """
    registry = base.shared.registry
    if any(stream.feedback for stream in run.streams):
        return "it has a loop"
    sources = _sources_before(run)
    for task in run.tasks:
        states = {registry[alternate.type].state for alternate in task.alternates}
        if states == {State.NONE} or not sources[task.id] & late:
            continue
        kind = registry[task.type].name
        if states != {State.KEYED} or task.is_dynamic:
            return f"its task '{task.id}' ({kind}) has state of its own"
        since = base.since.get(signatures[task.id])
        begun = {base.since.get(signatures[source]) for source in sources[task.id]}
        if since is None or begun != {since}:
            return f"its task '{task.id}' ({kind}) has state of its own"
    return ""


def _sources_before(run: Dataflow) -> dict[TaskId, frozenset[TaskId]]:
    graph = Graph(run)
    sources: dict[TaskId, frozenset[TaskId]] = {}
    for task in graph.order():
        above = [sources[stream.source] for stream in graph.feeds[task]]
        sources[task] = frozenset().union(*above) if above else frozenset([task])
    return sources


def _runs(base: Snapshot, source: Signature) -> bool:
    """Whether a source is read, for tasks that run, are paused or rest."""
    return source in base.shared.running.tasks or f"source-{source[:16]}" in base.resting


def _with_marks(signed: SignedDataflow, sources: Mapping[TaskId, str], state: str, of: Snapshot) -> SignedDataflow:
    marks = dict(sources)
    if state:
        marks |= dict.fromkeys(_counting(signed.dataflow, of.shared.registry), state)
    return deduplicate(marked(signed.dataflow, marks)) if marks else signed


def _counting(flow: Dataflow, registry: Registry) -> Iterator[TaskId]:
    """The tasks whose output, or content, depends on all that came before: stateful ones and sinks."""
    for task in flow.tasks:
        kinds = [registry[alternate.type] for alternate in task.alternates]
        if any(kind.state is not State.NONE or kind.role is Role.SINK for kind in kinds):
            yield task.id


def check_there(flow: Dataflow, late: frozenset[TaskId], kind_of: Registry) -> None:
    """Raise :class:`InputError` where files that a running source has read are no longer there."""
    for task in flow.tasks:
        if task.id in late and task.type == "read_files":
            options = cast(ReadFiles, kind_of[task.type].config.model_validate(task.config.as_dict()))
            if options.after != "keep":
                gone = "deletes" if options.after == "delete" else "moves"
                message = f"dataflow '{flow.name}' cannot start in the past: its source '{task.id}' runs already"
                raise InputError("PAST_GONE", f"{message} and {gone} files that it has read; give start: now")
