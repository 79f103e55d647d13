"""A change on its way: what submissions and withdrawals make of a snapshot, by the strategy it is run with. Pure.

The running set (:mod:`headgate.sharing.shared_set`) decides what is shared. All that it has decided is kept with the
snapshot, so the set can be rebuilt from it, and a plan can be compiled from it again, whenever the engine was killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from headgate.errors import InputError
from headgate.model.alternate_choice import AlternateChoice
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature
from headgate.model.strategy import StrategyName
from headgate.model.task_type import Role, State
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.compile.plan import CompiledPlan, alternate_key
from headgate.runtime.engine.past import Begin, CatchUp, Reading
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.source_starts import asked_of
from headgate.runtime.engine.starting import UNKNOWN, Beginning, Standing, beginning_of, handed_tasks, joining
from headgate.runtime.engine.stored import stored_dataflow
from headgate.sharing.change import GraphChange
from headgate.sharing.confinement import confined, met_in_a_batch
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.past import past_name, past_of
from headgate.sharing.published import with_streams
from headgate.sharing.shared_set import HowStarted, SharedSet, StartTaken, Submission
from headgate.sharing.strategies import deploy
from headgate.store.entries import DataflowStored

__all__ = ["GROUPED", "PendingChange"]


def _also(chosen: Mapping[Signature, C], same: Mapping[Signature, Signature]) -> dict[Signature, C]:
    """Choices, and the same for the copies of tasks."""
    return {**chosen, **{copy: chosen[task] for task, copy in same.items() if task in chosen}}


def _with(kept: Mapping[DataflowName, Begin], name: DataflowName, begin: Begin) -> dict[DataflowName, Begin]:
    rest = {key: value for key, value in kept.items() if key != name}
    return rest if begin == Begin() else {**rest, name: begin}


GROUPED = (StrategyName.INCREMENTAL, StrategyName.REPLACE, StrategyName.REPLACE_PRUNE)
"""Strategies that need to know which tasks were launched together."""

ENGINE, SUBMITTED = "headgate", "the alternate of most value, when the dataflow was submitted"

STAYING = (StrategyName.INCREMENTAL, StrategyName.REPLACE)
"""Strategies under which tasks that nobody needs any more stay where they are, without work."""


C = TypeVar("C", str, int)

MOST_ABANDONED = 1_000
"""So many sinks are remembered whose dataflows were withdrawn while they caught up."""


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

    base: Snapshot | None = None
    """What runs before the change, once the change has begun."""

    now_s: float = 0.0
    standing: Standing = UNKNOWN
    at: float = 0.0
    """When it was asked for, in seconds since 1970."""

    by: str = ""
    """Who has chosen alternates; the engine itself, if nobody."""

    reason: str = ""
    allow_partial: bool = False
    """Whether dataflows take what is there where some of their past is gone."""

    @property
    def before(self) -> Snapshot:
        """What runs before the change."""
        return self.base or self.snapshot

    def with_all(self, dataflows: Sequence[Dataflow | SignedDataflow], replace: bool) -> PendingChange:
        """More dataflows; with ``replace`` in the place of those that have their names."""
        pending = self.making_room(dataflows) if replace else self
        for dataflow in dataflows:
            pending = pending.submitted(dataflow)
        return pending

    def without(self, names: Iterable[str]) -> PendingChange:
        """Some dataflows less."""
        pending = self
        for name in names:
            pending = pending.withdrawn(name)
        return pending

    def submitted(self, dataflow: Dataflow | SignedDataflow) -> PendingChange:
        """One more dataflow; raises :class:`~headgate.errors.InputError` when its name is taken."""
        plain, base = deduplicate(dataflow), self.before
        asked = asked_of(self._with_streams(plain), self.snapshot.shared.registry, self.allow_partial)
        beginning = beginning_of(asked, base, self.snapshot, self.now_s, self.standing)
        shared, submission = self._merged(beginning.signed, plain.dataflow)
        submitted = shared.running.find(plain.name)
        if beginning.late:
            wanted = beginning
            beginning = joining(wanted, asked, base, submitted.dataflow, submitted.signatures)
            if beginning is not wanted:
                shared, submission = self._merged(beginning.signed, plain.dataflow)
                submitted = shared.running.find(plain.name)
        text = stored_dataflow(submitted)
        snapshot = replace(
            self.snapshot,
            shared=shared,
            stored={**self.snapshot.stored, plain.name: text.id},
            begins=_with(self.snapshot.begins, plain.name, beginning.begin),
            readings={**self.snapshot.readings, **beginning.readings_of(submitted.signatures)},
        )
        pending = replace(
            self,
            base=base,
            snapshot=snapshot,
            touched=(*self.touched, *submitted.signatures.values()),
            new=(*self.new, text),
        )._deployed(submission.change)
        taken, pending = pending._catching_up(beginning, submission)
        return replace(pending, submissions=(*pending.submissions, replace(submission, start=taken)))

    def _with_streams(self, plain: SignedDataflow) -> SignedDataflow:
        """A dataflow with the tasks that make the streams which it reads."""
        flow = plain.dataflow
        made = with_streams(flow, lambda: (self.snapshot.submitted(name).written for name in self.snapshot.stored))
        return plain if made is flow else deduplicate(made)

    def _catching_up(self, beginning: Beginning, submission: Submission) -> tuple[StartTaken, PendingChange]:
        """With a bounded copy of a dataflow that computes what has passed, if it needs one."""
        if not beginning.late:
            return beginning.taken, self
        name, number = submission.change.dataflow, self.before.number + 1
        live = self.snapshot.submitted(name).signatures
        registry = self.snapshot.shared.registry
        # As it runs where running tasks go on with what the copy makes: task by task.
        flow = self.snapshot.submitted(name).dataflow if beginning.hands_over else beginning.signed.dataflow
        handed = handed_tasks(flow, beginning.late, registry) if beginning.hands_over else frozenset()
        ends = {task.id for task in flow.tasks if registry[task.type].role is Role.SINK}
        complete = {task for task in ends if live.get(task) in self.before.shared.running.tasks}
        marks = {t: f"past {number}" + (f" {since}" if since else "") for t, since in beginning.late.items()}
        past = past_of(flow, marks, ends - complete, handed)
        if past is None:
            return replace(beginning.taken, how=HowStarted.NEW, detail="its sinks are there already"), self
        shared, copied = self.snapshot.shared.merge(deduplicate(past))
        submitted = shared.running.find(past.name)
        text, copies = stored_dataflow(submitted), submitted.signatures
        sinks = {copies[task]: live[task] for task in ends if task in copies}
        readings = {
            copies[task]: Reading(live[task], marks[task], number, True, since)
            for task, since in beginning.late.items()
            if task in copies
        }
        same = {live[task]: copy for task, copy in copies.items() if task in live}
        parts = tuple(live[task] for task in sorted(handed)), same if handed else {}
        snapshot = replace(
            self.snapshot,
            shared=shared,
            readings={**self.snapshot.readings, **readings},
            catch_ups={**self.snapshot.catch_ups, name: CatchUp(text.id, sinks, *parts)},
            active=_also(self.snapshot.active, same),
            partitions=_also(self.snapshot.partitions, same),
        )
        pending = replace(self, snapshot=snapshot, touched=(*self.touched, *copies.values()), new=(*self.new, text))
        return replace(beginning.taken, how=HowStarted.CATCH_UP), pending._deployed(copied.change)

    def caught_up(self, names: Iterable[DataflowName]) -> PendingChange:
        """Without the copies of dataflows that have computed what had passed."""
        pending = self
        for name in names:
            pending = pending._without_past(name)
        return pending

    def _without_past(self, name: DataflowName) -> PendingChange:
        copies = self.snapshot.submitted(past_name(name)).signatures
        shared, change = self.snapshot.shared.withdraw(past_name(name))
        catch_ups = {key: value for key, value in self.snapshot.catch_ups.items() if key != name}
        pending = replace(
            self,
            base=self.before,
            snapshot=replace(self.snapshot, shared=shared, catch_ups=catch_ups).tidied(copies.values()),
            touched=(*self.touched, *self.snapshot.catch_ups[name].handed, *copies.values()),
        )
        return pending._deployed(change)

    def withdrawn(self, name: str) -> PendingChange:
        """One dataflow less; raises :class:`~headgate.errors.InputError` when it is not there."""
        submitted = self.snapshot.find(name)
        gone = submitted.dataflow.name
        if gone in self.snapshot.catch_ups:
            return self._without_past(gone)._abandoned(self.snapshot.catch_ups[gone]).withdrawn(gone)
        shared, change = self.snapshot.shared.withdraw(gone)
        stored = {key: value for key, value in self.snapshot.stored.items() if key != gone}
        begins = {key: value for key, value in self.snapshot.begins.items() if key != gone}
        paused = self.snapshot.paused - {gone}
        levels = {key: level for key, level in self.snapshot.levels.items() if key != gone}
        pending = replace(
            self,
            base=self.before,
            snapshot=replace(
                self.snapshot, shared=shared, stored=stored, begins=begins, paused=paused, levels=levels
            ).tidied(submitted.signatures.values()),
            touched=(*self.touched, *submitted.signatures.values()),
            withdrawals=(*self.withdrawals, change),
        )
        return pending._deployed(change)

    def _abandoned(self, one: CatchUp) -> PendingChange:
        """Rows that waited for a catch-up never come: there would be a gap before them."""
        gone = dict(list(self.snapshot.abandoned.items())[-MOST_ABANDONED:])
        gone |= dict.fromkeys(one.sinks.values(), self.before.number + 1)
        return replace(self, snapshot=replace(self.snapshot, abandoned=gone))

    def making_room(self, dataflows: Sequence[Dataflow | SignedDataflow]) -> PendingChange:
        """Without the dataflows that have the names of these."""
        pending = self
        for dataflow in dataflows:
            if dataflow.name in self.snapshot.catch_ups:
                message = f"dataflow '{dataflow.name}' is catching up; replace it when it has, or withdraw it first"
                raise InputError("CATCHING_UP", message)
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
            if task is not None and (task.role is Role.SOURCE or task.state in (State.KEYED, State.NATIVE)):
                since[signature] = task.since
            elif not self._is_read(signature):
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

    def _is_read(self, signature: Signature) -> bool:
        """Whether it is a source that is read although all that use it are paused."""
        used = self.snapshot.shared.running.tasks.get(signature)
        return used is not None and used.running.root == signature

    def _merged(self, signed: SignedDataflow, written: Dataflow) -> tuple[SharedSet, Submission]:
        before = self.snapshot.shared
        if self.snapshot.strategy is StrategyName.NONE:
            return before.merge(confined(signed.dataflow), written)
        shared, submission = before.submit(signed, written)
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
