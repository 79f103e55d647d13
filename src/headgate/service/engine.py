"""What the use cases ask of a running engine; :class:`headgate.runtime.engine.engine.Engine` answers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from headgate.model.dataflow import Dataflow
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.sharing.applied import Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet

__all__ = ["RunningEngine"]


class RunningEngine(Protocol):
    """An engine that dataflows are submitted to.

    ``before`` is called with a change just before it becomes durable; if it raises, nothing changes.
    """

    @property
    def shared(self) -> SharedSet: ...
    @property
    def dataflows(self) -> Sequence[Dataflow]: ...
    def submit(
        self, *dataflows: SignedDataflow, replace: bool = False, before: Callable[[Applied], None] | None = None
    ) -> Applied: ...
    def withdraw(self, *names: str, before: Callable[[Applied], None] | None = None) -> Applied: ...
    def pause(self, name: str) -> None: ...
    def resume(self, name: str) -> None: ...
    def limit(self, dataflow: str, task: str, rows: int | None) -> None: ...
    def switch(self, dataflow: str, task: str, alternate: str) -> None: ...
    def repartition(self, dataflow: str, task: str, partitions: int | None) -> None: ...
    def status(self) -> tuple[Sequence[DataflowStatus], Sequence[FragmentStatus]]: ...
    def about(self) -> dict[str, Any]: ...
