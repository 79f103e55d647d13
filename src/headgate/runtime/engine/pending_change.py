"""A change on its way: what submissions and withdrawals make of a snapshot, by the strategy it is run with. Pure.

The running set (:mod:`headgate.sharing.shared_set`) decides what is shared. All that it has decided is kept with the
snapshot, so the set can be rebuilt from it, and a plan can be compiled from it again, whenever the engine was killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headgate.model.alternate_choice import AlternateChoice
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.model.strategy import StrategyName
from headgate.model.task_type import State
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.compile.plan import CompiledPlan, alternate_key
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.stored import stored_dataflow
from headgate.sharing.change import GraphChange
from headgate.sharing.confinement import confined, met_in_a_batch
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.shared_set import SharedSet, Submission
from headgate.sharing.strategies import deploy
from headgate.store.entries import DataflowStored

__all__ = ["GROUPED", "PendingChange"]

GROUPED = (StrategyName.INCREMENTAL, StrategyName.REPLACE, StrategyName.REPLACE_PRUNE)
"""Strategies that need to know which tasks were launched together."""

ENGINE, SUBMITTED = "headgate", "the alternate of most value, when the dataflow was submitted"

STAYING = (StrategyName.INCREMENTAL, StrategyName.REPLACE)
"""Strategies under which tasks that nobody needs any more stay where they are, without work."""


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A snapshot to come, and what led there."""

    snapshot: Snapshot
    touched: tuple[Signature, ...] = ()
    """The tasks that come, go, or are run in another way or for others; each after those that feed it."""

    new: tuple[DataflowStored, ...] = ()
    """The dataflows that are to be stored."""

    submissions: tuple[Submission, ...] = ()
    withdrawals: tuple[GraphChange, ...] = ()
    stopped: frozenset[Signature] = frozenset()
    """Tasks whose fragments the strategy stops, and starts again with what has changed."""

    at: float = 0.0
    """When it was asked for, in seconds since 1970."""

    by: str = ""
    """Who has chosen alternates; the engine itself, if nobody."""

    reason: str = ""

    def submitted(self, dataflow: Dataflow | SignedDataflow) -> PendingChange:
        """One more dataflow; raises :class:`~headgate.errors.InputError` when its name is taken."""
        shared, submission = self._merged(deduplicate(dataflow))
        submitted = shared.running.find(submission.change.dataflow)
        text = stored_dataflow(submitted)
        stored = {**self.snapshot.stored, submitted.dataflow.name: text.id}
        pending = replace(
            self,
            snapshot=replace(self.snapshot, shared=shared, stored=stored),
            touched=(*self.touched, *submitted.signatures.values()),
            new=(*self.new, text),
            submissions=(*self.submissions, submission),
        )
        return pending._deployed(submission.change)

    def withdrawn(self, name: str) -> PendingChange:
        """One dataflow less; raises :class:`~headgate.errors.InputError` when it is not there."""
        submitted = self.snapshot.find(name)
        gone = submitted.dataflow.name
        shared, change = self.snapshot.shared.withdraw(gone)
        stored = {key: value for key, value in self.snapshot.stored.items() if key != gone}
        paused = self.snapshot.paused - {gone}
        levels = {key: level for key, level in self.snapshot.levels.items() if key != gone}
        pending = replace(
            self,
            snapshot=replace(self.snapshot, shared=shared, stored=stored, paused=paused, levels=levels),
            touched=(*self.touched, *submitted.signatures.values()),
            withdrawals=(*self.withdrawals, change),
        )
        return pending._deployed(change)

    def making_room(self, dataflows: Sequence[Dataflow | SignedDataflow]) -> PendingChange:
        """Without the dataflows that have the names of these."""
        pending = self
        for name in dict.fromkeys(dataflow.name for dataflow in dataflows):
            pending = pending.withdrawn(name) if name in self.snapshot.stored else pending
        return pending

    def chosen(self, touched: Iterable[Signature], **choices: Any) -> PendingChange:
        """Other choices for the same dataflows."""
        return replace(
            self, snapshot=replace(self.snapshot, **choices), touched=(*self.touched, *dict.fromkeys(touched))
        )

    def compiled(self, before: CompiledPlan) -> tuple[Snapshot, CompiledPlan]:
        """The next snapshot and its plan; raises :class:`~headgate.errors.InputError` for what cannot be run."""
        snapshot = self.snapshot.next()
        plan = compile_plan(snapshot, before, dict.fromkeys(self.touched))
        since = dict(snapshot.since)
        for signature in self.touched:
            task = plan.tasks.get(signature)
            if task is not None and task.state in (State.KEYED, State.NATIVE):
                since[signature] = task.since
            else:
                since.pop(signature, None)
        resting = frozenset[str]()
        if snapshot.strategy in STAYING:
            resting = frozenset({*before.fragments, *snapshot.resting} - plan.fragments.keys())
        return replace(snapshot, since=since, resting=resting, chosen=self._chosen(plan)), plan

    def _chosen(self, plan: CompiledPlan) -> Mapping[Signature, AlternateChoice]:
        """Since when alternates are active: from now on where a touched task has another one than before."""
        running = self.snapshot.shared.running.tasks
        chosen = {task: choice for task, choice in self.snapshot.chosen.items() if task in running}
        for signature in dict.fromkeys(self.touched):
            task = plan.tasks.get(signature)
            if task is None or not task.running.task.is_dynamic:
                continue
            key, known = alternate_key(task.alternate), chosen.get(signature)
            if known is None or known.alternate != key:
                by, reason = (self.by, self.reason) if self.by else (ENGINE, SUBMITTED)
                chosen[signature] = AlternateChoice(key, self.at, by, reason)
        return chosen

    def _merged(self, signed: SignedDataflow) -> tuple[SharedSet, Submission]:
        before, written = self.snapshot.shared, signed.dataflow
        if self.snapshot.strategy is StrategyName.NONE:
            return before.merge(confined(written), written)
        shared, submission = before.submit(signed)
        if self.snapshot.strategy is StrategyName.INCREMENTAL:
            together = met_in_a_batch(submission.dataflow, submission.change.own_ids, shared.registry)
            if together:
                return before.merge(confined(submission.dataflow, together), written)
        return shared, submission

    def _deployed(self, change: GraphChange) -> PendingChange:
        if self.snapshot.strategy not in GROUPED:
            return self
        units, steps = deploy(self.snapshot.strategy, self.snapshot.units, change, self.snapshot.shared.running)
        stopped = self.stopped.union(*(group.active for group in steps.stopped))
        return replace(self, snapshot=replace(self.snapshot, units=units), stopped=stopped)
