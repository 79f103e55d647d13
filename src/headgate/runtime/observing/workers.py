"""Observations of executors: cores, utilisation and speed, and of the machines that they are on."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from headgate.machines.provider import AcquiredMachine
from headgate.model.cluster.machine_observations import MachineObservations
from headgate.runtime.observing.machines import ExecutorLoad, machine_columns
from headgate.runtime.observing.speed import calibrated, probe
from headgate.runtime.spark_internals.executors import Executors
from headgate.runtime.spark_internals.failures import JOB_FAILURES

__all__ = ["Workers"]

POOL = "probe"
EVERY_S = 120.0
"""From one probe to the next: at some 60 milliseconds each, it takes 0.05 % of a core."""

NEWCOMER_S = 5.0
"""How soon an executor without a speed is probed."""

PATIENCE_S = 30.0
"""A probe that gets no core on a busy executor in that time is cancelled."""

REMEMBERED = 3


class Workers:
    """Observes the executors of a Spark; to be asked once per interval.

    ``folder`` keeps what the speed probe took on the reference core; ``machines`` returns
    the provider's machines, those that are gone too; a local Spark without one costs ``price_per_h``. With
    ``probe_every_s`` infinite, speeds are probed only on demand.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        machines: Callable[[], Sequence[AcquiredMachine]] = tuple,
        price_per_h: Decimal | None = None,
        *,
        probe_every_s: float = EVERY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.executors = Executors(spark)
        self._reference = folder / "reference_core.json"
        self._machines = machines
        self._price_per_h = price_per_h if self.executors.local else None
        self._probe_every_s = probe_every_s
        self._clock = clock
        self._spent: dict[str, float] = {}
        """Seconds that tasks, running ones included, had spent on each executor at the last observation."""

        self._speeds: dict[str, deque[float]] = {}
        self._probing: InheritableThread | None = None
        self._probed = float("-inf")

    def observe(self, seconds: float, spent: dict[str, float] | None = None) -> MachineObservations:
        """What machines did in the interval of so many seconds that ends now.

        One who looks at other times than others do brings his own account of what tasks had ``spent``.
        """
        before = self._spent if spent is None else spent
        now = self._clock()
        there = self.executors.list()
        running = self.executors.running_s(now)
        until_now = {executor.id: executor.task_s + running.get(executor.id, 0.0) for executor in there}
        self._probe_if_due({executor.id for executor in there}, now)
        loads = []
        for executor in there:
            used = until_now[executor.id] - before.get(executor.id, 0.0)
            busy = _share(used, executor.cores * seconds)
            loads.append(ExecutorLoad(executor.id, executor.host, executor.cores, busy, self.speed(executor.id)))
        before.clear()
        before.update(until_now)
        return machine_columns(loads, self._machines(), now - seconds, self._price_per_h)

    def speed(self, executor: str) -> float | None:
        """One of its cores relative to the reference core, the median of the last probes."""
        last = self._speeds.get(executor)
        return statistics.median(last) if last else None

    def probe(self) -> None:
        """Probe all executors and wait; busy ones may be left out."""
        self._start_probe(self._clock())
        self.wait_until_probed()

    def wait_until_probed(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait for a running probe."""
        if self._probing is not None:
            self._probing.join(timeout_s)

    def _probe_if_due(self, there: set[str], now: float) -> None:
        self._speeds = {executor: last for executor, last in self._speeds.items() if executor in there}
        if math.isinf(self._probe_every_s):
            return
        if self._probing is not None and self._probing.is_alive():
            if now > self._probed + PATIENCE_S:
                self.executors.context.cancelJobGroup(POOL)
            return
        due_s = self._probe_every_s if there <= self._speeds.keys() else min(NEWCOMER_S, self._probe_every_s)
        if there and now >= self._probed + due_s:
            self._start_probe(now)

    def _start_probe(self, now: float) -> None:
        self._probed = now
        self._probing = InheritableThread(target=self._probe, name="headgate-probe", daemon=True)
        self._probing.start()

    def _probe(self) -> None:
        context = self.executors.context
        context.setLocalProperty("spark.scheduler.pool", POOL)
        context.setJobGroup(POOL, "how fast cores are")
        # Cancelled, or its executor is gone: the next probe will do.
        with suppress(*JOB_FAILURES):
            reference_s = calibrated(self._reference)
            for executor, took_s in self.executors.on_each(probe).items():
                self._speeds.setdefault(executor, deque(maxlen=REMEMBERED)).append(reference_s / took_s)


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
