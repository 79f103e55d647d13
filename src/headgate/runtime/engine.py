"""The engine: runs dataflows that change without a restart.

Every change makes the next plan snapshot: it is compiled and tried first, then made durable, and takes effect in each
fragment at its next epoch. Fragments that the plan needs and that do not run yet are started; those that it no longer
needs are stopped once they have read what was still on its way to them.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError, InputError, nearest
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.model.registry import Registry, default_registry
from headgate.model.task import Task
from headgate.model.task_type import Role, State
from headgate.runtime.aside import Aside
from headgate.runtime.compaction import HISTORY_BYTES, oldest_under_way, remove_snapshots
from headgate.runtime.dead_letters import DeadLetters
from headgate.runtime.draining import is_drained
from headgate.runtime.exchange import FileExchange
from headgate.runtime.failures import workers_were_late
from headgate.runtime.fragment import RunningFragment
from headgate.runtime.guard import DEFAULT_BUDGET_S
from headgate.runtime.isolation import Quarantine
from headgate.runtime.limits import set_limit
from headgate.runtime.outbox import SinkOutbox
from headgate.runtime.plan import Fragment, Kind, Plan, compile_plan
from headgate.runtime.schemas import Schemas
from headgate.runtime.session import open_session
from headgate.runtime.sinks import Memory
from headgate.runtime.snapshot import Snapshot, alternate_key
from headgate.runtime.sources import hot_limit
from headgate.runtime.state import StateDirectory, read_json, write_json
from headgate.runtime.status import DataflowStatus, FragmentStatus, dataflow_status, fragment_status
from headgate.runtime.surroundings import Surroundings
from headgate.sharing.deduplicate import deduplicate

__all__ = ["Engine"]

LOG_BYTES = 8_000_000
"""How much of what Spark prints is kept, and as much again of what it printed before."""

SNAPSHOTS_BETWEEN = 50
"""How many new snapshots there are between two compactions."""


class Engine:
    """Runs dataflows on one Spark; use it in a ``with`` statement."""

    def __init__(
        self,
        state: Path | str,
        *,
        spark: SparkSession | None = None,
        master: str = "local[*]",
        trigger_s: float = 0.5,
        time_budget_s: float = DEFAULT_BUDGET_S,
        registry: Registry | None = None,
    ) -> None:
        self.registry = registry if registry is not None else default_registry()
        self.state = StateDirectory(Path(state))
        self.log = self.state.path / "spark.log"
        """What Spark prints, if this engine has started it."""

        try:
            self._own_spark = spark is None
            self.spark = spark if spark is not None else open_session(master, log=self.log)
            self.memory = Memory()
            self.exchange = FileExchange(self.state.path / "exchange")
            self.outbox = SinkOutbox(self.state.path / "pending", self.spark, self.memory, self._plan)
            self._lock = threading.RLock()
            self._plan_of = lru_cache(maxsize=64)(self._load_plan)
            self.snapshot = self._last_snapshot()
            self.plan = self._plan_of(self.snapshot.number)
            self.schemas = Schemas(self.spark)
            self.aside = Aside(self.spark)
            self.dead_letters = DeadLetters(self.state.path / "dead_letters")
            self._around = Surroundings(
                self.spark,
                self.state,
                self.exchange,
                self.schemas,
                self._plan,
                lambda: self.plan,
                lambda signature: self.snapshot.limits.get(signature),
                self.outbox,
                trigger_s,
                self.aside,
                self.dead_letters,
                time_budget_s,
            )
            self.fragments: dict[str, RunningFragment] = {}
            self._failed = Quarantine()
            """Fragments whose query failed, and when each is started again."""

            self._compacted = 0
            self._left: dict[str, Plan] = {}
            """The last plan of fragments that run on without being in the current one."""

            self._go_on()
        except BaseException:
            self.state.close()
            raise

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # changes

    def submit(self, *dataflows: Dataflow, replace: bool = False) -> None:
        """Run more dataflows; all of them or, if one cannot be run, none.

        With ``replace`` they take the place of running ones of their names, between two micro-batches: what is the same
        in both goes on, sources where they are.
        """
        with self._lock:
            given = {dataflow.name for dataflow in dataflows} if replace else set()
            others = tuple(running for running in self.snapshot.dataflows if running.name not in given)
            names = {dataflow.name for dataflow in others}
            for dataflow in dataflows:
                if dataflow.name in names:
                    told = f"a dataflow '{dataflow.name}' is running already; withdraw it first, or give another name"
                    raise InputError("NAME_TAKEN", told)
                names.add(dataflow.name)
            added = tuple(deduplicate(dataflow).dataflow for dataflow in dataflows)
            self._publish(self.snapshot.next(dataflows=(*others, *added)))

    def withdraw(self, name: str) -> None:
        """Stop a dataflow; tasks that others use go on."""
        with self._lock:
            gone = self.snapshot.find(name)
            kept = tuple(dataflow for dataflow in self.snapshot.dataflows if dataflow is not gone)
            self._publish(self.snapshot.next(dataflows=kept, paused=self.snapshot.paused - {gone.name}))

    def switch(self, dataflow: str, task: str, alternate: str) -> None:
        """Make another alternate of a task the active one, for all dataflows that share the task."""
        with self._lock:
            signature, found = self._find(dataflow, task)
            names = [way.name for way in found.alternates]
            if alternate not in names:
                told = f"task '{task}' of '{dataflow}' has no alternate '{alternate}'; it has {', '.join(names)}"
                raise InputError("UNKNOWN_ALTERNATE", told)
            chosen = alternate_key(found.alternates[names.index(alternate)])
            self._publish(self.snapshot.next(active={**self.snapshot.active, signature: chosen}))

    def repartition(self, dataflow: str, task: str, partitions: int | None) -> None:
        """Run a task on that many partitions; ``None`` leaves it to what feeds it."""
        with self._lock:
            signature, _ = self._find(dataflow, task)
            if partitions is not None and partitions < 1:
                raise InputError("BAD_PARTITIONS", f"{partitions} partitions: at least 1 is needed")
            kept = {key: count for key, count in self.snapshot.partitions.items() if key != signature}
            added = {} if partitions is None else {signature: partitions}
            self._publish(self.snapshot.next(partitions={**kept, **added}))

    def pause(self, name: str) -> None:
        """Let a dataflow rest: what passes meanwhile does not reach its sinks, and its keyed tasks start afresh.

        Its sources are read on, so that it meets the present when it is resumed, whether or not others use them.
        """
        with self._lock:
            found = self.snapshot.find(name)
            self._publish(self.snapshot.next(paused=self.snapshot.paused | {found.name}))

    def resume(self, name: str) -> None:
        """Let a paused dataflow go on."""
        with self._lock:
            found = self.snapshot.find(name)
            self._publish(self.snapshot.next(paused=self.snapshot.paused - {found.name}))

    def limit(self, dataflow: str, task: str, rows: int | None) -> None:
        """Let a source take in at most so many rows per trigger, for all dataflows that share it; ``None`` lifts that.

        For a stateful task it is what its fragment takes from the streams before it, in whole batches of them; all
        tasks of a keyed host have the smallest of their limits.

        A ``replay`` and stateful tasks heed it from their next micro-batch on. Spark's own sources read their limit
        when they start: that one query is stopped after its epoch and goes on from its checkpoint. For ``read_files``
        the limit counts files, as Spark does. ``rate`` and ``read_socket`` can have none.
        """
        with self._lock:
            signature, _ = self._find(dataflow, task)
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
            self._publish(self.snapshot.next(limits={**kept, **({} if rows is None else {signature: rows})}))
            for fragment in list(self.fragments.values()):
                if signature in fragment.fragment.roots and fragment.fragment.kind is not Kind.FEEDBACK:
                    self._apply_limit(fragment)
                    if not hot:
                        self._restart(fragment)

    def _apply_limit(self, fragment: RunningFragment) -> None:
        limits = [self.snapshot.limits[root] for root in fragment.fragment.roots if root in self.snapshot.limits]
        set_limit(fragment.folder, min(limits, default=None))

    def _restart(self, fragment: RunningFragment) -> None:
        """Stop a fragment after its epoch and start it again from its checkpoint."""
        fragment.stop()
        again = RunningFragment(fragment.fragment, self.plan.number, self._around)
        self.fragments[again.fragment.id] = again
        in_plan = again.fragment.id in self.plan.fragments
        self._start(again, self.plan if in_plan else self._last_plan_with(again.fragment))

    def _find(self, dataflow: str, task: str) -> tuple[Signature, Task]:
        flow = self.snapshot.find(dataflow)
        signatures = deduplicate(flow).signatures
        for found in flow.tasks:
            if found.id == task:
                return signatures[found.id], found
        near = nearest(task, [found.id for found in flow.tasks])
        hint = f"; did you mean '{near}'?" if near else ""
        raise InputError("UNKNOWN_TASK", f"dataflow '{dataflow}' has no task '{task}'{hint}")

    def _publish(self, snapshot: Snapshot) -> None:
        plan = compile_plan(snapshot, self.registry)
        snapshot = replace(snapshot, since=plan.since())
        self.schemas.check(plan)
        new = [fragment for fragment in plan.fragments.values() if fragment.id not in self.fragments]
        # Hosts must find the plan before the first row that carries its number.
        write_json(self.state.path / "hosts" / f"{snapshot.number}.json", plan.hosts())
        running: list[RunningFragment] = []
        try:
            running.extend(RunningFragment(fragment, snapshot.number, self._around) for fragment in new)
            streams = [fragment.prepare(plan) for fragment in running]
            for fragment in running:
                self._apply_limit(fragment)
        except BaseException:
            for fragment in running:
                _remove(fragment.folder)
            raise
        write_json(self.state.path / "snapshots" / f"{snapshot.number}.json", snapshot.as_dict())
        self.snapshot, self.plan = snapshot, plan
        self._left = {gone: last for gone, last in self._left.items() if gone not in plan.fragments}
        # Readers first, so that nothing waits in a topic for its reader to come up.
        for fragment, stream in sorted(
            zip(running, streams, strict=True), key=lambda pair: pair[0].fragment.kind is Kind.SOURCE
        ):
            fragment.start(stream)
            self.fragments[fragment.fragment.id] = fragment
        self._retire()

    def _retire(self) -> None:
        """Stop fragments that the plan does not need, once nothing is on its way to them."""
        needed = {*self.plan.fragments, *self._resting()}
        for fragment_id in [known for known in self.fragments if known not in needed]:
            fragment = self.fragments[fragment_id]
            last = self._last_plan_with(fragment.fragment)
            drained = fragment.fragment.kind is Kind.SOURCE or is_drained(fragment, last, self.fragments, self.exchange)
            if drained or (fragment.failure is not None and fragment not in self._without_workers()):
                fragment.stop()
                fragment.finish()
                del self.fragments[fragment_id]
                _remove(fragment.folder)
                for topic in fragment.fragment.reads:
                    self.exchange.forget(topic)

    def _resting(self) -> dict[str, tuple[Fragment, Plan]]:
        """The sources that only paused dataflows read, with the plan that there would be without pauses."""
        if not self.snapshot.paused:
            return {}
        every = compile_plan(replace(self.snapshot, paused=frozenset()), self.registry)
        kept = [f for f in every.fragments.values() if f.kind is Kind.SOURCE and f.id not in self.plan.fragments]
        return {fragment.id: (fragment, every) for fragment in kept}

    def _last_plan_with(self, fragment: Fragment) -> Plan:
        """The last plan that had a fragment."""
        if fragment.id not in self._left:
            number = self.plan.number
            while number > 0 and fragment.id not in self._plan(number).fragments:
                number -= 1
            self._left[fragment.id] = self._plan(number)
        return self._left[fragment.id]

    # plans

    def _plan(self, number: int) -> Plan:
        return self.plan if number == self.plan.number else self._plan_of(number)

    def _load_plan(self, number: int) -> Plan:
        stored = read_json(self.state.path / "snapshots" / f"{number}.json")
        if stored is None and number > 0:
            raise HeadgateError("SNAPSHOT_GONE", f"plan snapshot {number} is not in {self.state.path / 'snapshots'}")
        snapshot = Snapshot() if stored is None else Snapshot.from_dict(stored, self.registry)
        return compile_plan(snapshot, self.registry)

    def _last_snapshot(self) -> Snapshot:
        numbers = [int(file.stem) for file in (self.state.path / "snapshots").glob("[0-9]*.json")]
        if not numbers:
            return Snapshot()
        stored = read_json(self.state.path / "snapshots" / f"{max(numbers)}.json")
        return Snapshot.from_dict(stored, self.registry)

    def _go_on(self) -> None:
        """Start what ran when the engine was last stopped, retired fragments that were not drained included.

        What cannot be started, because its source is gone for example, keeps the others from nothing.
        """
        found = {fragment_id: (fragment, self.plan) for fragment_id, fragment in self.plan.fragments.items()}
        found |= self._resting()
        for folder in (self.state.path / "fragments").iterdir():
            begun = read_json(folder / "fragment.json")
            if folder.name in found:
                continue
            if begun is None or begun["snapshot"] > self.snapshot.number:
                _remove(folder)  # the engine was killed as it removed it, or before it had made it
                continue
            plan = self._plan_of(begun["snapshot"])
            fragment = plan.fragments[folder.name]
            if fragment.kind is Kind.SOURCE:  # withdrawn just before the engine ended
                RunningFragment(fragment, plan.number, self._around).finish()
                _remove(folder)
            else:
                found[folder.name] = (fragment, plan)
        for fragment, plan in found.values():
            running = RunningFragment(fragment, plan.number, self._around)
            self.fragments[fragment.id] = running
            self._start(running, plan)

    def _start(self, fragment: RunningFragment, plan: Plan) -> None:
        """Start a fragment that has run before, or remember why it cannot be started."""
        try:
            self._apply_limit(fragment)
            fragment.start(fragment.prepare(plan))
            fragment.refusal = None
        except HeadgateError as error:
            fragment.refusal = error.message
        except PySparkException as error:
            fragment.refusal = " ".join(str(error).split())[:300]

    # watching

    def housekeep(self) -> None:
        """Offer refused rows again, start what could not be, stop what is no longer needed; to be called now and then.

        Without it the engine runs all the same, but what has failed is not mended.
        """
        with self._lock:
            self._check_spark()
            self.outbox.retry()
            for fragment in [found for found in self.fragments.values() if found.refusal is not None]:
                if fragment.fragment.id in self.plan.fragments:
                    self._start(fragment, self.plan)
            for fragment in self._without_workers()[:1]:  # one at a time: they failed because many started at once
                self._restart(fragment)
            self._start_failed()
            self._retire()
            self._compact()
            self._trim_log()

    def _start_failed(self) -> None:
        """Start fragments whose query failed again, each after a rest that grows."""
        late = self._without_workers()
        for name, fragment in list(self.fragments.items()):
            if fragment.failure is None:
                self._failed.passed([name])
            elif fragment.refusal is None and fragment not in late and name in self.plan.fragments:
                if name not in self._failed.reasons:
                    self._failed.put(name, fragment.failure)
                elif name in self._failed.due():
                    self._failed.try_now([name])
                    self._failed.passed([name])
                    self._restart(fragment)

    def _compact(self) -> None:
        """Remove plan snapshots that nothing needs, now and then."""
        if self.snapshot.number < self._compacted + SNAPSHOTS_BETWEEN:
            return
        self._compacted = self.snapshot.number
        running = list(self.fragments.values())
        last = [self._last_plan_with(f.fragment) for f in running if f.fragment.id not in self.plan.fragments]
        oldest = oldest_under_way(running, last, self.exchange, self.state.path / "pending", self.snapshot.number)
        folders = [self.state.path / name for name in ("snapshots", "hosts")]
        remove_snapshots(folders, oldest, {fragment.begun for fragment in running}, HISTORY_BYTES)

    def mendable(self) -> bool:
        """Whether something that failed is tried again by itself: a source that may come, workers that were slow."""
        refused = any(fragment.refusal is not None for fragment in list(self.fragments.values()))
        return refused or bool(self._without_workers())

    def _without_workers(self) -> list[RunningFragment]:
        """The fragments that failed because their Python workers did not come up in time."""
        found = [(fragment, fragment.failure or "") for fragment in list(self.fragments.values())]
        return [fragment for fragment, reason in found if workers_were_late(reason)]

    def _check_spark(self) -> None:
        """Raise when Spark's process, if this engine has started it, has ended by itself."""
        process = getattr(self.spark.sparkContext._gateway, "proc", None)
        if self._own_spark and process is not None and process.poll() is not None:
            told = f"Spark's process has ended; its last words are in {self.log}; start again to go on"
            raise HeadgateError("SPARK_GONE", told)

    def _trim_log(self) -> None:
        """Keep what Spark prints from filling the disk; it appends, so the file may be cut under its hands."""
        if self._own_spark and self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            shutil.copyfile(self.log, self.log.with_name("spark.log.1"))
            os.truncate(self.log, 0)

    def failures(self) -> dict[str, str]:
        """Why fragments have failed, by fragment."""
        found = {name: fragment.failure for name, fragment in self.fragments.items()}
        return {name: reason for name, reason in found.items() if reason is not None}

    def wait_until_idle(self, *, despite_failures: bool = False) -> None:
        """Wait until all that sources have to give has reached the sinks; raises when a fragment fails.

        Sources that never run dry (rate, socket, Kafka under load, a replay that repeats) keep it waiting. With
        ``despite_failures`` it waits for those that have not failed.
        """
        while True:
            before = self._epochs()
            # One that was started again has yet to do what it failed to do.
            restarted = [
                fragment for fragment in self._sources_first() if not self._wait_for(fragment, despite_failures)
            ]
            going = [fragment for fragment in self._sources_first() if fragment.failure is None]
            if not restarted and before == self._epochs() and not any(fragment.has_more() for fragment in going):
                return
            time.sleep(0.01)

    def _sources_first(self) -> list[RunningFragment]:
        found = list(self.fragments.values())  # a copy: others may start and stop fragments meanwhile
        return sorted(found, key=lambda fragment: fragment.fragment.kind is not Kind.SOURCE)

    def _epochs(self) -> dict[str, int]:
        return {name: fragment.last.epoch for name, fragment in list(self.fragments.items())}

    def _wait_for(self, fragment: RunningFragment, despite_failures: bool) -> bool:
        """Wait until a fragment has read all there is; returns whether it did not have to be started again instead."""
        try:
            if fragment.query is not None:
                fragment.query.processAllAvailable()
        except PySparkException as error:
            reason = fragment.failure or str(error)
            if fragment in self._without_workers():
                with self._lock:
                    self._restart(fragment)
                return False
            if not despite_failures:
                raise HeadgateError("FRAGMENT_FAILED", f"fragment {fragment.fragment.id} failed: {reason}") from None
        return True

    def status(self) -> tuple[list[DataflowStatus], list[FragmentStatus]]:
        """How dataflows and fragments are doing."""
        with self._lock:
            running = list(self.fragments.values())
            flows = [
                dataflow_status(flow, self.snapshot, self.plan, running, self.outbox, self.dead_letters)
                for flow in self.snapshot.dataflows
            ]
            return flows, [fragment_status(fragment) for fragment in running]

    def stop(self) -> None:
        """Stop every fragment after the epoch under way, and let go of the state directory."""
        with self._lock:
            try:
                self._check_spark()
                self.aside.stop()
                for fragment in self.fragments.values():
                    fragment.end()
                for fragment in self.fragments.values():
                    fragment.stop()
                if self._own_spark:
                    self.spark.stop()
            except HeadgateError:
                pass  # there is nothing left to stop
            finally:
                self.fragments.clear()
                self.state.close()


def _remove(folder: Path) -> None:
    """Remove a fragment's folder. Without its description it is nobody's, however far the removal gets."""
    (folder / "fragment.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
