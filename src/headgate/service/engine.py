"""What the use cases ask of a running engine; :class:`headgate.runtime.engine.engine.Engine` answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headgate.model.dataflow import Dataflow
from headgate.sharing.applied import Applied
from headgate.sharing.shared_set import SharedSet

__all__ = ["RunningEngine"]


class RunningEngine(Protocol):
    """An engine that dataflows are submitted to."""

    @property
    def shared(self) -> SharedSet: ...
    @property
    def dataflows(self) -> Sequence[Dataflow]: ...
    def submit(self, *dataflows: Dataflow, replace: bool = False) -> Applied: ...
    def withdraw(self, *names: str) -> Applied: ...
    def status(self) -> tuple[Sequence[Any], Sequence[Any]]: ...
    def about(self) -> dict[str, Any]: ...
