"""The rows of an epoch for which tasks raised, among what the epoch has staged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.epochs.commit import HOST_LETTERS, LETTERS, Files, Target
from headgate.runtime.isolation.quarantine import Quarantine
from headgate.runtime.isolation.reasons import Reasons
from headgate.store.entries import StagedRows
from headgate.store.files import sync_files
from headgate.tasks.row_errors import LETTER_TYPE

__all__ = ["FailedRows"]

Explain = Callable[[CompiledPlan, str, Path], None]
"""Starts to find out why a guarded task raises for the rows in a file."""


class FailedRows:
    """Sorts the failed rows of a fragment's epochs by task."""

    def __init__(self, fragment_id: str, quarantine: Quarantine, reasons: Reasons, explain: Explain) -> None:
        self._fragment_id = fragment_id
        self._quarantine = quarantine
        self._explain = explain
        self.reasons = reasons

    def sorted_by_task(
        self, files: Files, plans: Mapping[int, CompiledPlan], folder: Path
    ) -> tuple[Files, dict[int, set[str]]]:
        """The files, with the failed rows of a keyed host sorted by task; and the tasks that are to fail, by plan.

        Tasks that raised in a host have cost the others nothing, so they come back without a trial.
        """
        kept: Files = {}
        failed: dict[int, set[str]] = {}
        for target, staged in files.items():
            plan = plans[target.snapshot]
            if target.kind != HOST_LETTERS:
                kept[target] = staged
                if target.kind == LETTERS:
                    self._explain(plan, target.name, Path(staged[0].path))
                continue
            for task, letters in _by_task(plan.fragments[self._fragment_id].roots, staged).items():
                if plan.tasks[Signature(task)].on_error is OnError.FAIL:
                    self._quarantine.put(task, letters[-1]["error"], by_trial=False)
                    failed.setdefault(plan.number, set()).add(task)
                else:
                    file = folder / f"letters-{plan.number}-{task}.arrow"
                    kept[Target(LETTERS, task, plan.number)] = [_written(letters, file)]
        return kept, failed


def _by_task(roots: Sequence[str], staged: Sequence[StagedRows]) -> dict[str, list[dict[str, str]]]:
    letters: dict[str, list[dict[str, str]]] = {}
    for path, _ in staged:
        with pa.OSFile(path) as file:
            rows = pa.ipc.open_file(file).read_all().to_pylist()
        for row in rows:
            for task, error in zip(roots, json.loads(row["error"]), strict=True):
                if error is not None:
                    letters.setdefault(task, []).append({"record": row["record"], "error": error})
    return letters


def _written(letters: Sequence[Mapping[str, str]], path: Path) -> StagedRows:
    table = pa.Table.from_pylist(list(letters), schema=pa.schema(LETTER_TYPE))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    sync_files([str(path)])
    return StagedRows(str(path), table.num_rows)
