"""The engine: runs dataflows that change without a restart.

Every change makes the next plan snapshot: what is shared is decided (:mod:`headgate.runtime.engine.pending_change`),
the difference compiled and tried, then made durable (:mod:`headgate.runtime.engine.publisher`); it takes effect in each
fragment at its next epoch. Fragments that are new in the plan are started; those that it no longer needs are stopped
once they have read what was still on its way to them (:mod:`headgate.runtime.engine.queries`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.errors import HeadgateError, InputError
from headgate.machines.provider import AcquiredMachine, Provider
from headgate.model.alternate_choice import ActiveAlternate
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.redrive_result import RedriveResult
from headgate.model.service_level import ServiceLevel
from headgate.model.status import DataflowStatus, EngineCrash, FragmentStatus
from headgate.model.strategy import StrategyName
from headgate.runtime.compile.plan import FED, CompiledPlan
from headgate.runtime.compile.schemas import Schemas
from headgate.runtime.engine.catching_up import CatchUps
from headgate.runtime.engine.choices import Choices, active_alternates
from headgate.runtime.engine.find_task import find_task
from headgate.runtime.engine.observed import observer_of
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.publisher import Publisher
from headgate.runtime.engine.queries import Queries
from headgate.runtime.engine.redriving import Redrives
from headgate.runtime.engine.scaling import Scaling, checked_executors
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.engine.status import dataflow_statuses, fragment_status
from headgate.runtime.engine.suspension import Suspensions
from headgate.runtime.engine.upkeep import PRICE_PER_H, Upkeep
from headgate.runtime.epochs.background_jobs import BackgroundJobs
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.io.outbox import SinkOutbox
from headgate.runtime.io.sinks import MemorySink
from headgate.runtime.isolation.dead_letters import DeadLetters
from headgate.runtime.isolation.sql_guard import DEFAULT_BUDGET_S
from headgate.runtime.observing.measuring import MEASURING, Measuring
from headgate.runtime.observing.observer import Observer
from headgate.runtime.observing.profiler import Profiler
from headgate.runtime.observing.records import Records
from headgate.runtime.observing.tails import Tails, TakeRows
from headgate.runtime.observing.workers import Workers
from headgate.runtime.spark_internals.failures import source_is_away
from headgate.runtime.spark_internals.process import SparkProcess
from headgate.runtime.spark_internals.session import open_session
from headgate.sharing.applied import Acknowledge, AcknowledgeRedrive, Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.store.journal import Journal
from headgate.store.lock import StateLock
from headgate.store.observations import ObservationHistory
from headgate.store.secrets import SECRETS
from headgate.tasks.registry import Registry, default_registry

__all__ = ["Engine"]


class Engine:
    """Runs dataflows on one Spark; use it in a ``with`` statement."""

    def __init__(
        self,
        state: Path | str | StateLock,
        *,
        crash: EngineCrash | None = None,
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

        ``strategy`` says how changes are carried out: as before if left out, and ``hot`` in a new directory. With
        ``semantic``, dataflows that are submitted from now on may read wider streams than they would have made.
        ``price_per_h`` is what this machine costs. ``crash`` is how the last engine ended, if a dataflow may be why.
        """
        SECRETS.load(os.environ)
        self.registry = registry if registry is not None else default_registry()
        self.state = StateDirectory(state if isinstance(state, StateLock) else Path(state))
        self.log, self._stopped = self.state.path / "spark.log", False
        """What Spark prints, if this engine has started it."""
        try:
            self._plans = Plans(self.state, self.registry, semantic)
            self._plans.use_strategy(strategy)
            self._pauses = Suspensions(self.state.path / "suspended.json", self._plans, crash)
            self.spark = spark if spark is not None else open_session(master, settings, log=self.log)
            self._own = SparkProcess(self.spark, spark is None, self.log)
            self.scaling = Scaling(checked_executors(self.spark, self.state.path), provider)
            self.memory = MemorySink()
            self.exchange = FileExchange(self.state.path / "exchange")
            self.outbox = SinkOutbox(self.state.path / "pending", self.spark, self.memory, self._plans, self._plans.due)
            self._lock = threading.RLock()
            self.schemas = Schemas(self.spark)
            self.background = BackgroundJobs(self.spark)
            self.dead_letters = DeadLetters(self.state.path / "dead_letters")
            self.records, self.tails = Records(), Tails()
            self.profiler = Profiler(self.spark, measuring, self.background.ended, self.schemas, self.state.path)
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
                self.tails,
                lambda: self._redrives.finish(),
                lambda: self.scaling.longest_epoch_s,
                lambda *source: self._catch_ups.settle(*source),
                lambda machines: self.scaling.executors_of(machines),
            )
            self._queries = Queries(context, self._plans)
            self._redrives = Redrives(context, self._plans, self.fragments)
            self._redrives.finish()
            self._catch_ups = CatchUps(self.state, self._plans, self.fragments, self.exchange, self.outbox)
            self._publisher = Publisher(self._plans, self._queries, self.schemas, self.scaling.executors, self._pauses)
            self._upkeep = Upkeep(self.state, self._plans, self._queries, self.exchange, price_per_h, self.scaling)
            self._workers = Workers(self.spark, self.state.path, self.scaling.machines, price_per_h)
            self._observe = self.observer().observe if measuring.counting else None
            self._queries.resume()
            self._upkeep.meter()
        except BaseException:
            if hasattr(self, "_own"):  # started for an engine that fails to start
                self._own.stop()
            self.state.close()
            raise

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def snapshot(self) -> Snapshot:
        """What is to run."""
        return self._plans.snapshot

    @property
    def journal(self) -> Journal:
        """All that must not be forgotten."""
        return self.state.journal

    @property
    def shared(self) -> SharedSet:
        """What is submitted and what runs for it, paused dataflows included."""
        return self.snapshot.shared

    @property
    def history(self) -> ObservationHistory:
        """What was observed, in intervals of some seconds."""
        return self._upkeep.history

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
        return self._queries.running

    # changes

    def submit(
        self,
        *dataflows: Dataflow | SignedDataflow,
        replace: bool = False,
        allow_partial: bool = False,
        acknowledge: Acknowledge | None = None,
    ) -> Applied:
        """Run more dataflows; all of them or, if one cannot be run, none.

        With ``replace`` they take the place of running ones of their names, between two micro-batches: what is in both
        goes on. With ``allow_partial`` they take what there is of their past. ``acknowledge`` becomes durable with it.
        """
        with self._lock:
            return self._publish(self._catch_ups.change(allow_partial).with_all(dataflows, replace), acknowledge)

    def withdraw(self, *names: str, acknowledge: Acknowledge | None = None) -> Applied:
        """Stop dataflows, all of them or none; tasks that others use go on."""
        with self._lock:
            return self._publish(PendingChange(self.snapshot).without(names), acknowledge)

    def switch(
        self, dataflow: str, task: str, alternate: str, acknowledge: Acknowledge | None = None, by: str = "somebody"
    ) -> None:
        """Make another alternate of a task the active one, for all dataflows that share the task.

        It holds: no policy chooses for the task until it is released. ``by`` is who switches it.
        """
        with self._lock:
            known = find_task(self.snapshot, dataflow, task)[0]
            self.change(Choices(active={known: alternate}, held={known: True}, by=by), acknowledge)

    def release_task(self, dataflow: str, task: str, acknowledge: Acknowledge | None = None) -> None:
        """Let policies choose again how a task is done; until one does, it stays as it is."""
        with self._lock:
            self.change(Choices(held={find_task(self.snapshot, dataflow, task)[0]: False}), acknowledge)

    def change(self, choices: Choices, acknowledge: Acknowledge | None = None) -> None:
        """Change how running tasks are done, all in one plan snapshot or not at all."""
        with self._lock:
            change, colder = choices.of(self.snapshot, self.plan)
            self._publish(change, acknowledge)
            for fragment in list(self.fragments.values()):
                if choices.paused:
                    self._queries.apply_limit(fragment, self.snapshot)
                limited = choices.limits.keys() & {*fragment.fragment.roots}
                if limited and fragment.fragment.kind not in FED:
                    self._queries.apply_limit(fragment, self.snapshot)
                    if limited & colder:
                        self._queries.restart(fragment)

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

    def repartition(
        self, dataflow: str, task: str, partitions: int | None, acknowledge: Acknowledge | None = None
    ) -> None:
        """Run a task on that many partitions; ``None`` leaves it to what feeds it. A number holds, as a switch does."""
        with self._lock:
            known = find_task(self.snapshot, dataflow, task)[0]
            self.change(Choices(partitions={known: partitions}, held={known: True} if partitions else {}), acknowledge)

    def place(
        self, dataflow: str, task: str, machines: Sequence[str] | None, acknowledge: Acknowledge | None = None
    ) -> None:
        """Run a partition of a source, and what is fused with it, on each of some machines; ``None`` ends that."""
        places = self.scaling.checked_places(machines)
        with self._lock:
            self.change(Choices(places={find_task(self.snapshot, dataflow, task)[0]: places}), acknowledge)

    def pause(self, name: str, acknowledge: Acknowledge | None = None) -> None:
        """Pause a dataflow: its sinks get no rows, its keyed tasks lose their state; its sources are still read."""
        self.change(Choices(paused={name: True}), acknowledge)

    def resume(self, name: str, acknowledge: Acknowledge | None = None) -> None:
        """Resume a paused dataflow."""
        self.change(Choices(paused={name: False}), acknowledge)

    def limit(self, dataflow: str, task: str, rows: int | None, acknowledge: Acknowledge | None = None) -> None:
        """Let a source take in at most so many rows per trigger, for all dataflows that share it; ``None`` lifts that.

        A stateful task takes whole batches of the streams before it; all tasks of a keyed host have the smallest limit.
        It holds from the next micro-batch on; a source of Spark's is stopped for that and goes on from its checkpoint.
        """
        with self._lock:
            known = self.snapshot.catching_up(dataflow, task) or find_task(self.snapshot, dataflow, task)[0]
            self.change(Choices(limits={known: rows}, held={} if rows is None else {known: True}), acknowledge)

    def set_level(self, name: str, level: ServiceLevel | None, acknowledge: Acknowledge | None = None) -> None:
        """Change the service level of a running dataflow; ``None`` makes it what its author wrote."""
        self.change(Choices(levels={name: level}), acknowledge)

    def redrive(self, dataflow: str, task: str, acknowledge: AcknowledgeRedrive | None = None) -> RedriveResult:
        """Offer the rows again that a task of a dataflow has refused, each exactly once."""
        with self._lock:
            return self._redrives.redrive(dataflow, task, acknowledge)

    def _publish(self, change: PendingChange, acknowledge: Acknowledge | None = None) -> Applied:
        if self._stopped:
            raise InputError("ENGINE_STOPPED", "the engine is being stopped and takes no changes any more")
        applied = self._publisher.publish(replace(change, at=time.time()), acknowledge)
        self._upkeep.meter()
        self._catch_ups.settle_idle()
        return applied

    # watching

    def tail(self, dataflow: str, task: str, viewer: TakeRows) -> Callable[[], None]:
        """Show somebody some rows that a task makes, or that a sink takes; returns what ends that."""
        return self.tails.follow(find_task(self.snapshot, dataflow, task)[0], viewer)

    def housekeep(self) -> None:
        """Retry refused rows and failed starts, stop what is not needed, record what was measured: now and then."""
        self.outbox.retry()  # without the lock: a sink may take its time to refuse
        with self._lock:
            self._own.check()
            self._catch_ups.advance(self._publish)
            self.outbox.save_totals(set(self.snapshot.signatures))
            self._queries.start_refused()
            for fragment in self._queries.without_workers()[:1]:  # one at a time: they failed as many started at once
                self._queries.restart(fragment)
            self._queries.start_failed()
            self._queries.retire()
            self._redrives.finish()
            self._upkeep.compact()
            self._own.trim_log()
            self._upkeep.meter()
        if self._observe is not None:
            self._upkeep.observe(self._observe)

    def mendable(self) -> bool:
        """Whether something that failed is tried again by itself: a source that may come, or answer; slow workers."""
        waits = (each.refusal or source_is_away(each.failure or "") for each in list(self.fragments.values()))
        return any(waits) or bool(self._queries.without_workers())

    def failures(self) -> dict[str, str]:
        """Why fragments have failed, by fragment."""
        return self._queries.failures()

    def wait_until_idle(self, *, despite_failures: bool = False) -> None:
        """Wait until all that sources have to give has reached the sinks; raises when a fragment fails.

        Sources that never run dry (rate, socket, a replay that repeats) keep it waiting. With ``despite_failures`` it
        waits for those that have not failed.
        """
        self._queries.wait_until_idle(self._lock, despite_failures)
        while self._catch_ups.go_on(self._lock, self._publish) and not (despite_failures and self.failures()):
            self._queries.wait_until_idle(self._lock, despite_failures)

    def status(self) -> tuple[list[DataflowStatus], list[FragmentStatus]]:
        """How dataflows and fragments are doing."""
        with self._lock:
            running = list(self.fragments.values())
            flows = dataflow_statuses(self.snapshot, self.plan, running, self.outbox, self.dead_letters)
            flows = self._upkeep.measured(self._pauses.explain(self._catch_ups.explain(flows)))
            return flows, [fragment_status(fragment, self.plan) for fragment in running]

    def alternates(self, name: str) -> dict[TaskId, ActiveAlternate]:
        """The active alternate of each task of a dataflow that runs, since when, by whom and why."""
        return active_alternates(self.snapshot, self.plan, name)

    def observer(self) -> Observer:
        """One who observes from now on."""
        seen = self.records, self._plans, self.fragments, self.outbox, self.profiler, self._workers
        return observer_of(self.spark, *seen)

    def about(self) -> dict[str, Any]:
        """Which engine this is."""
        runs = {"strategy": self.snapshot.strategy.value, "snapshot": self.snapshot.number}
        return {"state": str(self.state.path), "process": os.getpid(), "folder": str(Path.cwd()), **runs}

    def stop(self) -> None:
        """Stop every fragment after the epoch under way, and release the state directory."""
        with self._lock:
            self._stopped = True
            try:
                with suppress(HeadgateError):  # there is nothing left to stop
                    self._own.check()
                    self.background.stop()
                    self._queries.stop()
                    self._own.stop()
            finally:
                self._upkeep.end(self.outbox)
                self.fragments.clear()
                self.state.close()
