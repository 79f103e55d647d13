"""An engine without Spark: the real running set, and nothing that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headgate.errors import InputError
from headgate.model.alternate_choice import ActiveAlternate
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.redrive_result import RedriveResult
from headgate.model.service_level import ServiceLevel
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.sharing.applied import Acknowledge, AcknowledgeRedrive, Applied
from headgate.sharing.change import GraphChange
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet, Submission
from headgate.store.entries import SnapshotPublished
from headgate.store.journal import Journal, create_journal
from headgate.tasks.registry import default_registry


class Killed(BaseException):
    """The process was killed: nothing that follows happens."""


@dataclass(frozen=True)
class FakeApplied(Applied):
    submissions: tuple[Submission, ...] = ()
    withdrawals: tuple[GraphChange, ...] = ()
    touched: tuple[str, ...] = ("source-1",)
    started: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


class FakeEngine:
    """Answers what the use cases ask of an engine; its state directory holds nothing of it but requests."""

    def __init__(self, state: Path) -> None:
        self.state = SimpleNamespace(path=state)
        if not (state / "journal").exists():
            create_journal(state / "journal")
        self.journal = Journal(state / "journal")
        self.shared = SharedSet(default_registry())
        self.dataflows: Sequence[Dataflow] = ()
        self.snapshot = 0
        self.done: list[tuple[object, ...]] = []
        """Calls that the fake only notes."""

        self.viewers: list[Callable[[Sequence[str]], None]] = []
        self.switched_by = ""
        self.killed: str | None = None
        """Die ``before`` or ``after`` the next change becomes durable."""

        self.may_go_on = threading.Event()
        """Submissions wait for this."""

        self.may_go_on.set()
        self._lock = threading.RLock()

    def submit(
        self,
        *dataflows: SignedDataflow,
        replace: bool = False,
        allow_partial: bool = False,
        acknowledge: Acknowledge | None = None,
    ) -> FakeApplied:
        self.may_go_on.wait(30)
        with self._lock:
            shared, done = self.shared, []
            there = {flow.name for flow in self.dataflows}
            for dataflow in dataflows:
                if replace and dataflow.name in there:
                    shared, _ = shared.withdraw(dataflow.name)
                shared, submission = shared.submit(dataflow)
                done.append(submission)
            names = {dataflow.name for dataflow in dataflows}
            left = tuple(flow for flow in self.dataflows if flow.name not in names)
            given = tuple(signed.dataflow for signed in dataflows)
            return self._publish(shared, (*left, *given), FakeApplied(self.snapshot + 1, tuple(done)), acknowledge)

    def withdraw(self, *names: str, acknowledge: Acknowledge | None = None) -> FakeApplied:
        with self._lock:
            shared, done = self.shared, []
            for name in names:
                shared, change = shared.withdraw(name)
                done.append(change)
            left = tuple(flow for flow in self.dataflows if flow.name not in names)
            return self._publish(shared, left, FakeApplied(self.snapshot + 1, withdrawals=tuple(done)), acknowledge)

    def _publish(
        self,
        shared: SharedSet,
        dataflows: Sequence[Dataflow],
        applied: FakeApplied,
        acknowledge: Acknowledge | None,
    ) -> FakeApplied:
        killed, self.killed = self.killed, None
        if killed == "before":
            raise Killed
        entries = () if acknowledge is None else acknowledge(applied)
        self.journal.append(SnapshotPublished(applied.snapshot, {}), *entries)
        self.shared, self.dataflows, self.snapshot = shared, dataflows, applied.snapshot
        if killed == "after":
            raise Killed
        return applied

    def pause(self, name: str, acknowledge: Acknowledge | None = None) -> None:
        self.shared.running.find(name)
        self._set(acknowledge, "pause", name)

    def resume(self, name: str, acknowledge: Acknowledge | None = None) -> None:
        self._set(acknowledge, "resume", name)

    def limit(self, dataflow: str, task: str, rows: int | None, acknowledge: Acknowledge | None = None) -> None:
        if rows is not None and rows < 1:
            raise InputError("BAD_LIMIT", f"{rows} rows per trigger: at least 1 is needed")
        self._set(acknowledge, "limit", dataflow, task, rows)

    def switch(
        self, dataflow: str, task: str, alternate: str, acknowledge: Acknowledge | None = None, by: str = ""
    ) -> None:
        self.switched_by = by
        self._set(acknowledge, "switch", dataflow, task, alternate)

    def redrive(self, dataflow: str, task: str, acknowledge: AcknowledgeRedrive | None = None) -> RedriveResult:
        result = RedriveResult((dataflow,), f"{dataflow}.{task}", 3, 1, self.snapshot)
        self._set(None if acknowledge is None else lambda _applied: acknowledge(result), "redrive", dataflow, task)
        return result

    def tail(self, dataflow: str, task: str, viewer: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        if task not in self.shared.running.find(dataflow).signatures:
            raise InputError("UNKNOWN_TASK", f"dataflow '{dataflow}' has no task '{task}'")
        self.viewers.append(viewer)
        return lambda: self.viewers.remove(viewer)

    def set_level(self, name: str, level: ServiceLevel | None, acknowledge: Acknowledge | None = None) -> None:
        self._set(acknowledge, "level", name, level)

    def alternates(self, name: str) -> Mapping[TaskId, ActiveAlternate]:
        del name
        return {}

    def release_task(self, dataflow: str, task: str, acknowledge: Acknowledge | None = None) -> None:
        self._set(acknowledge, "release", dataflow, task)

    def repartition(
        self, dataflow: str, task: str, partitions: int | None, acknowledge: Acknowledge | None = None
    ) -> None:
        self._set(acknowledge, "repartition", dataflow, task, partitions)

    def _set(self, acknowledge: Acknowledge | None, *done: object) -> None:
        self.done.append(done)
        self._publish(self.shared, self.dataflows, FakeApplied(self.snapshot + 1), acknowledge)

    def status(self) -> tuple[Sequence[DataflowStatus], Sequence[FragmentStatus]]:
        flows = [DataflowStatus(flow.name, str(flow.owner), "running", "", 3, 0, 0) for flow in self.dataflows]
        fragment = FragmentStatus("source-1", "wide.r", "source", 3, 7, self.snapshot, 10, 5, 0.25, 0, None, 40.0)
        return flows, [fragment] if flows else []

    def about(self) -> dict[str, Any]:
        facts = {"state": str(self.state.path), "process": 1, "folder": "/", "strategy": "hot"}
        return {**facts, "snapshot": self.snapshot}
