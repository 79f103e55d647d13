"""The running set with semantic sharing: dataflows are rewritten to read wider streams, then merged as ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.sharing.change import GraphChange
from headgate.sharing.deduplicate import deduplicate
from headgate.sharing.running import RunningSet
from headgate.sharing.semantic.form import Known
from headgate.sharing.semantic.index import FormIndex
from headgate.sharing.semantic.rewrite import WiderStream, rewrite
from headgate.tasks.registry import Registry

__all__ = ["SharedSet", "Submission"]


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submission changes, and how much of it is owed to equal signatures and how much to normal forms."""

    change: GraphChange
    dataflow: Dataflow
    """As it is merged and is to be run: rewritten where a wider stream runs already."""

    written: Mapping[TaskId, Signature]
    """The signatures of the tasks as their author wrote them."""

    wider: tuple[WiderStream, ...] = ()

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
    >>> [(found.task, found.residual) for found in submission.wider], submission.exact
    ([('f', ('f',))], ('r',))
    """

    registry: Registry
    semantic: bool = True
    running: RunningSet = field(default_factory=RunningSet)
    index: FormIndex = field(default_factory=FormIndex)

    def submit(self, dataflow: Dataflow) -> tuple[SharedSet, Submission]:
        """Merge a dataflow; raises :class:`~headgate.errors.InputError` when its name is taken."""
        if not self.semantic or dataflow.name in self.running:
            running, change = self.running.submit(dataflow)
            merged = running.find(dataflow.name)
            return replace(self, running=running), Submission(change, merged.dataflow, merged.signatures)
        alone = deduplicate(dataflow)
        rewritten = rewrite(alone.dataflow, self.running, self.index, self.registry)
        running, change = self.running.submit(rewritten.dataflow)
        found = {task.signature: rewritten.known.get(task.signature, Known()) for task in change.own}
        submission = Submission(change, running.find(dataflow.name).dataflow, alone.signatures, rewritten.wider)
        return replace(self, running=running, index=self.index.add(found)), submission

    def merge(self, dataflow: Dataflow) -> tuple[SharedSet, Submission]:
        """Merge a dataflow just as it is: one that was rewritten before, or that is to be kept as it was written."""
        running, change = self.running.submit(dataflow)
        merged = running.find(dataflow.name)
        submission = Submission(change, merged.dataflow, merged.signatures)
        if not self.semantic:
            return replace(self, running=running), submission
        # Where nothing runs, nothing is rewritten, and all tasks become known.
        known = rewrite(merged.dataflow, RunningSet(), FormIndex(), self.registry).known
        found = {task.signature: known.get(task.signature, Known()) for task in change.own}
        return replace(self, running=running, index=self.index.add(found)), submission

    def withdraw(self, name: DataflowName | str) -> tuple[SharedSet, GraphChange]:
        """Unmerge a dataflow; raises :class:`~headgate.errors.InputError` when it is not there."""
        running, change = self.running.withdraw(name)
        if not self.semantic:
            return replace(self, running=running), change
        return replace(self, running=running, index=self.index.remove([t.signature for t in change.own])), change
