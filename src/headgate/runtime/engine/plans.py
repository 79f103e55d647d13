"""The snapshots of a state directory, and the plans that they compile to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.gc_paused import paused
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.engine.compaction import remove_snapshots
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.engine.stored import DataflowStore, StoredText
from headgate.runtime.engine.upgrade import upgrade
from headgate.sharing.shared_set import SharedSet
from headgate.store.files import read_json, write_json, write_text
from headgate.tasks.registry import Registry

__all__ = ["Plans", "read_snapshot"]

RECENT = 64
"""So many plans before the current one are remembered; older ones are compiled again from their snapshots."""


class Plans:
    """Snapshots by number: made durable, read again, compiled."""

    def __init__(self, state: StateDirectory, registry: Registry, semantic: bool = True) -> None:
        self._state, self._snapshots, self._hosts = state.path, state.path / "snapshots", state.path / "hosts"
        self._dataflows = DataflowStore(state.path / "dataflows", registry)
        upgrade(state, self._dataflows, registry)
        self._registry, self._semantic = registry, semantic
        self._loaded = lru_cache(maxsize=RECENT)(self._load)
        self._recent: dict[int, CompiledPlan] = {}
        with paused():
            self.snapshot = self._read(max((int(file.stem) for file in self._snapshots.glob("[0-9]*.json")), default=0))
            self.current = compile_plan(self.snapshot)

    def __call__(self, number: int) -> CompiledPlan:
        """The plan of a snapshot that is still there."""
        if number == self.current.number:
            return self.current
        return self._recent.get(number) or self._loaded(number)

    def prepare(self, plan: CompiledPlan) -> None:
        """Write what the workers of keyed hosts must find before the first row that carries a plan's number."""
        write_text(self._hosts / f"{plan.number}.json", plan.hosts_text(), "hosts")

    def publish(self, snapshot: Snapshot, plan: CompiledPlan, new: Sequence[StoredText] = ()) -> None:
        """Make a snapshot durable, with the dataflows that are new in it; from here on it is the current one."""
        for dataflow in new:
            self._dataflows.write(dataflow)
        write_json(self._snapshots / f"{snapshot.number}.json", snapshot.as_dict(), "snapshot")
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
            there = number == self.current.number or (self._snapshots / f"{number}.json").exists()
            if there and fragment in self(number).fragments:
                return self(number)
        return self(begun)

    def compact(self, oldest: int, others: set[int], history_bytes: int) -> None:
        """Remove the snapshots before ``oldest``, but for ``others`` and as much as makes the history."""
        if remove_snapshots([self._snapshots, self._hosts], oldest, others, history_bytes):
            kept = [read_json(file) for file in self._snapshots.glob("[0-9]*.json")]
            self._dataflows.remove_all_but({name for one in kept for name in one["dataflows"].values()})

    def _read(self, number: int) -> Snapshot:
        return read_snapshot(self._state, number, self._registry, self._semantic)

    def _load(self, number: int) -> CompiledPlan:
        return compile_plan(self._read(number))


def read_snapshot(state: Path, number: int, registry: Registry, semantic: bool = True) -> Snapshot:
    """A snapshot of a state directory; number 0 is the empty one before the first."""
    if number == 0:
        return Snapshot(SharedSet(registry, semantic))
    kept = read_json(state / "snapshots" / f"{number}.json")
    if kept is None:
        raise HeadgateError("SNAPSHOT_GONE", f"plan snapshot {number} is not in {state / 'snapshots'}")
    return Snapshot.from_dict(kept, DataflowStore(state / "dataflows", registry).read, registry, semantic)
