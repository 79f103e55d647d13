"""Delivery: sinks, topics and dead letters get what an epoch has committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.epochs.context import Outbox
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.io.sinks import StagedDelivery
from headgate.runtime.isolation.dead_letters import DeadLetters, Letters
from headgate.store.entries import CommittedOutput, EpochCommitted, OutputKind

__all__ = ["Deliveries"]


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Delivers the commits of a fragment; a commit that is delivered again changes nothing."""

    exchange: FileExchange
    outbox: Outbox
    dead_letters: DeadLetters
    plan: Callable[[int], CompiledPlan]

    def deliver(self, commit: EpochCommitted, whose: Collection[str] | None = None) -> dict[Signature, float]:
        """Deliver what an epoch has committed; returns when each sink had its rows.

        Rows that failed are those of all dataflows that use the task, or of some of them, ``whose`` rows these are.
        """
        delivered = {}
        for output in commit.outputs:
            target = output.target
            if target.kind is OutputKind.TOPIC:
                self.exchange.publish(target.name, output.number, target.snapshot, output.files, output.ingested_us)
            elif target.kind is OutputKind.LETTERS:
                self._keep_failed(commit, output, whose)
            else:
                delivery = StagedDelivery(commit.origin, commit.epoch, target.snapshot, output.files)
                self.outbox(target.snapshot, Signature(target.name), delivery)
                delivered[Signature(target.name)] = time.time()
        if delivered:
            self.outbox.sync()
        return delivered

    def _keep_failed(self, commit: EpochCommitted, output: CommittedOutput, whose: Collection[str] | None) -> None:
        """Store or count the rows for which a task raised."""
        snapshot = output.target.snapshot
        task = self.plan(snapshot).tasks[Signature(output.target.name)]
        where = f"{commit.origin}-{snapshot}", snapshot, commit.epoch
        called = {str(user): str(name) for user, name in task.used_by.items()}
        users = [user for user in task.users if whose is None or user in whose]
        letters = Letters(task.signature, task.name, users, task.on_error, *where, output.files, output.reasons, called)
        self.dead_letters.take(letters)
