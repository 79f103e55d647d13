"""The snapshots of a state directory, and the plans that they compile to."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.runtime.compile.plan import CompiledPlan, compile_plan
from headgate.runtime.engine.snapshot import Snapshot
from headgate.store.files import read_json, write_json
from headgate.tasks.registry import Registry

__all__ = ["Plans"]


class Plans:
    """Snapshots by number: made durable, found again, compiled."""

    def __init__(self, state: Path, registry: Registry) -> None:
        self._snapshots, self._hosts = state / "snapshots", state / "hosts"
        self._registry = registry
        self._compiled = lru_cache(maxsize=64)(self._load)
        self.snapshot = self._last()
        self.current = compile_plan(self.snapshot, registry)

    @property
    def folders(self) -> list[Path]:
        """Where there is a file for each snapshot."""
        return [self._snapshots, self._hosts]

    def __call__(self, number: int) -> CompiledPlan:
        """The plan of a snapshot that is still there."""
        return self.current if number == self.current.number else self._compiled(number)

    def prepare(self, plan: CompiledPlan) -> None:
        """Write what the workers of keyed hosts must find before the first row that carries a plan's number."""
        write_json(self._hosts / f"{plan.number}.json", plan.hosts())

    def publish(self, snapshot: Snapshot, plan: CompiledPlan) -> None:
        """Make a snapshot durable; from here on it is the current one."""
        write_json(self._snapshots / f"{snapshot.number}.json", snapshot.as_dict())
        self.snapshot, self.current = snapshot, plan

    def last_with(self, fragment: str, begun: int) -> CompiledPlan:
        """The last plan that had a fragment which came with snapshot ``begun``; those in between may be gone."""
        for number in range(self.current.number, begun, -1):
            there = number == self.current.number or (self._snapshots / f"{number}.json").exists()
            if there and fragment in self(number).fragments:
                return self(number)
        return self(begun)

    def _load(self, number: int) -> CompiledPlan:
        stored = read_json(self._snapshots / f"{number}.json")
        if stored is None and number > 0:
            raise HeadgateError("SNAPSHOT_GONE", f"plan snapshot {number} is not in {self._snapshots}")
        snapshot = Snapshot() if stored is None else Snapshot.from_dict(stored, self._registry)
        return compile_plan(snapshot, self._registry)

    def _last(self) -> Snapshot:
        numbers = [int(file.stem) for file in self._snapshots.glob("[0-9]*.json")]
        if not numbers:
            return Snapshot()
        stored = read_json(self._snapshots / f"{max(numbers)}.json")
        return Snapshot.from_dict(stored, self._registry)
