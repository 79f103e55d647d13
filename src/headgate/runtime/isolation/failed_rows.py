"""The letters of an epoch: rows for which tasks raised, among what the epoch has staged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.model.work import RowExpression
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Fragment
from headgate.runtime.compile.schemas import ddl
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.isolation.dead_letters import Reasons
from headgate.runtime.isolation.quarantine import Quarantine
from headgate.runtime.spark_internals.failures import JOB_FAILURES, reason_of
from headgate.tasks.row_errors import LETTER_TYPE
from headgate.tasks.sql_text import quoted

__all__ = ["HOST_LETTERS", "FailedRows"]

HOST_LETTERS = "host letters"
"""What a keyed host puts out for rows for which some of its tasks raised: the errors of all of them together."""

ASKED = 3
"""Rows that are looked at to learn why a task raises."""

Files = dict[tuple[str, str, int], list[tuple[str, int]]]
"""Staged files and their rows, by kind and name of the target and the number of the plan."""


class FailedRows:
    """Sorts the letters of a fragment's epochs."""

    def __init__(self, fragment: Fragment, context: FragmentContext, quarantine: Quarantine) -> None:
        self._fragment = fragment
        self._context = context
        self._quarantine = quarantine
        self.reasons = Reasons()

    def opened(
        self, files: Files, plans: Mapping[int, CompiledPlan], folder: Path
    ) -> tuple[Files, dict[int, set[str]]]:
        """The files with a host's letters sorted by task, and the tasks that are to fail, by plan.

        Tasks that raised in a host have done no harm: they rest without a trial.
        """
        found: Files = {}
        culprits: dict[int, set[str]] = {}
        for (kind, name, number), staged in files.items():
            if kind != HOST_LETTERS:
                found[kind, name, number] = staged
                if kind == "letters":
                    self._ask(plans[number], name, staged)
                continue
            for task, letters in _by_task(plans[number].fragments[self._fragment.id].roots, staged).items():
                if plans[number].tasks[Signature(task)].on_error is OnError.FAIL:
                    self._quarantine.put(task, letters[-1]["error"], by_trial=False)
                    culprits.setdefault(number, set()).add(task)
                else:
                    found["letters", task, number] = [_written(letters, folder / f"letters-{number}-{task}.arrow")]
        return found, culprits

    def _ask(self, plan: CompiledPlan, name: str, staged: Sequence[tuple[str, int]]) -> None:
        """Learn, beside the epochs, why a guarded task raises for a few of these rows."""
        task = plan.tasks[Signature(name)]
        expression = task.work
        if not isinstance(expression, RowExpression) or not self.reasons.ask_now(name):
            return
        with pa.OSFile(staged[0][0]) as file:
            records = pa.ipc.open_file(file).read_all().column("record").slice(0, ASKED).to_pylist()
        schema = ddl(self._context.schemas.of(plan, plan.tasks[task.feeds[0].source]))
        session = self._context.spark

        def work(rows: DataFrame) -> None:
            del rows
            for record in records:
                parsed = F.from_json(F.lit(record), schema)
                told = _raised(task, expression, session.range(1).select(parsed.alias("row")).select("row.*"))
                if told is not None:
                    self.reasons.add(name, told)

        self._context.background.offer(session.range(0), work)


def _raised(task: CompiledTask, work: RowExpression, row: DataFrame) -> str | None:
    """What a row-wise task raises for a row."""
    does = work.sql(task.options, row.columns)
    try:
        for feed in task.feeds:
            if feed.where is not None:
                row.where(feed.where).collect()
        if does.condition is not None:
            row = row.where(does.condition)
        columns = [f"{does.row} as row"] if does.row else [f"{e} as {quoted(n)}" for n, e in does.columns or ()]
        row.selectExpr(*(columns or ["*"])).collect()
    except JOB_FAILURES as error:
        return reason_of(str(error))
    return None


def _by_task(roots: Sequence[str], staged: Sequence[tuple[str, int]]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for path, _ in staged:
        with pa.OSFile(path) as file:
            rows = pa.ipc.open_file(file).read_all().to_pylist()
        for row in rows:
            for task, error in zip(roots, json.loads(row["error"]), strict=True):
                if error is not None:
                    found.setdefault(task, []).append({"record": row["record"], "error": error})
    return found


def _written(letters: Sequence[Mapping[str, str]], path: Path) -> tuple[str, int]:
    table = pa.Table.from_pylist(list(letters), schema=pa.schema(LETTER_TYPE))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return str(path), table.num_rows
