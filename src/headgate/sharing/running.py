"""The running set: every task of the submitted dataflows once, by its signature.

SHARE keeps two invariants. *Sink coverage* (Eq. 1): for each sink of a submitted dataflow an equivalent task runs.
*Minimisation* (Eq. 2): nothing runs twice, and nothing runs that no submitted sink needs. Equivalent tasks have equal
signatures, so both hold exactly when the running tasks are the submitted tasks by signature: a task runs while some
submitted dataflow has it (every task of a dataflow is needed by one of its sinks).

That makes merging (Alg. 1) a lookup for each submitted task and unmerging (Alg. 2) a count that reaches zero. Neither
looks at the rest of what is running. The paper's algorithms first collect the overlapping running dataflows and compare
ancestor graphs within them, which costs what they are large; here the index by signature stands for both steps.

The set is a value: an operation returns the next one and leaves this one as it was, so a failed operation has changed
nothing (:mod:`headgate.sharing.versioned` makes that quick).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from immutables import Map

from headgate.errors import InputError, unknown
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.model.share import Share
from headgate.model.stream import Stream
from headgate.model.task import Task
from headgate.sharing.change import GraphChange, Operation, RunningStream, RunningTask, SharedTask
from headgate.sharing.components import Components, Link
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.versioned import VersionedMap

__all__ = ["RunningDataflow", "RunningSet", "Submitted", "UsedTask"]


_NOBODY: Map[DataflowName, TaskId] = Map()


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submitted dataflow without its duplicates, and the running task of each of its tasks."""

    dataflow: Dataflow
    signatures: Mapping[TaskId, Signature]
    """Each task after those that feed it."""

    written: Dataflow
    """As its author wrote it; ``dataflow`` may read wider streams instead, or confine tasks."""


class UsedTask(NamedTuple):
    """A running task, the dataflows that use it, and what each calls it."""

    running: RunningTask
    users: Map[DataflowName, TaskId]

    def without_user(self, name: DataflowName) -> UsedTask:
        return UsedTask(self.running, self.users.delete(name))


@dataclass(frozen=True, slots=True)
class RunningDataflow:
    """A connected component of the running graph, and the submitted dataflows that are part of it."""

    number: int
    tasks: frozenset[Signature]
    submitted: frozenset[DataflowName]


@dataclass(frozen=True, slots=True)
class RunningSet:
    """What is submitted, what runs for it, and who uses which running task.

    >>> from headgate.documents import parse
    >>> text = (
    ...     "name: {0}\\ntasks: [{{id: r, type: rate}}, {{id: {0}, type: filter, config: {{where: {1}}}, inputs: [r]}}]"
    ... )
    >>> hot, cold = (parse(text.format(*t), "yaml").dataflow for t in [("hot", "value > 9"), ("cold", "value < 1")])
    >>> first, _ = RunningSet().submit(hot)
    >>> both, change = first.submit(cold)
    >>> [shared.id for shared in change.shared], list(change.own_ids), len(both.tasks)
    (['r'], ['cold'], 3)
    >>> both.withdraw("cold")[0].tasks == first.tasks
    True
    """

    submitted: VersionedMap[DataflowName, Submitted] = field(default_factory=VersionedMap)
    tasks: VersionedMap[Signature, UsedTask] = field(default_factory=VersionedMap)
    components: Components = field(default_factory=Components)

    def __contains__(self, name: object) -> bool:
        return name in self.submitted

    def find(self, name: str) -> Submitted:
        """A submitted dataflow; raises :class:`InputError` when none of that name is there."""
        submitted = self.submitted.get(DataflowName(name))
        if submitted is None:
            raise unknown("UNKNOWN_DATAFLOW", f"no dataflow '{name}' is submitted", name, self.submitted)
        return submitted

    def submit(
        self, dataflow: Dataflow | SignedDataflow, written: Dataflow | None = None
    ) -> tuple[RunningSet, GraphChange]:
        """Merge a dataflow (SHARE, Alg. 1); raises :class:`InputError` when its name is taken.

        Takes time in proportion to the dataflow's own size, whatever is running.
        """
        signed = deduplicate(dataflow)
        name = signed.name
        if name in self.submitted:
            message = f"a dataflow '{name}' is submitted already; withdraw it first, or give this one another name"
            raise InputError("NAME_TAKEN", message, {"dataflow": name})
        signatures = signed.signatures
        used = dict(zip(signatures, self.tasks.look_up(signatures.values()), strict=True))
        added = self._added(signed, used)
        shared, changed = [], dict[Signature, UsedTask]()
        for task, known in used.items():
            if known is not None:
                shared.append(SharedTask(task, known.running, known.users))
                changed[signatures[task]] = UsedTask(known.running, known.users.set(name, task))
        for task, running in added.items():
            changed[running.signature] = UsedTask(running, _NOBODY.set(name, task))
        own = tuple(added.values())
        after = RunningSet(
            self.submitted.updated({name: Submitted(signed.dataflow, signatures, written or signed.dataflow)}),
            self.tasks.updated(changed),
            self._grown(own, changed),
        )
        before = _numbers(self.components, shared)
        numbers = _numbers(after.components, changed.values())
        return after, GraphChange(Operation.SUBMIT, name, tuple(shared), own, tuple(added), before, numbers)

    def withdraw(self, name: str) -> tuple[RunningSet, GraphChange]:
        """Unmerge a dataflow (SHARE, Alg. 2); raises :class:`InputError` when it is not there.

        Takes time in proportion to the dataflow's own size, and where it linked sources that are now separate, to the
        smaller part's sources and links.
        """
        submitted = self.find(name)
        gone = submitted.dataflow.name
        used = {task: self.tasks[signature].without_user(gone) for task, signature in submitted.signatures.items()}
        shared = tuple(SharedTask(task, left.running, left.users) for task, left in used.items() if left.users)
        removed = {task: left.running for task, left in used.items() if not left.users}
        after = RunningSet(
            self.submitted.updated({}, without=[gone]),
            self.tasks.updated(
                {left.running.signature: left for left in used.values() if left.users},
                without=[running.signature for running in removed.values()],
            ),
            self._shrunk(tuple(removed.values())),
        )
        before = tuple(sorted({self.components.of(left.running.root) for left in used.values()}))
        numbers = _numbers(after.components, shared)
        change = GraphChange(Operation.WITHDRAW, gone, shared, tuple(removed.values()), tuple(removed), before, numbers)
        return after, change

    def users(self, signature: Signature) -> Mapping[DataflowName, TaskId]:
        """The dataflows that use a running task, and what each calls it."""
        return self.tasks[signature].users

    def dataflows(self) -> Iterator[RunningDataflow]:
        """The running dataflows (the set D-bar of SHARE); looks at every running task."""
        tasks: dict[int, list[Signature]] = {}
        names: dict[int, set[DataflowName]] = {}
        for signature, used in self.tasks.as_dict().items():
            number = self.components.of(used.running.root)
            tasks.setdefault(number, []).append(signature)
            names.setdefault(number, set()).update(used.users)
        return (RunningDataflow(n, frozenset(tasks[n]), frozenset(names[n])) for n in sorted(tasks))

    def _added(self, signed: SignedDataflow, used: Mapping[TaskId, UsedTask | None]) -> dict[TaskId, RunningTask]:
        """The tasks that do not run yet, with their streams and roots."""
        signatures, flow = signed.signatures, signed.dataflow
        feeds: dict[TaskId, list[Stream]] = {task: [] for task, known in used.items() if known is None}
        if not feeds:
            return {}
        for stream in flow.streams:
            if stream.target in feeds:
                feeds[stream.target].append(stream)
        by_id = {task.id: task for task in flow.tasks}
        added: dict[TaskId, RunningTask] = {}
        for task, entering in feeds.items():
            signature = root = signatures[task]
            for stream in entering:
                if not stream.feedback:
                    known = used[stream.source]
                    root = known.running.root if known else added[stream.source].root
                    break
            streams = tuple([_by_signature(stream, signature, signatures) for stream in entering])
            added[task] = RunningTask(signature, _confined(by_id[task], flow), streams, root, flow.name)
        return added

    def _grown(self, added: tuple[RunningTask, ...], changed: Mapping[Signature, UsedTask]) -> Components:
        components = self.components
        roots = [task.signature for task in added if task.root == task.signature]
        components = components.add(roots) if roots else components
        links = _links(added, changed)
        return components.link(links) if links else components

    def _shrunk(self, removed: tuple[RunningTask, ...]) -> Components:
        components = self.components
        links = _links(removed, self.tasks)
        components = components.unlink(links) if links else components
        roots = [task.signature for task in removed if task.root == task.signature]
        return components.remove(roots) if roots else components


def _confined(task: Task, flow: Dataflow) -> Task:
    """The task, saying for itself to which circle it is confined."""
    if task.share is None and not task.scope and flow.share is Share.ANYONE:
        return task
    scope = flow.scope(task)
    return replace(task, share=None, scope=scope) if scope or task.share else task


def _by_signature(stream: Stream, target: Signature, signatures: Mapping[TaskId, Signature]) -> RunningStream:
    return RunningStream(
        signatures[stream.source],
        stream.source_port,
        target,
        stream.target_port,
        stream.routing,
        stream.side,
        stream.feedback,
    )


def _links(own: tuple[RunningTask, ...], tasks: Mapping[Signature, UsedTask]) -> list[Link]:
    """The pairs of roots whose rows meet in a task that comes or goes, a pair for each stream."""
    return [
        (root, task.root)
        for task in own
        if len(task.feeds) > 1 or task.root == task.signature
        for stream in task.feeds
        if (root := tasks[stream.source].running.root) != task.root
    ]


def _numbers(components: Components, tasks: Iterable[SharedTask | UsedTask]) -> tuple[int, ...]:
    """The running dataflows of some tasks, mostly one: then there is one root."""
    roots = {task.running.root for task in tasks}
    return (components.of(*roots),) if len(roots) == 1 else tuple(sorted({components.of(root) for root in roots}))
