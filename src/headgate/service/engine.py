"""What the use cases ask of a running engine; :class:`headgate.runtime.engine.engine.Engine` answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headgate.model.dataflow import Dataflow
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.sharing.applied import Acknowledge, Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.store.journal import Journal

__all__ = ["RunningEngine"]


class RunningEngine(Protocol):
    """An engine that dataflows are submitted to.

    What ``acknowledge`` makes of a change becomes durable with it; if it raises, nothing changes.
    """

    @property
    def shared(self) -> SharedSet: ...
    @property
    def dataflows(self) -> Sequence[Dataflow]: ...
    @property
    def journal(self) -> Journal: ...
    def submit(
        self, *dataflows: SignedDataflow, replace: bool = False, acknowledge: Acknowledge | None = None
    ) -> Applied: ...
    def withdraw(self, *names: str, acknowledge: Acknowledge | None = None) -> Applied: ...
    def pause(self, name: str, acknowledge: Acknowledge | None = None) -> None: ...
    def resume(self, name: str, acknowledge: Acknowledge | None = None) -> None: ...
    def limit(self, dataflow: str, task: str, rows: int | None, acknowledge: Acknowledge | None = None) -> None: ...
    def switch(self, dataflow: str, task: str, alternate: str, acknowledge: Acknowledge | None = None) -> None: ...
    def repartition(
        self, dataflow: str, task: str, partitions: int | None, acknowledge: Acknowledge | None = None
    ) -> None: ...
    def status(self) -> tuple[Sequence[DataflowStatus], Sequence[FragmentStatus]]: ...
    def about(self) -> dict[str, Any]: ...
