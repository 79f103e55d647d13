"""Why guarded tasks raise: a guard only notices that they do, so a few of the rows are tried again, one by one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.model.names import Signature
from headgate.model.work import RowExpression
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask
from headgate.runtime.compile.schemas import Schemas, ddl
from headgate.runtime.spark_internals.failures import JOB_FAILURES, reason_of
from headgate.tasks.frames import run_frames

__all__ = ["ReasonFinder", "Reasons"]

MOST_REASONS = 5
"""Different reasons that are kept of a task."""

TRIED_ROWS = 3
"""Rows that are tried again to learn why a task raises."""


class Reasons:
    """Known reasons why tasks raise, for failed rows that carry none themselves."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, every_s: float = 2.0) -> None:
        self._known: dict[str, Counter[str]] = {}
        self._asked: dict[str, float] = {}
        self._clock = clock
        self._every_s = every_s

    def add(self, task: str, reason: str) -> None:
        known = self._known.setdefault(task, Counter())
        if reason in known or len(known) < MOST_REASONS:
            known[reason] += 1

    def of(self, task: str) -> list[str]:
        return list(self._known.get(task, ()))

    def ask_now(self, task: str) -> bool:
        """Whether it is time to try rows of a task again."""
        now = self._clock()
        if now - self._asked.get(task, -self._every_s) < self._every_s:
            return False
        self._asked[task] = now
        return True


class ReasonFinder:
    """Tries failed rows again in the background."""

    def __init__(
        self,
        spark: SparkSession,
        schemas: Schemas,
        offer: Callable[[DataFrame, Callable[[DataFrame], None]], bool],
        reasons: Reasons,
    ) -> None:
        self._spark = spark
        self._schemas = schemas
        self._offer = offer
        self._reasons = reasons

    def explain(self, plan: CompiledPlan, name: str, letters: Path) -> None:
        """Find out why a row-wise task raises for a few of the rows in a file."""
        task = plan.tasks[Signature(name)]
        if not isinstance(task.work, RowExpression) or not self._reasons.ask_now(name):
            return
        with pa.OSFile(str(letters)) as file:
            records = pa.ipc.open_file(file).read_all().column("record").slice(0, TRIED_ROWS).to_pylist()
        schema = ddl(self._schemas.of(plan, plan.tasks[task.feeds[0].source]))

        def work(_rows: DataFrame) -> None:
            for record in records:
                reason = _raised(task, self._row(record, schema))
                if reason is not None:
                    self._reasons.add(name, reason)

        self._offer(self._spark.range(0), work)

    def _row(self, record: Any, schema: str) -> DataFrame:
        parsed = F.from_json(F.lit(record), schema)
        return self._spark.range(1).select(parsed.alias("row")).select("row.*")


def _raised(task: CompiledTask, row: DataFrame) -> str | None:
    """What a row-wise task raises for a row."""
    try:
        for feed in task.feeds:
            if feed.where is not None:
                row.where(feed.where).collect()
        run_frames(task.work, task.options, {"in": row}).collect()
    except JOB_FAILURES as error:
        return reason_of(str(error))
    return None
