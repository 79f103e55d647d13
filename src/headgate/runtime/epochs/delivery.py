"""Delivery: sinks, topics and dead letters get what an epoch has committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.model.names import Signature
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.epochs.commit import LETTERS, TOPIC
from headgate.runtime.epochs.context import Outbox
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.io.sinks import StagedDelivery
from headgate.runtime.isolation.dead_letters import DeadLetters, Letters

__all__ = ["Deliveries"]


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Delivers the commits of one run of a fragment; a commit that is delivered again changes nothing."""

    origin: str
    """Fragment and run: epochs count from 0 again in a new run, and sinks must not take them for old ones."""

    exchange: FileExchange
    outbox: Outbox
    dead_letters: DeadLetters
    plan: Callable[[int], CompiledPlan]

    def deliver(self, commit: Mapping[str, Any]) -> dict[Signature, float]:
        """Deliver what an epoch has committed; returns when each sink had its rows."""
        delivered = {}
        for target in commit["targets"]:
            files = [(path, rows) for path, rows in target["files"]]
            if target["kind"] == TOPIC:
                described = target["number"], target["snapshot"], files, target["ingested_us"]
                self.exchange.publish(target["name"], *described)
            elif target["kind"] == LETTERS:
                self._keep_failed(commit["epoch"], target, files)
            else:
                delivery = StagedDelivery(self.origin, commit["epoch"], target["snapshot"], files)
                self.outbox(target["snapshot"], Signature(target["name"]), delivery)
                delivered[Signature(target["name"])] = time.time()
        return delivered

    def _keep_failed(self, epoch: int, target: Mapping[str, Any], files: Sequence[tuple[str, int]]) -> None:
        """Store or count the rows for which a task raised."""
        task = self.plan(target["snapshot"]).tasks[Signature(target["name"])]
        origin = f"{self.origin}-{target['snapshot']}"
        where = origin, target["snapshot"], epoch
        letters = Letters(task.signature, task.name, task.users, task.on_error, *where, files, target["reasons"])
        self.dead_letters.take(letters)
