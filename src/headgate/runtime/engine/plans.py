"""The snapshots of a state directory, and the plans that they compile to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from headgate.errors import HeadgateError, InputError
from headgate.gc_paused import paused
from headgate.model.names import Signature
from headgate.model.strategy import StrategyName
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.engine.past import SinkTurn
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.engine.stored import read_dataflow
from headgate.sharing.shared_set import SharedSet
from headgate.store.entries import Entry, SnapshotPublished
from headgate.store.files import write_text
from headgate.store.journal import Journal
from headgate.tasks.registry import Registry

__all__ = ["Plans", "read_snapshot"]

RECENT = 64
"""So many plans before the current one are remembered; older ones are compiled again from their snapshots."""


class Plans:
    """Snapshots by number: made durable, read again, compiled."""

    def __init__(self, state: StateDirectory, registry: Registry, semantic: bool = True) -> None:
        self._journal, self._hosts = state.journal, state.path / "hosts"
        self._registry, self._semantic = registry, semantic
        self._loaded = lru_cache(maxsize=RECENT)(self._load)
        self._recent: dict[int, CompiledPlan] = {}
        with paused():
            last = self._journal.latest(SnapshotPublished)
            self.snapshot = self._read(0 if last is None else last.number)
            self.current = compile_plan(self.snapshot)

    def use_strategy(self, wanted: StrategyName | None) -> None:
        """Carry changes out with another strategy; raises :class:`InputError` while there are dataflows."""
        known, state = self.snapshot, self._journal.path.parent
        if wanted is None or wanted is known.strategy:
            return
        if known.stored:
            message = f"{state} runs its dataflows with strategy '{known.strategy.value}', which cannot become"
            remedy = "withdraw them first, or give another directory with --state"
            raise InputError("STRATEGY_DIFFERS", f"{message} '{wanted.value}' while there are any; {remedy}")
        # Nothing runs, so there is nothing to keep; it becomes durable with the first dataflow.
        shared = SharedSet(self._registry, self._semantic and wanted is not StrategyName.NONE)
        self.snapshot = Snapshot(shared, known.number, strategy=wanted)

    def __call__(self, number: int) -> CompiledPlan:
        """The plan of a snapshot that is still there."""
        if number == self.current.number:
            return self.current
        return self._recent.get(number) or self._loaded(number)

    def due(self, sink: Signature, number: int) -> SinkTurn:
        """What is to become of rows for a sink that were made under snapshot ``number``."""
        return self.snapshot.due(sink, number)

    def prepare(self, plan: CompiledPlan) -> None:
        """Write what the workers of keyed hosts must find before the first row that carries a plan's number."""
        write_text(self._hosts / f"{plan.number}.json", plan.hosts_text(), "hosts")

    def publish(self, snapshot: Snapshot, plan: CompiledPlan, also: Sequence[Entry] = ()) -> None:
        """Make a snapshot durable, together with other entries; from here on it is the current one."""
        self._journal.append(*also, SnapshotPublished(snapshot.number, snapshot.as_dict()))
        recent = dict(list(self._recent.items())[-RECENT + 1 :])
        self._recent = {**recent, self.current.number: self.current}
        self.snapshot, self.current = snapshot, plan

    def unpaused(self) -> CompiledPlan:
        """The plan that there would be if no dataflow were paused."""
        snapshot = self.snapshot
        touched = [task for name in snapshot.paused for task in snapshot.submitted(name).signatures.values()]
        return compile_plan(replace(snapshot, paused=frozenset()), self.current, touched)

    def last_with(self, fragment: str, begun: int) -> CompiledPlan:
        """The last plan that had a fragment which came with snapshot ``begun``; those in between may be gone."""
        for number in range(self.current.number, begun, -1):
            there = number == self.current.number or self._journal.latest(SnapshotPublished, str(number)) is not None
            if there and fragment in self(number).fragments:
                return self(number)
        return self(begun)

    def _read(self, number: int) -> Snapshot:
        return read_snapshot(self._journal, number, self._registry, self._semantic)

    def _load(self, number: int) -> CompiledPlan:
        return compile_plan(self._read(number))


def read_snapshot(journal: Journal, number: int, registry: Registry, semantic: bool = True) -> Snapshot:
    """A snapshot of a state directory; number 0 is the empty one before the first."""
    if number == 0:
        return Snapshot(SharedSet(registry, semantic))
    published = journal.latest(SnapshotPublished, str(number))
    if published is None:
        raise HeadgateError("SNAPSHOT_GONE", f"plan snapshot {number} is not in {journal.path}")
    return Snapshot.from_dict(
        published.snapshot, lambda name: read_dataflow(journal, name, registry), registry, semantic
    )
