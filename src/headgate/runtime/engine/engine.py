"""The engine: runs dataflows that change without a restart.

Every change makes the next plan snapshot: it is decided what is shared (:mod:`headgate.runtime.engine.pending_change`),
compiled and tried first, then made durable, and takes effect in each fragment at its next epoch. Fragments that the
plan needs and that do not run yet are started; those that it no longer needs are stopped once they have read what was
still on its way to them (:mod:`headgate.runtime.engine.queries`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.sql import SparkSession

from headgate.billing.journal import UsageJournal
from headgate.errors import HeadgateError, InputError
from headgate.machines.provider import AcquiredMachine, Provider
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.model.service_level import ServiceLevel
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.model.strategy import StrategyName
from headgate.model.task_type import Role, State
from headgate.runtime.compile.plan import FED, CompiledPlan, CompiledTask, compile_plan
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.engine.compaction import HISTORY_BYTES, oldest_under_way, remove_snapshots
from headgate.runtime.engine.find_task import check_partitions, chosen_alternate, find_task, task_of
from headgate.runtime.engine.metering import PRICE_PER_H, usage_of
from headgate.runtime.engine.pending_change import PendingChange, restored
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.queries import Queries
from headgate.runtime.engine.scaling import Scaling
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.engine.status import dataflow_status, fragment_status
from headgate.runtime.epochs.background_jobs import BackgroundJobs
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.io.outbox import SinkOutbox
from headgate.runtime.io.sinks import Memory
from headgate.runtime.io.sources import hot_limit
from headgate.runtime.isolation.dead_letters import DeadLetters
from headgate.runtime.isolation.sql_guard import DEFAULT_BUDGET_S
from headgate.runtime.observing.measuring import MEASURING, Measuring
from headgate.runtime.observing.observer import ObservedEngine, Observer
from headgate.runtime.observing.profiler import Profiler
from headgate.runtime.observing.records import Records
from headgate.runtime.observing.workers import Workers
from headgate.runtime.spark_internals.executor_checks import check_executors, check_paths, paths_read
from headgate.runtime.spark_internals.executors import Executors
from headgate.runtime.spark_internals.internals import internals
from headgate.runtime.spark_internals.process import SparkProcess
from headgate.runtime.spark_internals.session import open_session
from headgate.sharing.alternates import binding_level
from headgate.sharing.applied import Applied
from headgate.sharing.strategies import Units
from headgate.store.observations import ObservationHistory
from headgate.tasks.registry import Registry, default_registry

__all__ = ["Engine"]

OBSERVE_EVERY_S = 5.0
"""How long the intervals are of which the state directory keeps a history."""

SNAPSHOTS_BETWEEN = 50
"""How many new snapshots there are between two compactions."""

STAYING = (StrategyName.INCREMENTAL, StrategyName.REPLACE)
"""Strategies under which what nobody needs any more stays where it is, without work."""


class Engine:
    """Runs dataflows on one Spark; use it in a ``with`` statement."""

    def __init__(
        self,
        state: Path | str,
        *,
        spark: SparkSession | None = None,
        master: str = "local[*]",
        trigger_s: float = 0.5,
        measuring: Measuring = MEASURING,
        time_budget_s: float = DEFAULT_BUDGET_S,
        registry: Registry | None = None,
        settings: Mapping[str, str] | None = None,
        provider: Provider | None = None,
        strategy: StrategyName | None = None,
        semantic: bool = True,
        price_per_h: Decimal = PRICE_PER_H,
    ) -> None:
        """Go on with what a state directory holds, which may be nothing.

        ``strategy`` says how changes are brought about: as before if left out, and ``hot`` in a new directory. With
        ``semantic``, dataflows that are submitted from now on may read wider streams than they would have made.
        ``price_per_h`` is what this machine costs; bills are drawn up from it.
        """
        self.registry = registry if registry is not None else default_registry()
        self.state = StateDirectory(Path(state))
        self.log = self.state.path / "spark.log"
        """What Spark prints, if this engine has started it."""

        try:
            self._plans = Plans(self.state.path, self.registry)
            self._set_strategy(strategy)
            self.spark = spark if spark is not None else open_session(master, settings, log=self.log)
            self._own = SparkProcess(self.spark, spark is None, self.log)
            self.scaling = self._checked_executors(provider)
            self.memory = Memory()
            self.exchange = FileExchange(self.state.path / "exchange")
            self.outbox = SinkOutbox(self.state.path / "pending", self.spark, self.memory, self._plans)
            self._lock = threading.RLock()
            self.shared = restored(self.snapshot, self.registry, semantic)
            """What is submitted and what runs for it, paused dataflows included."""

            self.schemas = Schemas(self.spark)
            self.background = BackgroundJobs(self.spark)
            self.dead_letters = DeadLetters(self.state.path / "dead_letters")
            self.records = Records()
            self.profiler = Profiler(self.spark, measuring)
            context = FragmentContext(
                self.spark,
                self.state,
                self.exchange,
                self.schemas,
                self._plans,
                lambda: self._plans.current,
                lambda signature: self.snapshot.limits.get(signature),
                self.outbox,
                trigger_s,
                self.background,
                self.dead_letters,
                time_budget_s,
                self.records,
                self.profiler,
                measuring.counting,
            )
            self._fleet = Queries(context, self._plans, lambda snapshot: compile_plan(snapshot, self.registry))
            self._compacted = 0
            self._stopped = False
            self._price_per_h = price_per_h
            self._journal = UsageJournal(self.state.path / "usage")
            self.history = ObservationHistory(self.state.path / "observations")
            self._workers = Workers(self.spark, self.state.path / "reference_core.json", self.scaling.machines)
            self._observer = self.observer()
            self._observed = time.monotonic()
            self._counting = measuring.counting
            self._fleet.go_on()
            self._meter()
        except BaseException:
            if hasattr(self, "_own"):  # started for an engine that does not come about
                self._own.stop()
            self.state.close()
            raise

    def _checked_executors(self, provider: Provider | None) -> Scaling:
        executors = Executors(self.spark)
        if not executors.local:
            check_executors(executors, self.state.path)
        return Scaling(executors, provider)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def snapshot(self) -> Snapshot:
        """What is to run."""
        return self._plans.snapshot

    @property
    def dataflows(self) -> tuple[Dataflow, ...]:
        """The dataflows that were submitted, as their authors wrote them."""
        return self.snapshot.dataflows

    @property
    def plan(self) -> CompiledPlan:
        """The current snapshot, compiled."""
        return self._plans.current

    @property
    def fragments(self) -> dict[str, RunningFragment]:
        """The fragments that run, by id."""
        return self._fleet.running

    def _set_strategy(self, wanted: StrategyName | None) -> None:
        known = self.snapshot
        if wanted is None or wanted is known.strategy:
            return
        if known.dataflows:
            told = (
                f"{self.state.path} runs its dataflows with strategy '{known.strategy.value}', which cannot become "
                f"'{wanted.value}' while there are any; withdraw them first, or give another directory with --state"
            )
            raise InputError("STRATEGY_DIFFERS", told)
        # Nothing runs, so there is nothing to keep; it becomes durable with the first dataflow.
        fresh = replace(known, strategy=wanted, deployment=Units(), resting=frozenset())
        self._plans.snapshot = fresh

    # changes

    def submit(
        self, *dataflows: Dataflow, replace: bool = False, before: Callable[[Applied], None] | None = None
    ) -> Applied:
        """Run more dataflows; all of them or, if one cannot be run, none.

        With ``replace`` they take the place of running ones of their names, between two micro-batches: what is the same
        in both goes on, sources where they are. ``before`` is called just before the change becomes durable.
        """
        with self._lock:
            joined = PendingChange(self.snapshot, self.shared)
            joined = joined.making_room(dataflows) if replace else joined
            for dataflow in dataflows:
                joined = joined.submitted(dataflow)
            return self._publish(joined, before)

    def withdraw(self, *names: str, before: Callable[[Applied], None] | None = None) -> Applied:
        """Stop dataflows, all of them or none; tasks that others use go on."""
        with self._lock:
            joined = PendingChange(self.snapshot, self.shared)
            for name in names:
                joined = joined.withdrawn(name)
            return self._publish(joined, before)

    def switch(self, dataflow: str, task: str, alternate: str) -> None:
        """Make another alternate of a task the active one, for all dataflows that share the task."""
        with self._lock:
            self.change({find_task(self.snapshot, dataflow, task)[0]: alternate}, {})

    def change(self, active: Mapping[Signature, str], partitions: Mapping[Signature, int | None]) -> None:
        """Switch alternates, by their names, and set partitions of tasks, all in one plan snapshot or not at all."""
        with self._lock:
            chosen: dict[Signature, str] = {}
            for signature, alternate in active.items():
                name, task = task_of(self.snapshot, signature)
                chosen[signature] = chosen_alternate(name, task, alternate)
            for signature, count in partitions.items():
                task_of(self.snapshot, signature)
                check_partitions(count)
            counts = {**self.snapshot.partitions, **partitions}
            kept = {signature: count for signature, count in counts.items() if count is not None}
            self._change(active={**self.snapshot.active, **chosen}, partitions=kept)

    def scale(self, executors: int) -> None:
        """Have so many executors: more are asked for; those that are too many end their tasks and leave."""
        self.scaling.scale(executors)

    def acquire(self, vm_class: str) -> AcquiredMachine:
        """Ask the provider for a machine; executors come onto it when it is ready."""
        self.scaling.check([vm_class], [])
        return self.scaling.acquire(vm_class)

    def release(self, machine: str) -> None:
        """Give a machine back to the provider, after what it is doing."""
        self.scaling.check([], [machine])
        self.scaling.release(machine)

    def repartition(self, dataflow: str, task: str, partitions: int | None) -> None:
        """Run a task on that many partitions; ``None`` leaves it to what feeds it."""
        with self._lock:
            self.change({}, {find_task(self.snapshot, dataflow, task)[0]: partitions})

    def pause(self, name: str) -> None:
        """Let a dataflow rest: what passes meanwhile does not reach its sinks, and its keyed tasks start afresh.

        Its sources are read on, so that it meets the present when it is resumed, whether or not others use them.
        """
        with self._lock:
            found = self.snapshot.find(name)
            self._change(paused=self.snapshot.paused | {found.name})

    def resume(self, name: str) -> None:
        """Let a paused dataflow go on."""
        with self._lock:
            found = self.snapshot.find(name)
            self._change(paused=self.snapshot.paused - {found.name})

    def limit(self, dataflow: str, task: str, rows: int | None) -> None:
        """Let a source take in at most so many rows per trigger, for all dataflows that share it; ``None`` lifts that.

        For a stateful task it is what its fragment takes from the streams before it, in whole batches of them; all
        tasks of a keyed host have the smallest of their limits.

        A ``replay`` and stateful tasks heed it from their next micro-batch on. Spark's own sources read their limit
        when they start: that one query is stopped after its epoch and goes on from its checkpoint. For ``read_files``
        the limit counts files, as Spark does. ``rate`` and ``read_socket`` can have none.
        """
        with self._lock:
            signature, _ = find_task(self.snapshot, dataflow, task)
            if rows is not None and rows < 1:
                raise InputError("BAD_LIMIT", f"{rows} rows per trigger: at least 1 is needed")
            found = self.plan.tasks.get(signature)
            if found is None:
                raise InputError("CANNOT_LIMIT", f"dataflow '{dataflow}' is paused; resume it first")
            if found.role is not Role.SOURCE and found.state is State.NONE:
                told = f"task '{task}' takes what it is handed; limit the source or the stateful task before it"
                raise InputError("CANNOT_LIMIT", told)
            hot = found.role is not Role.SOURCE or hot_limit(found.options)
            kept = {key: limit for key, limit in self.snapshot.limits.items() if key != signature}
            self._change(limits={**kept, **({} if rows is None else {signature: rows})})
            for fragment in list(self.fragments.values()):
                if signature in fragment.fragment.roots and fragment.fragment.kind not in FED:
                    self._fleet.apply_limit(fragment, self.snapshot)
                    if not hot:
                        self._fleet.restart(fragment)

    def binding_level(self, dataflow: str, task: str) -> ServiceLevel:
        """The service level that binds a task: the strictest of the dataflows that share it."""
        with self._lock:
            return binding_level(self.shared.running, find_task(self.snapshot, dataflow, task)[0])

    def _change(self, **choices: object) -> None:
        """Publish other choices for the same dataflows."""
        self._publish(PendingChange(replace(self.snapshot, **choices), self.shared))  # type: ignore[arg-type]

    def _publish(self, joined: PendingChange, announce: Callable[[Applied], None] | None = None) -> Applied:
        if self._stopped:
            raise InputError("ENGINE_STOPPED", "the engine is being stopped and takes no changes any more")
        before = self.plan
        snapshot = joined.snapshot.next()
        plan = compile_plan(snapshot, self.registry)
        staying = {*before.fragments, *snapshot.resting} - plan.fragments.keys()
        resting = frozenset(staying if snapshot.strategy in STAYING else ())
        snapshot = replace(snapshot, since=plan.since(), resting=resting)
        self.schemas.check(plan)
        check_paths(self.scaling.executors, paths_read(plan, before))
        self._plans.prepare(plan)
        prepared = self._fleet.prepare(plan, snapshot)
        stopped = [f for f in self._fleet.holding(joined.stopped) if f.fragment.id in plan.fragments]
        touched = [change.fragments_touched(_tasks(before)) for change in joined.withdrawals]
        touched += [submission.change.fragments_touched(_tasks(plan)) for submission in joined.submissions]
        applied = Applied(
            snapshot.number,
            joined.submissions,
            joined.withdrawals,
            tuple(dict.fromkeys(name for names in touched for name in names)),
            tuple(fragment.fragment.id for fragment, _ in prepared),
            tuple(fragment.fragment.id for fragment in stopped),
        )
        for fragment in stopped:
            fragment.end()
        try:
            for fragment in stopped:
                fragment.stop()
            if announce is not None:
                announce(applied)
            self._plans.publish(snapshot, plan)
        except BaseException:
            self._fleet.discard(prepared)
            for fragment in stopped:
                self._fleet.restart(fragment)
            raise
        self.shared = joined.shared
        self._fleet.go_on_with(plan)
        for fragment in stopped:
            self._fleet.restart(fragment)
        self._fleet.start(prepared)
        self._fleet.retire()
        self._meter()
        return applied

    # watching

    def housekeep(self) -> None:
        """Offer refused rows again, start what could not be, stop what is no longer needed, note what was measured.

        To be called now and then. Without it the engine runs all the same, but what has failed is not mended.
        """
        with self._lock:
            self._own.check()
            self.outbox.retry()
            self._fleet.start_refused()
            for fragment in self._fleet.without_workers()[:1]:  # one at a time: they failed as many started at once
                self._fleet.restart(fragment)
            self._fleet.start_failed()
            self._fleet.retire()
            self._compact()
            self._own.trim_log()
            self._meter()
        if self._counting and time.monotonic() - self._observed >= OBSERVE_EVERY_S:
            self._observed = time.monotonic()
            with suppress(OSError):  # a full disk; there are more important things to write
                self.history.append(self._observer.observe())

    def _meter(self) -> None:
        """Keep the record of usage up to date."""
        usage = usage_of(self.plan, self.snapshot.dataflows, self._price_per_h)
        self._journal.changed(int(time.time()), usage)

    def _compact(self) -> None:
        """Remove plan snapshots that nothing needs, now and then."""
        if self.snapshot.number < self._compacted + SNAPSHOTS_BETWEEN:
            return
        self._compacted = self.snapshot.number
        running = list(self.fragments.values())
        pending = self.state.path / "pending"
        oldest = oldest_under_way(running, self._fleet.left(), self.exchange, pending, self.snapshot.number)
        remove_snapshots(self._plans.folders, oldest, {fragment.begun for fragment in running}, HISTORY_BYTES)

    def mendable(self) -> bool:
        """Whether something that failed is tried again by itself: a source that may come, workers that were slow."""
        refused = any(fragment.refusal is not None for fragment in list(self.fragments.values()))
        return refused or bool(self._fleet.without_workers())

    def failures(self) -> dict[str, str]:
        """Why fragments have failed, by fragment."""
        found = {name: fragment.failure for name, fragment in self.fragments.items()}
        return {name: reason for name, reason in found.items() if reason is not None}

    def wait_until_idle(self, *, despite_failures: bool = False) -> None:
        """Wait until all that sources have to give has reached the sinks; raises when a fragment fails.

        Sources that never run dry (rate, socket, Kafka under load, a replay that repeats) keep it waiting. With
        ``despite_failures`` it waits for those that have not failed.
        """
        self._fleet.wait_until_idle(self._lock, despite_failures)

    def status(self) -> tuple[list[DataflowStatus], list[FragmentStatus]]:
        """How dataflows and fragments are doing."""
        with self._lock:
            running = list(self.fragments.values())
            tasks: dict[str, list[CompiledTask]] = {}
            for task in self.plan.tasks.values():
                for user in task.users:
                    tasks.setdefault(user, []).append(task)
            flows = [
                dataflow_status(
                    flow,
                    tasks.get(flow.name, []),
                    self.snapshot,
                    self.plan,
                    running,
                    self.outbox,
                    self.dead_letters,
                )
                for flow in self.dataflows
            ]
            return flows, [fragment_status(fragment, self.plan) for fragment in running]

    def observer(self) -> Observer:
        """One who observes from now on."""
        return Observer(
            ObservedEngine(
                internals(self.spark),
                self.records,
                lambda: self.plan,
                lambda: list(self.fragments.values()),
                lambda: list(self.outbox.refusals),
                self.profiler.profiles,
                partial(self._workers.observe, spent={}),
            )
        )

    def about(self) -> dict[str, Any]:
        """Which engine this is."""
        return {
            "state": str(self.state.path),
            "process": os.getpid(),
            "folder": str(Path.cwd()),
            "strategy": self.snapshot.strategy.value,
            "snapshot": self.snapshot.number,
        }

    def stop(self) -> None:
        """Stop every fragment after the epoch under way, and let go of the state directory."""
        with self._lock:
            self._stopped = True
            try:
                self._own.check()
                self.background.stop()
                self._fleet.stop()
                self._own.stop()
            except HeadgateError:
                pass  # there is nothing left to stop
            finally:
                self._journal.ended(int(time.time()))
                self.fragments.clear()
                self.state.close()


def _tasks(plan: CompiledPlan) -> dict[str, tuple[Signature, ...]]:
    """What each fragment of a plan runs."""
    return {
        name: (*(fragment.roots if fragment.kind not in FED else ()), *fragment.tasks)
        for name, fragment in plan.fragments.items()
    }
