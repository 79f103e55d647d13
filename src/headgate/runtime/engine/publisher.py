"""Publishing a change: it is compiled and tried first, then made durable, then carried out."""

from __future__ import annotations

from contextlib import suppress

from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.queries import Queries
from headgate.runtime.engine.suspension import Suspensions
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.spark_internals.executor_checks import check_paths, paths_read
from headgate.runtime.spark_internals.executors import Executors
from headgate.sharing.applied import Acknowledge, Applied

__all__ = ["Publisher"]


class Publisher:
    """Turns pending changes into the current snapshot; all of a change or nothing of it."""

    def __init__(
        self, plans: Plans, queries: Queries, schemas: Schemas, executors: Executors, suspensions: Suspensions
    ) -> None:
        self._plans, self._suspensions = plans, suspensions
        self._queries = queries
        self._schemas = schemas
        self._executors = executors

    def publish(self, change: PendingChange, acknowledge: Acknowledge | None = None) -> Applied:
        """Make a change the current snapshot; when this raises before it is durable, nothing has changed."""
        with self._suspensions.trying(change):
            return self._published(change, acknowledge)

    def _published(self, change: PendingChange, acknowledge: Acknowledge | None) -> Applied:
        queries, before = self._queries, self._plans.current
        snapshot, plan = change.compiled(before)
        self._schemas.check(plan, change.touched)
        check_paths(self._executors, paths_read(plan, before, change.touched))
        self._plans.prepare(plan)
        prepared = queries.prepare(plan, snapshot)
        stopped = [f for f in queries.running_any(change.stopped) if f.fragment.id in plan.fragments]
        applied = _applied(change, before, plan, [fragment for fragment, _ in prepared], stopped)
        for fragment in stopped:
            fragment.end()
        try:
            for fragment in stopped:
                fragment.stop()
            begun = [fragment.begun for fragment, _ in prepared]
            acknowledged = () if acknowledge is None else acknowledge(applied)
            self._plans.publish(snapshot, plan, (*change.new, *begun, *acknowledged))
        except BaseException:
            queries.discard(prepared)
            for fragment in stopped:
                queries.restart(fragment)
            raise
        queries.adopt(plan)
        for fragment in stopped:
            queries.restart(fragment)
        queries.start(prepared)
        with suppress(OSError):  # it is done again
            queries.retire()
        return applied


def _applied(
    change: PendingChange,
    before: CompiledPlan,
    plan: CompiledPlan,
    started: list[RunningFragment],
    restarted: list[RunningFragment],
) -> Applied:
    touched = [before.fragments_of(gone.altered) for gone in change.withdrawals]
    touched += [plan.fragments_of(submission.change.altered) for submission in change.submissions]
    return Applied(
        plan.number,
        change.submissions,
        change.withdrawals,
        tuple(dict.fromkeys(name for names in touched for name in names)),
        tuple(fragment.fragment.id for fragment in started),
        tuple(fragment.fragment.id for fragment in restarted),
    )
