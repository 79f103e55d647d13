"""What an engine does now and then: compaction, the record of usage, and the history of observations."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

from headgate.billing.journal import BilledMachine, Usage, UsageJournal
from headgate.billing.lifecycle import PaidMachine
from headgate.billing.usage import Customer
from headgate.errors import HeadgateError
from headgate.machines.provider import AcquiredMachine
from headgate.model.cluster.observation import Observation
from headgate.model.dataflow import Dataflow
from headgate.model.level_time import LevelStatus, LevelTime
from headgate.model.names import DataflowName
from headgate.model.status import DataflowStatus
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.engine.compaction import compact_journal, oldest_under_way
from headgate.runtime.engine.last_minute import LastMinute
from headgate.runtime.engine.level_times import LevelTimes
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.queries import Queries
from headgate.runtime.engine.scaling import Scaling
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.io.outbox import SinkOutbox
from headgate.store.observations import ObservationHistory

__all__ = ["PRICE_PER_H", "Upkeep", "usage_of"]

PRICE_PER_H = Decimal("0.10")
"""What this machine costs an hour if nobody says otherwise."""

OBSERVE_EVERY_S = 5.0
"""How long the intervals are of which the state directory keeps a history."""

LEAST_BYTES = 8_000_000
"""How large the journal is at least when it is compacted; then it has doubled since the last time."""


class Upkeep:
    """Keeps the state directory small and its records up to date."""

    def __init__(
        self,
        state: StateDirectory,
        plans: Plans,
        queries: Queries,
        exchange: FileExchange,
        price_per_h: Decimal,
        scaling: Scaling,
    ) -> None:
        self._plans = plans
        self._queries = queries
        self._exchange = exchange
        self._state = state
        # With machines of a provider it is these that are paid for.
        self._price_per_h = price_per_h if scaling.provider is None else Decimal(0)
        self._scaling = scaling
        self._journal = UsageJournal(state.journal)
        self.history = ObservationHistory(state.path / "observations")
        self.minute = LastMinute()
        self._times = LevelTimes(state.path)
        self._most_bytes = LEAST_BYTES
        self._observed = time.monotonic()

    def meter(self) -> None:
        """Bring the record of usage up to date."""
        usage = usage_of(self._plans.current, self._plans.snapshot.dataflows, self._price_per_h)
        with suppress(OSError):  # a full disk; it is tried again every second
            self._journal.changed(int(time.time()), usage)

    def end(self, outbox: SinkOutbox) -> None:
        """Note that nothing is used any more, and how many rows came out."""
        self._note_machines()
        with suppress(OSError):
            self._journal.ended(int(time.time()))
            outbox.save_totals(set(self._plans.snapshot.signatures))

    def observe(self, observe: Callable[[], Observation]) -> None:
        """Add to the history, unless it was done just now."""
        if time.monotonic() - self._observed >= OBSERVE_EVERY_S:
            self._observed = time.monotonic()
            seen = observe()
            self._note_machines()
            self._times.add(self.minute.add(seen), seen.seconds)
            with suppress(OSError):  # a full disk; there are more important things to write
                self.history.append(seen)

    def _note_machines(self) -> None:
        """Note the machines of the provider, if there is one and it answers."""
        with suppress(OSError, HeadgateError):
            self._journal.held(map(_paid, self._scaling.machines()))

    def measured(self, flows: Iterable[DataflowStatus]) -> list[DataflowStatus]:
        """Dataflows with their figures of the last minute, and for how long they were as agreed."""
        snapshot, figures, now = self._plans.snapshot, self.minute.figures(), time.time()
        agreed = {flow.name: flow.service_level for flow in snapshot.dataflows}
        return [
            replace(
                flow,
                figures=figures.get(flow.name),
                level=LevelStatus.of(
                    agreed[DataflowName(flow.name)],
                    self._times.of.get(flow.name, LevelTime()),
                    now,
                    changed=flow.name in snapshot.levels,
                ),
            )
            for flow in flows
        ]

    def compact(self) -> None:
        """Remove what nothing needs from the journal, once it has grown."""
        journal, pending = self._state.journal, self._state.path / "pending"
        if journal.size < self._most_bytes:
            return
        running, current = list(self._queries.running.values()), self._plans.snapshot.number
        oldest = oldest_under_way(running, self._queries.left(), self._exchange, pending, current)
        compact_journal(journal, self._state.path / "hosts", oldest, [fragment.begun for fragment in running])
        self._most_bytes = max(LEAST_BYTES, 2 * journal.size)


def _paid(machine: AcquiredMachine) -> PaidMachine:
    kind = machine.vm_class
    return PaidMachine(machine.name, kind.name, kind.cores, kind.price_per_h, machine.acquired_at, machine.gone_at)


def usage_of(plan: CompiledPlan, dataflows: Iterable[Dataflow], price_per_h: Decimal) -> Usage:
    """This machine, with every task of a plan at work on it; a dataflow counts as many tasks as its author wrote."""
    tasks = Counter(task.users for task in plan.tasks.values())
    customers = tuple(Customer(flow.name, flow.owner, len(flow.tasks)) for flow in dataflows)
    return Usage((BilledMachine("local", price_per_h, dict(tasks)),), customers)
