"""Work beside the epochs: tasks measured by themselves, tasks that are tried before they are let in again.

An epoch hands over rows that it has kept and goes on; nobody waits for what is done here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.spark_internals.internals import internals

__all__ = ["POOL", "BackgroundJobs"]

POOL = "background"
"""Spark's pool for this work: one pool among those of the fragments, however many pieces of work there are."""

WAITING = 4
"""Pieces of work that may wait; more are not taken, since the rows that they hold fill memory."""


class BackgroundJobs:
    """Does pieces of work one after the other, in a thread of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._work: deque[tuple[DataFrame, Callable[[DataFrame], None]]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._ended = False
        self._thread: InheritableThread | None = None
        self.failures: deque[str] = deque(maxlen=20)
        """What pieces of work raised, the latest last."""

    def offer(self, rows: DataFrame, work: Callable[[DataFrame], None]) -> bool:
        """Take rows that are persisted and something to do with them; they are unpersisted after it.

        Returns whether there was room; if not, nothing is taken, and the rows are the caller's still.
        """
        with self._changed:
            if self._ended or len(self._work) >= WAITING:
                return False
            if self._thread is None:
                self._thread = InheritableThread(target=self._run, name="headgate-background", daemon=True)
                self._thread.start()
            self._work.append((rows, work))
            self._changed.notify_all()
        return True

    def wait_until_idle(self, timeout_s: float = 60.0) -> bool:
        """Wait until all that was taken is done; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._work and not self._busy, timeout_s)

    def stop(self) -> None:
        """Take no more, drop what waits, and wait for what is under way."""
        with self._changed:
            self._ended = True
            self._work.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        internals(self._spark).scheduler_pool(POOL, minimum=0)
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._work or self._ended)
                if self._ended:
                    return
                rows, work = self._work.popleft()
                self._busy = True
            try:
                work(rows)
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}"[:400])
            finally:
                self._release(rows)

    def _release(self, rows: DataFrame) -> None:
        try:
            rows.unpersist()
        except Exception as error:  # Spark has been stopped meanwhile
            self.failures.append(f"{type(error).__name__}: {error}"[:400])
