"""The engine: runs dataflows that change without a restart.

Every change makes the next plan snapshot: it is compiled and tried first, then made durable, and takes effect in each
fragment at its next epoch. Fragments that the plan needs and that do not run yet are started; those that it no longer
needs are stopped once they have read what was still on its way to them.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError, InputError, nearest
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature
from headgate.model.registry import Registry, default_registry
from headgate.model.task import Task
from headgate.runtime.exchange import FileExchange
from headgate.runtime.fragment import RunningFragment, Surroundings
from headgate.runtime.outbox import SinkOutbox
from headgate.runtime.plan import Kind, Plan, compile_plan
from headgate.runtime.schemas import Schemas
from headgate.runtime.session import open_session
from headgate.runtime.sinks import Memory
from headgate.runtime.snapshot import Snapshot, alternate_key
from headgate.runtime.state import StateDirectory, read_json, write_json
from headgate.sharing.deduplicate import deduplicate

__all__ = ["DataflowStatus", "Engine", "FragmentStatus"]


@dataclass(frozen=True, slots=True)
class FragmentStatus:
    """How a fragment is doing."""

    id: str
    kind: str
    tasks: int
    epoch: int
    snapshot: int
    rows_in: int
    rows_out: int
    batch_s: float
    behind: int
    failure: str | None


@dataclass(frozen=True, slots=True)
class DataflowStatus:
    """How a dataflow is doing: running, paused, or degraded with the reason."""

    name: str
    owner: str
    state: str
    reason: str
    tasks: int
    shared: int
    rows_out: int


class Engine:
    """Runs dataflows on one Spark; use it in a ``with`` statement."""

    def __init__(
        self,
        state: Path | str,
        *,
        spark: SparkSession | None = None,
        master: str = "local[*]",
        trigger_s: float = 0.5,
        registry: Registry | None = None,
    ) -> None:
        self.registry = registry if registry is not None else default_registry()
        self.state = StateDirectory(Path(state))
        try:
            self._own_spark = spark is None
            self.spark = spark if spark is not None else open_session(master)
            self.memory = Memory()
            self.exchange = FileExchange(self.state.path / "exchange")
            self.outbox = SinkOutbox(self.state.path / "pending", self.spark, self.memory, self._plan)
            self._lock = threading.RLock()
            self._plan_of = lru_cache(maxsize=64)(self._load_plan)
            self.snapshot = self._last_snapshot()
            self.plan = self._plan_of(self.snapshot.number)
            self.schemas = Schemas(self.spark)
            around = (self.spark, self.state, self.exchange, self.schemas, self._plan, lambda: self.plan, self.outbox)
            self._around = Surroundings(*around, trigger_s)
            self.fragments: dict[str, RunningFragment] = {}
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

    def submit(self, *dataflows: Dataflow) -> None:
        """Run more dataflows; all of them or, if one cannot be run, none."""
        with self._lock:
            names = {dataflow.name for dataflow in self.snapshot.dataflows}
            for dataflow in dataflows:
                if dataflow.name in names:
                    told = f"a dataflow '{dataflow.name}' is running already; withdraw it first, or give another name"
                    raise InputError("NAME_TAKEN", told)
                names.add(dataflow.name)
            added = tuple(deduplicate(dataflow).dataflow for dataflow in dataflows)
            self._publish(self.snapshot.next(dataflows=(*self.snapshot.dataflows, *added)))

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
        """Let a dataflow rest: what passes meanwhile does not reach its sinks."""
        with self._lock:
            found = self.snapshot.find(name)
            self._publish(self.snapshot.next(paused=self.snapshot.paused | {found.name}))

    def resume(self, name: str) -> None:
        """Let a paused dataflow go on."""
        with self._lock:
            found = self.snapshot.find(name)
            self._publish(self.snapshot.next(paused=self.snapshot.paused - {found.name}))

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
        self.schemas.check(plan)
        new = [fragment for fragment in plan.fragments.values() if fragment.id not in self.fragments]
        # Hosts must find the plan before the first row that carries its number.
        write_json(self.state.path / "hosts" / f"{snapshot.number}.json", plan.hosts())
        running = [RunningFragment(fragment, snapshot.number, self._around) for fragment in new]
        try:
            streams = [fragment.prepare(plan) for fragment in running]
        except BaseException:
            for fragment in running:
                shutil.rmtree(fragment.folder, ignore_errors=True)
            raise
        write_json(self.state.path / "snapshots" / f"{snapshot.number}.json", snapshot.as_dict())
        self.snapshot, self.plan = snapshot, plan
        # Readers first, so that nothing waits in a topic for its reader to come up.
        for fragment, stream in sorted(
            zip(running, streams, strict=True), key=lambda pair: pair[0].fragment.kind is Kind.SOURCE
        ):
            fragment.start(stream)
            self.fragments[fragment.fragment.id] = fragment
        self._retire()

    def _retire(self) -> None:
        """Stop fragments that the plan does not need, once nothing is on its way to them."""
        for fragment_id in [known for known in self.fragments if known not in self.plan.fragments]:
            fragment = self.fragments[fragment_id]
            drained = fragment.fragment.kind is Kind.SOURCE or self._is_drained(fragment)
            if drained or fragment.failure is not None:
                fragment.stop()
                del self.fragments[fragment_id]
                shutil.rmtree(fragment.folder, ignore_errors=True)
                for topic in fragment.fragment.reads:
                    shutil.rmtree(self.exchange.folder(topic), ignore_errors=True)

    def _is_drained(self, fragment: RunningFragment) -> bool:
        writers = [
            f for f in self.fragments.values() if any(t.reader == fragment.fragment.id for t in f.fragment.writes)
        ]
        alive = [f for f in writers if f.fragment.id not in self.plan.fragments and f is not fragment]
        return not alive and all(self.exchange.position(t) >= self.exchange.head(t) for t in fragment.fragment.reads)

    # plans

    def _plan(self, number: int) -> Plan:
        return self.plan if number == self.plan.number else self._plan_of(number)

    def _load_plan(self, number: int) -> Plan:
        stored = read_json(self.state.path / "snapshots" / f"{number}.json")
        snapshot = Snapshot() if stored is None else Snapshot.from_dict(stored, self.registry)
        return compile_plan(snapshot, self.registry)

    def _last_snapshot(self) -> Snapshot:
        numbers = [int(file.stem) for file in (self.state.path / "snapshots").glob("[0-9]*.json")]
        if not numbers:
            return Snapshot()
        stored = read_json(self.state.path / "snapshots" / f"{max(numbers)}.json")
        return Snapshot.from_dict(stored, self.registry)

    def _go_on(self) -> None:
        """Start what ran when the engine was last stopped, retired fragments that were not drained included."""
        self.schemas.check(self.plan)
        found = {fragment_id: (fragment, self.plan) for fragment_id, fragment in self.plan.fragments.items()}
        for folder in (self.state.path / "fragments").iterdir():
            begun = read_json(folder / "fragment.json")
            if folder.name not in found and begun is not None:
                plan = self._plan_of(begun["snapshot"])
                if folder.name in plan.fragments and plan.fragments[folder.name].kind is not Kind.SOURCE:
                    self.schemas.check(plan)
                    found[folder.name] = (plan.fragments[folder.name], plan)
        for fragment, plan in found.values():
            running = RunningFragment(fragment, plan.number, self._around)
            running.start(running.prepare(plan))
            self.fragments[fragment.id] = running

    # watching

    def housekeep(self) -> None:
        """Offer refused rows again, and stop what is no longer needed; to be called now and then."""
        with self._lock:
            self.outbox.retry()
            self._retire()

    def failures(self) -> dict[str, str]:
        """Why fragments have failed, by fragment."""
        found = {name: fragment.failure for name, fragment in self.fragments.items()}
        return {name: reason for name, reason in found.items() if reason is not None}

    def wait_until_idle(self) -> None:
        """Wait until all that sources have to give has reached the sinks; raises when a fragment fails.

        Sources that never run dry (rate, socket, Kafka under load) keep it waiting.
        """
        while True:
            before = self._epochs()
            for fragment in sorted(self.fragments.values(), key=lambda f: f.fragment.kind is not Kind.SOURCE):
                self._wait_for(fragment)
            if before == self._epochs() and not any(fragment.behind() for fragment in self.fragments.values()):
                return

    def _epochs(self) -> dict[str, int]:
        return {name: fragment.last.epoch for name, fragment in self.fragments.items()}

    def _wait_for(self, fragment: RunningFragment) -> None:
        try:
            if fragment.query is not None:
                fragment.query.processAllAvailable()
        except PySparkException as error:
            reason = fragment.failure or str(error)
            raise HeadgateError("FRAGMENT_FAILED", f"fragment {fragment.fragment.id} failed: {reason}") from None

    def status(self) -> tuple[list[DataflowStatus], list[FragmentStatus]]:
        """How dataflows and fragments are doing."""
        with self._lock:
            fragments = [_fragment_status(fragment) for fragment in self.fragments.values()]
            dataflows = [
                self._dataflow_status(dataflow.name, str(dataflow.owner)) for dataflow in self.snapshot.dataflows
            ]
        return dataflows, fragments

    def _dataflow_status(self, name: DataflowName, owner: str) -> DataflowStatus:
        mine = [task for task in self.plan.tasks.values() if name in task.users]
        signatures = {task.signature for task in mine}
        failed = self.failures()
        reasons = [self.outbox.refusals[signature] for signature in signatures if signature in self.outbox.refusals]
        reasons += [
            reason
            for fragment_id, reason in failed.items()
            if signatures & {*self.fragments[fragment_id].fragment.tasks, *self.fragments[fragment_id].fragment.roots}
        ]
        state = "paused" if name in self.snapshot.paused else "degraded" if reasons else "running"
        rows = sum(self.outbox.delivered.get(signature, 0) for signature in signatures)
        shared = sum(len(task.users) > 1 for task in mine)
        return DataflowStatus(name, owner, state, "; ".join(reasons), len(mine), shared, rows)

    def stop(self) -> None:
        """Stop every fragment after the epoch under way, and let go of the state directory."""
        with self._lock:
            for fragment in self.fragments.values():
                fragment.stop()
            self.fragments.clear()
            if self._own_spark:
                self.spark.stop()
            self.state.close()


@contextmanager
def running(state: Path | str, dataflows: Iterable[Dataflow], **options: Any) -> Iterator[Engine]:
    """An engine that runs some dataflows and is stopped afterwards."""
    with Engine(state, **options) as engine:
        engine.submit(*dataflows)
        yield engine


def _fragment_status(fragment: RunningFragment) -> FragmentStatus:
    progress = fragment.query.lastProgress if fragment.query is not None else None
    last = fragment.last
    return FragmentStatus(
        fragment.fragment.id,
        fragment.fragment.kind.value,
        len(fragment.fragment.tasks),
        last.epoch,
        last.snapshot,
        int(progress["numInputRows"]) if progress else 0,
        last.rows_out,
        last.seconds,
        fragment.behind(),
        fragment.failure,
    )
