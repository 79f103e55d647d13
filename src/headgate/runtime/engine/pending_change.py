"""Joining and leaving: what submissions and withdrawals make of a snapshot, by the strategy it is run with. Pure.

The running set (:mod:`headgate.sharing.shared_set`) decides what is shared. All that it has decided is in the snapshot,
so the set can be rebuilt from it, and a plan can be compiled from it again, whenever the engine was killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.model.strategy import StrategyName
from headgate.runtime.engine.snapshot import Snapshot
from headgate.sharing.change import GraphChange
from headgate.sharing.confinement import confined, met_in_a_batch
from headgate.sharing.deduplicate import deduplicate
from headgate.sharing.shared_set import SharedSet, Submission
from headgate.sharing.strategies import deploy
from headgate.tasks.registry import Registry

__all__ = ["PendingChange", "restored"]

IN_UNITS = (StrategyName.INCREMENTAL, StrategyName.REPLACE, StrategyName.REPLACE_PRUNE)
"""Strategies that need to know which tasks were launched together."""


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A snapshot to come, the running set that belongs to it, and what led there."""

    snapshot: Snapshot
    shared: SharedSet
    submissions: tuple[Submission, ...] = ()
    withdrawals: tuple[GraphChange, ...] = ()
    stopped: frozenset[Signature] = frozenset()
    """Tasks whose fragments the strategy stops, and starts again with what has changed."""

    def submitted(self, dataflow: Dataflow) -> PendingChange:
        """One more dataflow; raises :class:`~headgate.errors.InputError` when its name is taken."""
        written = deduplicate(dataflow).dataflow
        shared, submission = self._merged(written)
        as_run = {} if submission.dataflow == written else {written.name: submission.dataflow}
        snapshot = replace(
            self.snapshot,
            dataflows=(*self.snapshot.dataflows, written),
            merged={**self.snapshot.merged, **as_run},
        )
        joined = replace(self, snapshot=snapshot, shared=shared, submissions=(*self.submissions, submission))
        return joined._deployed(submission.change)

    def withdrawn(self, name: str) -> PendingChange:
        """One dataflow less; raises :class:`~headgate.errors.InputError` when it is not there."""
        gone = self.snapshot.find(name)
        shared, change = self.shared.withdraw(gone.name)
        snapshot = replace(
            self.snapshot,
            dataflows=tuple(flow for flow in self.snapshot.dataflows if flow.name != gone.name),
            merged={key: flow for key, flow in self.snapshot.merged.items() if key != gone.name},
            paused=self.snapshot.paused - {gone.name},
        )
        joined = replace(self, snapshot=snapshot, shared=shared, withdrawals=(*self.withdrawals, change))
        return joined._deployed(change)

    def making_room(self, dataflows: Sequence[Dataflow]) -> PendingChange:
        """Without the dataflows that have the names of these."""
        joined, there = self, {flow.name for flow in self.snapshot.dataflows}
        for name in dict.fromkeys(flow.name for flow in dataflows):
            joined = joined.withdrawn(name) if name in there else joined
        return joined

    def _merged(self, written: Dataflow) -> tuple[SharedSet, Submission]:
        if self.snapshot.strategy is StrategyName.NONE:
            return self.shared.merge(confined(written))
        shared, submission = self.shared.submit(written)
        if self.snapshot.strategy is StrategyName.INCREMENTAL:
            apart = met_in_a_batch(submission.dataflow, submission.change.own_ids, shared.registry)
            if apart:
                return self.shared.merge(confined(submission.dataflow, apart))
        return shared, submission

    def _deployed(self, change: GraphChange) -> PendingChange:
        if self.snapshot.strategy not in IN_UNITS:
            return self
        deployment, steps = deploy(self.snapshot.strategy, self.snapshot.deployment, change, self.shared.running)
        stopped = self.stopped.union(*(unit.active for unit in steps.stopped))
        return replace(self, snapshot=replace(self.snapshot, deployment=deployment), stopped=stopped)


def restored(snapshot: Snapshot, registry: Registry, semantic: bool) -> SharedSet:
    """The running set that a snapshot was decided with."""
    shared = SharedSet(registry, semantic and snapshot.strategy is not StrategyName.NONE)
    for dataflow in snapshot.dataflows:
        shared, _ = shared.merge(snapshot.as_run(dataflow))
    return shared
