"""From where a dataflow that is submitted reads, and how it gets what has passed already. Pure.

A source that runs has been read, and a dataflow that comes late wants that too. A bounded copy of it catches up with
what the running tasks have read, and they go on for it (*catch up*). Where it would need their state of the past, its
tasks with state are its own: the copy hands its rows to them, and then the running tasks do. In a loop, and under
strategies that cut the graph elsewhere, it reads its source by itself from the beginning (*alone*). All of these put
out what the dataflow would put out if nobody else ran.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import Signature, TaskId
from headgate.model.start import Start, StartKind
from headgate.model.strategy import StrategyName
from headgate.model.task import Task
from headgate.model.task_type import Role, State
from headgate.model.work import Past, SourceWork
from headgate.runtime.compile.plan import digest
from headgate.runtime.engine.past import Begin, Reading
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.source_starts import Asked, moment, source_work
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.past import handing_mark, marked
from headgate.sharing.shared_set import HowStarted, StartTaken
from headgate.tasks.registry import Registry
from headgate.tasks.sources import ReadFiles

__all__ = ["UNKNOWN", "Assumed", "Beginning", "Standing", "beginning_of", "handed_tasks", "joining"]

NS = 1_000_000_000


class Standing(Protocol):
    """What is known of running sources."""

    def reached(self, source: Signature, since_ns: int) -> bool:
        """Whether one has read all that came before some time."""

    def has_all(self, source: Signature) -> bool:
        """Whether all that it has read is still there."""

    def gone(self, source: Signature, since_ns: int) -> str:
        """What of that which it has read since some time is no longer there, and from where on it is; or nothing."""

    def oldest_ns(self, task: Task) -> int | None:
        """When the oldest file of a source that reads files was modified, in nanoseconds; ``None`` if nobody knows."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed of sources where nobody can look: that nothing is gone, and how far all have read."""

    all_read_before_ns: int = 0

    def reached(self, source: Signature, since_ns: int) -> bool:
        del source
        return since_ns <= self.all_read_before_ns

    def has_all(self, source: Signature) -> bool:
        del source
        return True

    def gone(self, source: Signature, since_ns: int) -> str:
        del source, since_ns
        return ""

    def oldest_ns(self, task: Task) -> int | None:
        del task
        return None


UNKNOWN = Assumed()


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a dataflow begins: as it is to be merged, and what its sources have to be told."""

    signed: SignedDataflow
    """With its marks."""

    taken: StartTaken
    begin: Begin = field(default_factory=Begin)
    late: Mapping[TaskId, int] = field(default_factory=dict)
    """Its sources that run already and whose past it wants, and from when on, in nanoseconds; 0 for all of it."""

    hands_over: bool = False
    """Whether its tasks with state are its own, and get the past first."""

    readings: Mapping[TaskId, Reading] = field(default_factory=dict)
    """Of its sources that do not read all there is."""

    def readings_of(self, signatures: Mapping[TaskId, Signature]) -> dict[Signature, Reading]:
        """The same by signatures, as they run."""
        return {signatures[task]: one for task, one in self.readings.items() if task in signatures}


@dataclass(slots=True)
class _Sources:
    """How the sources of a dataflow begin, one after the other."""

    base: Snapshot
    standing: Standing
    now_s: float
    readings: dict[TaskId, Reading] = field(default_factory=dict)
    late: dict[TaskId, int] = field(default_factory=dict)
    joined: bool = False
    """Whether tasks behind one would share a state that began elsewhere."""

    arriving: list[str] = field(default_factory=list)
    """What there is to say of those that begin now."""

    gone: dict[TaskId, str] = field(default_factory=dict)
    """What of their past is no longer there."""

    @property
    def number(self) -> int:
        return self.base.number + 1

    def begin(self, task: TaskId, source: Signature, work: SourceWork, start: Start) -> None:
        host = self._host(source, work, start)
        if start.kind in (StartKind.TIME, StartKind.AGE):
            self._since(task, source, host, round(start.since_s(self.now_s) * NS))
        elif start.kind is StartKind.NOW:
            self._now(task, source, host, work)
        elif host is not None:
            self._late(task, host, 0)
            from_earliest = work.begins == "earliest" if host[1] is None else host[1].earliest
            # Files that are gone are refused before; a broker forgets as it likes.
            self.joined |= not from_earliest or (work.past is Past.OFFSET and not self.standing.has_all(host[0]))
        elif work.begins != "earliest":
            self.readings[task] = Reading(source, "earliest", self.number, earliest=True)

    def _host(self, source: Signature, work: SourceWork, start: Start) -> tuple[Signature, Reading | None] | None:
        """The running source that it can join; files have no other order of the past than that of who began first."""
        if runs(self.base, source):
            return source, None
        if self.base.strategy is StrategyName.NONE or (
            work.past is not Past.OFFSET and start.kind is not StartKind.NOW
        ):
            return None
        others = (
            (known, reading)
            for known, reading in self.base.readings.items()
            if reading.of == source and not reading.bounded and runs(self.base, known)
        )
        return next(others, None)

    def _share(self, task: TaskId, host: tuple[Signature, Reading | None]) -> None:
        if host[1] is not None:
            self.readings[task] = host[1]

    def _late(self, task: TaskId, host: tuple[Signature, Reading | None], since_ns: int) -> None:
        self.late[task] = since_ns
        self._share(task, host)
        if gone := self.standing.gone(host[0], since_ns):
            self.gone[task] = gone
            self.joined = True  # the others have counted what is gone

    def _now(
        self, task: TaskId, source: Signature, host: tuple[Signature, Reading | None] | None, work: SourceWork
    ) -> None:
        if host is not None:
            self._share(task, host)
            self.joined = True
            self.arriving.append("from the next micro-batch of the running source")
        elif work.past is Past.FILES:
            since_ns = round(self.now_s * NS)
            self.readings[task] = Reading(source, f"from {self.number}", self.number, arrived_since_ns=since_ns)
            self.arriving.append("from the files that come from now on")

    def _since(
        self,
        task: TaskId,
        source: Signature,
        host: tuple[Signature, Reading | None] | None,
        since_ns: int,
    ) -> None:
        if host is not None and self.standing.reached(host[0], since_ns):
            self._late(task, host, since_ns)
            self.joined = True
        else:
            self.readings[task] = since(source, since_ns, self.number)


def since(source: Signature, since_ns: int, number: int) -> Reading:
    """A source that reads by itself, from some time on."""
    return Reading(source, f"since {since_ns} {number}", number, modified_since_ns=since_ns)


def beginning_of(asked: Asked, base: Snapshot, pending: Snapshot, now_s: float, standing: Standing) -> Beginning:
    """How a dataflow begins, given what runs (``base``) and what it is submitted to (``pending``)."""
    signed, flow, start = asked.signed, asked.signed.dataflow, asked.start
    if flow.name in base.stored:
        taken = StartTaken(asked.words, HowStarted.CONTINUED, "it goes on where the one before stands")
        return _inherited(asked, base.begins.get(flow.name, Begin()), base, taken)
    if start is not None and start.kind is StartKind.WITH:
        other = pending.find(start.name).dataflow.name
        detail = f"it shares what '{other}' has counted, and begins where that stands"
        begin = pending.begins.get(other, Begin())
        return _inherited(asked, begin, pending, StartTaken(str(start), HowStarted.WITH, detail))
    asked.check(now_s)
    made = _Sources(base, standing, now_s)
    registry = pending.shared.registry
    for task, one in asked.starts.items():
        if one.kind is StartKind.TIME:
            _check_beginning(asked.task(task), one, flow, standing)
        made.begin(task, signed.signatures[task], source_work(asked.task(task), registry), one)
    joined = [task for task in asked.without_past if runs(base, signed.signatures[task])]
    if joined:
        made.joined = True
        made.arriving.append("from the next micro-batch of the running source")
        asked = replace(asked, without_past={**asked.without_past, **dict.fromkeys(joined, "now")})
    state = f"from {made.number}{_spread(asked, made)}" if made.joined else ""
    marks = {task: one.mark for task, one in made.readings.items()}
    lacks = "; ".join(f"source '{task}': {gone}" for task, gone in made.gone.items())
    if lacks and not asked.allow_partial:
        message = f"the past of dataflow '{flow.name}' is no longer whole: {lacks}"
        raise InputError("PAST_GONE", f"{message}; give --allow-partial to take what is there, or start: now")
    begin = Begin(state, {signed.signatures[task]: mark for task, mark in marks.items()}, asked.from_when(now_s), lacks)
    how = HowStarted.NOW if made.arriving and not made.late else HowStarted.NEW
    detail = "; ".join(dict.fromkeys(made.arriving)) if how is HowStarted.NOW else ""
    taken = StartTaken(asked.words, how, detail, lacks)
    return Beginning(_with_marks(signed, marks, state, base), taken, begin, made.late, readings=made.readings)


def _spread(asked: Asked, made: _Sources) -> str:
    """What tells starts apart that come with one snapshot, where not all is from now on."""
    if all(one.kind is StartKind.NOW for one in asked.starts.values()):
        return ""
    begins = sorted((asked.signed.signatures[t], made.late.get(t, one.kind.value)) for t, one in asked.starts.items())
    return f" {digest(str(begins))}"


def _check_beginning(task: Task, start: Start, flow: Dataflow, standing: Standing) -> None:
    """Raise :class:`InputError` for a time before there was anything; what is gone is another matter."""
    oldest_ns = standing.oldest_ns(task)
    if oldest_ns is not None and start.at is not None and round(start.at.timestamp() * NS) < oldest_ns:
        message = f"dataflow '{flow.name}': start: {start} is before the beginning of source '{task.id}'"
        oldest = f"its oldest file is of {moment(oldest_ns)}"
        raise InputError("START_BEFORE_BEGINNING", f"{message}: {oldest}; give that time or start: earliest")


def _inherited(asked: Asked, begin: Begin, of: Snapshot, taken: StartTaken) -> Beginning:
    """With the marks of another dataflow, so that what is the same in both is shared."""
    sources = {task: asked.signed.signatures[task] for task in asked.starts}
    marks = {task: begin.sources[source] for task, source in sources.items() if source in begin.sources}
    known = {(reading.of, reading.mark): reading for reading in of.readings.values()}
    readings = {task: known[sources[task], mark] for task, mark in marks.items() if (sources[task], mark) in known}
    return Beginning(_with_marks(asked.signed, marks, begin.state, of), taken, begin, readings=readings)


def joining(
    beginning: Beginning, asked: Asked, base: Snapshot, run: Dataflow, signatures: Mapping[TaskId, Signature]
) -> Beginning:
    """How a dataflow that is late gets the past, given how it would ``run`` among the running tasks."""
    check_there(asked.signed.dataflow, beginning.late, base.shared.registry)
    reason = can_join(run, signatures, beginning.late, base)
    if not reason:
        return beginning
    if any(stream.feedback for stream in run.streams) or base.strategy is not StrategyName.HOT:
        return alone(beginning, asked, base, reason)
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


def alone(beginning: Beginning, asked: Asked, base: Snapshot, reason: str) -> Beginning:
    """The same for a dataflow that cannot join what runs, for a reason: its late sources read by themselves."""
    number, plain = base.number + 1, asked.signed
    readings = {**beginning.readings}
    for task, since_ns in beginning.late.items():
        mark = f"alone {number}" + (f" {since_ns}" if since_ns else "")
        source = plain.signatures[task]
        readings[task] = Reading(source, mark, number, modified_since_ns=since_ns, earliest=not since_ns)
    marks = {task: one.mark for task, one in readings.items()}
    state = beginning.begin.state
    return Beginning(
        _with_marks(plain, marks, state, base),
        replace(beginning.taken, how=HowStarted.ALONE, detail=reason),
        replace(beginning.begin, sources={plain.signatures[task]: mark for task, mark in marks.items()}),
        readings=readings,
    )


def can_join(run: Dataflow, signatures: Mapping[TaskId, Signature], late: Collection[TaskId], base: Snapshot) -> str:
    """Why a dataflow cannot go on with the running tasks once a copy of it has caught up; nothing if it can.

    Tasks without state can. A keyed task can if it runs, and has counted from the beginning of its source.
    """
    registry = base.shared.registry
    if any(stream.feedback for stream in run.streams):
        return "it has a loop"
    sources = _sources_before(run)
    for task in run.tasks:
        states = {registry[alternate.type].state for alternate in task.alternates}
        if states == {State.NONE} or sources[task.id].isdisjoint(late):
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


def runs(base: Snapshot, source: Signature) -> bool:
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


def check_there(flow: Dataflow, late: Collection[TaskId], kind_of: Registry) -> None:
    """Raise :class:`InputError` where files that a running source has read are no longer there."""
    for task in flow.tasks:
        if task.id in late and task.type == "read_files":
            options = cast(ReadFiles, kind_of[task.type].config.model_validate(task.config.as_dict()))
            if options.after != "keep":
                gone = "deletes" if options.after == "delete" else "moves"
                message = f"dataflow '{flow.name}' cannot start in the past: its source '{task.id}' runs already"
                raise InputError("PAST_GONE", f"{message} and {gone} files that it has read; give start: now")
