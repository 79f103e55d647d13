"""The parts of an engine that its fragments use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan, Fragment
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.epochs.background_jobs import BackgroundJobs
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.io.sinks import StagedDelivery
from headgate.runtime.isolation.dead_letters import DeadLetters
from headgate.runtime.observing.profiler import Profiler
from headgate.runtime.observing.records import Records
from headgate.runtime.observing.tails import Tails

__all__ = ["FragmentContext", "Outbox"]


class Outbox(Protocol):
    """Hands a delivery to a sink of a plan, at once or after retries; never raises because of a sink."""

    def __call__(self, snapshot: int, sink: Signature, delivery: StagedDelivery) -> None: ...

    def sync(self) -> None:
        """Make durable what sinks have got."""


@dataclass(frozen=True, slots=True)
class FragmentContext:
    """The parts of an engine that its fragments use; a fragment hands each of its own parts what that needs."""

    spark: SparkSession
    state: StateDirectory
    exchange: FileExchange
    schemas: Schemas
    plan: Callable[[int], CompiledPlan]
    current: Callable[[], CompiledPlan]
    limit: Callable[[Signature], int | None]
    outbox: Outbox
    trigger_s: float
    background: BackgroundJobs
    dead_letters: DeadLetters
    time_budget_s: float
    """How long a task may take for a micro-batch if it does not say."""

    records: Records
    profiler: Profiler
    counting: bool
    """Whether the rows of every task are counted in every epoch."""

    tails: Tails
    finish_redrives: Callable[[], None]
    """Called before each epoch."""
    longest_s: Callable[[], float | None]
    """How long the epochs of a source may take that has all cores for itself; none where that does not matter."""

    settle: Callable[[Fragment, int, Mapping[str, Any]], None]
    """Called before an epoch of a source, with the snapshot that it runs and the offset up to which was read."""
