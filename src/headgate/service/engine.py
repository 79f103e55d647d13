"""What use cases ask of a running engine (answered by :class:`headgate.runtime.engine.engine.Engine`); its status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from headgate.model.alternate_choice import ActiveAlternate
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.redrive_result import RedriveResult
from headgate.model.service_level import ServiceLevel
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.sharing.applied import Acknowledge, AcknowledgeRedrive, Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.store.journal import Journal

__all__ = ["JournaledEngine", "RunningEngine", "TakeRows", "listing", "status"]


TakeRows = Callable[[Sequence[str]], None]
"""Takes rows as JSON."""


class RunningEngine(Protocol):
    """An engine that dataflows are submitted to.

    What ``acknowledge`` makes of a change becomes durable with it; if it raises, nothing changes.
    """

    @property
    def shared(self) -> SharedSet: ...
    @property
    def dataflows(self) -> Sequence[Dataflow]: ...
    def submit(
        self,
        *dataflows: SignedDataflow,
        replace: bool = False,
        allow_partial: bool = False,
        acknowledge: Acknowledge | None = None,
    ) -> Applied: ...
    def withdraw(self, *names: str, acknowledge: Acknowledge | None = None) -> Applied: ...
    def pause(self, name: str, acknowledge: Acknowledge | None = None) -> None: ...
    def resume(self, name: str, acknowledge: Acknowledge | None = None) -> None: ...
    def limit(self, dataflow: str, task: str, rows: int | None, acknowledge: Acknowledge | None = None) -> None: ...
    def switch(
        self, dataflow: str, task: str, alternate: str, acknowledge: Acknowledge | None = None, by: str = ""
    ) -> None: ...
    def release_task(self, dataflow: str, task: str, acknowledge: Acknowledge | None = None) -> None: ...
    def repartition(
        self, dataflow: str, task: str, partitions: int | None, acknowledge: Acknowledge | None = None
    ) -> None: ...
    def set_level(self, name: str, level: ServiceLevel | None, acknowledge: Acknowledge | None = None) -> None: ...
    def alternates(self, name: str) -> Mapping[TaskId, ActiveAlternate]: ...
    def redrive(self, dataflow: str, task: str, acknowledge: AcknowledgeRedrive | None = None) -> RedriveResult: ...
    def tail(self, dataflow: str, task: str, viewer: TakeRows) -> Callable[[], None]: ...
    def status(self) -> tuple[Sequence[DataflowStatus], Sequence[FragmentStatus]]: ...
    def about(self) -> dict[str, Any]: ...


class JournaledEngine(RunningEngine, Protocol):
    """An engine with its journal, which requests do not reach."""

    @property
    def journal(self) -> Journal: ...


def listing(engine: RunningEngine) -> dict[str, Any]:
    """Every dataflow with its owner, state and tasks, in the order of submission."""
    return {**engine.about(), "dataflows": [asdict(flow) for flow in engine.status()[0]]}


def status(engine: RunningEngine, name: str | None = None) -> dict[str, Any]:
    """Dataflows and fragments; of a single dataflow also its tasks, each with those who share it.

    Raises :class:`~headgate.errors.InputError` for a dataflow that is not there.
    """
    dataflows, fragments = engine.status()
    answer = {**engine.about(), "fragments": [asdict(fragment) for fragment in fragments]}
    if name is None:
        return {**answer, "dataflows": [asdict(flow) for flow in dataflows]}
    running = engine.shared.running
    submitted, active = running.find(name), engine.alternates(name)
    tasks = []
    for task in submitted.dataflow.tasks:
        signature = submitted.signatures[task.id]
        others = sorted(user for user in running.users(signature) if user != name)
        way = None if task.id not in active else asdict(active[task.id])
        kind = task.type if way is None else way["type"]
        about = {"task": task.id, "type": kind, "signature": signature, "shared_with": others, "active": way}
        tasks.append({**about, "publish": task.publish})
    mine = [asdict(flow) for flow in dataflows if flow.name == name]
    return {**answer, "dataflows": mine, "tasks": tasks}
