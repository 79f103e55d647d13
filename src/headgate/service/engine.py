"""What the use cases ask of a running engine; :class:`headgate.runtime.engine.engine.Engine` answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headgate.model.dataflow import Dataflow
from headgate.sharing.change import Change
from headgate.sharing.shared_set import SharedSet, Submission

__all__ = ["Applied", "RunningEngine"]


class Applied(Protocol):
    """What submissions and withdrawals have changed."""

    @property
    def snapshot(self) -> int: ...
    @property
    def submissions(self) -> tuple[Submission, ...]: ...
    @property
    def withdrawals(self) -> tuple[Change, ...]: ...
    @property
    def touched(self) -> tuple[str, ...]: ...
    @property
    def started(self) -> tuple[str, ...]: ...
    @property
    def restarted(self) -> tuple[str, ...]: ...


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
