"""Work in the background: profiling of tasks, and trials of tasks that have raised.

An epoch hands over rows that it has persisted and does not wait.
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
"""The scheduler pool of this work: one pool among those of the fragments. It has no minimum share."""

WAITING = 4
"""The length of the queue: the rows of waiting jobs fill memory."""


class BackgroundJobs:
    """Runs jobs one after the other, in a thread of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._work: deque[tuple[DataFrame, Callable[[DataFrame], None]]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self.ended = threading.Event()
        self._thread: InheritableThread | None = None
        self.failures: deque[str] = deque(maxlen=20)
        """What jobs raised, the latest last."""

    def offer(self, rows: DataFrame, work: Callable[[DataFrame], None]) -> bool:
        """Queue a job with its persisted rows, which are unpersisted afterwards; returns whether there was room.

        If not, the caller must unpersist the rows.
        """
        with self._changed:
            if self.ended.is_set() or len(self._work) >= WAITING:
                return False
            if self._thread is None:
                self._thread = InheritableThread(target=self._run, name="headgate-background", daemon=True)
                self._thread.start()
            self._work.append((rows, work))
            self._changed.notify_all()
        return True

    def wait_until_idle(self, timeout_s: float = 60.0) -> bool:
        """Wait until all queued jobs are done; returns whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._work and not self._busy, timeout_s)

    def stop(self) -> None:
        """Take no more jobs, drop those in the queue, and wait for the running one."""
        with self._changed:
            self.ended.set()
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
                self._changed.wait_for(lambda: self._work or self.ended.is_set())
                if self.ended.is_set():
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
