"""An engine without Spark: the real running set, and nothing that runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.model.dataflow import Dataflow
from headgate.sharing.applied import Applied
from headgate.sharing.change import GraphChange
from headgate.sharing.shared_set import SharedSet, Submission
from headgate.tasks.registry import default_registry


@dataclass(frozen=True)
class FakeApplied(Applied):
    submissions: tuple[Submission, ...] = ()
    withdrawals: tuple[GraphChange, ...] = ()
    touched: tuple[str, ...] = ("source-1",)
    started: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


@dataclass(frozen=True)
class FakeStatus:
    name: str
    owner: str
    state: str = "running"
    reason: str = ""
    tasks: int = 3
    shared: int = 0
    rows_out: int = 0


class FakeEngine:
    """Answers what the use cases ask of an engine."""

    def __init__(self) -> None:
        self.shared = SharedSet(default_registry())
        self.dataflows: Sequence[Dataflow] = ()
        self.snapshot = 0
        self.may_go_on = threading.Event()
        """Submissions wait for this."""

        self.may_go_on.set()
        self._lock = threading.RLock()

    def submit(self, *dataflows: Dataflow, replace: bool = False) -> FakeApplied:
        self.may_go_on.wait(30)
        with self._lock:
            shared, done = self.shared, []
            there = {flow.name for flow in self.dataflows}
            for dataflow in dataflows:
                if replace and dataflow.name in there:
                    shared, _ = shared.withdraw(dataflow.name)
                shared, submission = shared.submit(dataflow)
                done.append(submission)
            self.shared = shared
            self.dataflows = (*(f for f in self.dataflows if f not in dataflows), *dataflows)
            self.snapshot += 1
            return FakeApplied(self.snapshot, tuple(done))

    def withdraw(self, *names: str) -> FakeApplied:
        with self._lock:
            shared, done = self.shared, []
            for name in names:
                shared, change = shared.withdraw(name)
                done.append(change)
            self.shared = shared
            self.dataflows = tuple(flow for flow in self.dataflows if flow.name not in names)
            self.snapshot += 1
            return FakeApplied(self.snapshot, withdrawals=tuple(done))

    def status(self) -> tuple[Sequence[Any], Sequence[Any]]:
        return [FakeStatus(flow.name, flow.owner) for flow in self.dataflows], []

    def about(self) -> dict[str, Any]:
        return {"state": "here", "process": 1, "folder": "/", "strategy": "hot", "snapshot": self.snapshot}
