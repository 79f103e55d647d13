"""The running set with semantic sharing: dataflows are rewritten to read wider streams, then merged as ever."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from immutables import Map

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.sharing.change import GraphChange
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.running import RunningSet
from headgate.sharing.semantic.form import Known, understand
from headgate.sharing.semantic.index import FormIndex
from headgate.sharing.semantic.rewrite import WiderStream, rewrite
from headgate.tasks.registry import Registry

__all__ = ["FROM_THE_EARLIEST", "HowStarted", "SharedSet", "StartTaken", "Submission"]


class HowStarted(StrEnum):
    """How a dataflow gets the rows from its start on."""

    NEW = "new"
    """It brings its sources, which are read from there."""

    NOW = "now"
    """It gets what comes from now on."""

    WITH = "with"
    """It begins where another dataflow stands."""

    CONTINUED = "continued"
    """It takes the place of another version of itself."""

    CATCH_UP = "catch up"
    """What has passed is computed beside what runs; then it goes on with that."""

    ALONE = "alone"
    """It reads its sources by itself, from its start."""


@dataclass(frozen=True, slots=True)
class StartTaken:
    """From where a dataflow reads, and how it gets that."""

    start: str
    how: HowStarted
    detail: str = ""
    lacks: str = ""
    """What is no longer there of its past."""

    @property
    def sentence(self) -> str:
        """The same for people; nothing where it goes without saying.

        >>> StartTaken("now", HowStarted.NOW, "from the files that come from now on").sentence
        'Start now: from the files that come from now on.'
        """
        said = {
            HowStarted.NEW: self.detail,
            HowStarted.CATCH_UP: "what has passed is computed beside what runs, which it shares from here on",
            HowStarted.ALONE: f"it reads its sources by itself, since {self.detail}; what runs began without it",
        }.get(self.how, self.detail)
        text = f"Start {self.start}: {said}." if said else ""
        return f"{text} It lacks what is gone ({self.lacks}).".lstrip() if self.lacks else text


FROM_THE_EARLIEST = StartTaken("earliest", HowStarted.NEW)


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submission changes, and how much of it is owed to equal signatures and how much to normal forms."""

    change: GraphChange
    dataflow: Dataflow
    """As it is merged and is to be run: rewritten where a wider stream runs already."""

    written: Mapping[TaskId, Signature]
    """The signatures of the tasks as their author wrote them."""

    wider: tuple[WiderStream, ...] = ()
    start: StartTaken = FROM_THE_EARLIEST

    @property
    def exact(self) -> tuple[TaskId, ...]:
        """The tasks that run already, just as written; the other shared ones are owed to normal forms."""
        signatures = set(self.written.values())
        return tuple(shared.id for shared in self.change.shared if shared.running.signature in signatures)


@dataclass(frozen=True, slots=True)
class SharedSet:
    """What runs, with one switch: whether dataflows are also matched by what they mean.

    >>> from headgate.documents import parse
    >>> from headgate.tasks.registry import default_registry
    >>> text = (
    ...     "name: {0}\\ntasks: [{{id: r, type: rate}}, {{id: f, type: filter, config: {{where: {1}}}, inputs: [r]}}]"
    ... )
    >>> wide, narrow = (parse(text.format(*t), "yaml").dataflow for t in [("w", "value > 1"), ("n", "value > 5")])
    >>> shared, _ = SharedSet(default_registry()).submit(wide)
    >>> _, submission = shared.submit(narrow)
    >>> [(stream.task, stream.residual) for stream in submission.wider], submission.exact
    ([('f', ('f',))], ('r',))
    """

    registry: Registry
    semantic: bool = True
    running: RunningSet = field(default_factory=RunningSet)
    index: FormIndex = field(default_factory=FormIndex)
    unread: Map[Signature, tuple[Signature, ...]] = field(default_factory=Map)
    """Running tasks that the index does not have yet, by their root: their expressions are parsed when needed."""

    def submit(
        self, dataflow: Dataflow | SignedDataflow, written: Dataflow | None = None
    ) -> tuple[SharedSet, Submission]:
        """Merge a dataflow; raises :class:`~headgate.errors.InputError` when its name is taken.

        ``written`` is how its author wrote it, if it is not that.
        """
        signed = deduplicate(dataflow)
        if not self.semantic or signed.name in self.running:
            return self.merge(signed, written)
        before = self._indexed(signed)
        rewritten = rewrite(signed, before.running, before.index, before.registry)
        running, change = before.running.submit(rewritten.signed, written or signed.dataflow)
        known = {task.signature: rewritten.known.get(task.signature, Known()) for task in change.own}
        submission = Submission(change, rewritten.signed.dataflow, signed.signatures, rewritten.wider)
        return replace(before, running=running, index=before.index.add(known)), submission

    def merge(
        self, dataflow: Dataflow | SignedDataflow, written: Dataflow | None = None
    ) -> tuple[SharedSet, Submission]:
        """Merge a dataflow just as it is: one that was rewritten before, or that is to be kept as it was written."""
        signed = deduplicate(dataflow)
        running, change = self.running.submit(signed, written)
        submission = Submission(change, signed.dataflow, signed.signatures)
        if not self.semantic:
            return replace(self, running=running), submission
        added: dict[Signature, list[Signature]] = {}
        for task in change.own:
            added.setdefault(task.root, []).append(task.signature)
        unread = self.unread
        for root, tasks in added.items():
            unread = unread.set(root, (*unread.get(root, ()), *tasks))
        return replace(self, running=running, unread=unread), submission

    def withdraw(self, name: DataflowName | str) -> tuple[SharedSet, GraphChange]:
        """Unmerge a dataflow; raises :class:`~headgate.errors.InputError` when it is not there."""
        running, change = self.running.withdraw(name)
        if not self.semantic:
            return replace(self, running=running), change
        return replace(self, running=running, index=self.index.remove([t.signature for t in change.own])), change

    def _indexed(self, signed: SignedDataflow) -> SharedSet:
        """This set with an index of all tasks that a dataflow could read: those below the roots that it shares."""
        if not self.unread:
            return self
        tasks = self.running.tasks
        used = (tasks.get(signature) for signature in signed.signatures.values())
        roots = {task.running.root for task in used if task is not None and task.running.root in self.unread}
        if not roots:
            return self
        known: dict[Signature, Known] = {}
        both = ChainMap[Signature, Known](known, self.index.known)  # type: ignore[arg-type]
        waiting = [signature for root in roots for signature in reversed(self.unread[root]) if signature in tasks]
        while waiting:
            task = tasks[waiting[-1]].running
            first = [s.source for s in task.feeds if not s.feedback and s.source not in both]
            if first and task.signature not in both:
                waiting += first
                continue
            if task.signature not in both:
                known[task.signature] = understand(task.task, task.task.scope, task.feeds, both, self.registry)
            waiting.pop()
        unread = self.unread
        for root in roots:
            unread = unread.delete(root)
        return replace(self, index=self.index.add(known), unread=unread)
