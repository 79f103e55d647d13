"""The stage of a fragment: tasks that are done where outputs are staged, in the same Python worker and the same pass.

Rows that a task makes in a Python worker would go back to Spark's process, only to be handed to the next worker, and in
the end to the one that stages outputs; each such way costs as much as most tasks do. So where all that is behind a task
can be done on Arrow batches, rows do not go back: they run down from task to task until they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
from pyspark.sql.types import StructType

from headgate.errors import InputError
from headgate.model.names import Signature
from headgate.model.task_type import Role
from headgate.model.work import ArrowForm, BatchFunction, BatchTarget, BatchWork, FrameWork, KeyedWork, RowExpression
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Fragment, Kind
from headgate.runtime.io.sinks import form_of
from headgate.runtime.keyed.host import ERRORS, RESULTS, TEXTS
from headgate.runtime.keyed.packing import opened
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.tasks.batch import run_batch
from headgate.tasks.keyed_base import KeyedConfig
from headgate.tasks.keyed_results import has_result_form, result_form
from headgate.tasks.row_errors import Guard, TimeBudget, letter_array

__all__ = [
    "ArrowStage",
    "SchemaOf",
    "StageOperator",
    "StageOutput",
    "StageRunner",
    "StagedTasks",
    "Times",
    "operator_of",
    "staged_tasks",
]

Times = np.ndarray[Any, np.dtype[np.int64]]
SchemaOf = Callable[[CompiledTask], StructType]

PLAIN = ("string", "bigint", "int", "smallint", "tinyint", "boolean")
"""Types that are written to JSON here as Spark writes them."""


@dataclass(frozen=True, slots=True)
class StageOutput:
    """Rows leave, as an output, with these columns."""

    output: int
    form: str
    names: tuple[str, ...]


@dataclass(slots=True)
class StageOperator:
    """A task, and who gets what it makes."""

    guard: Guard
    make: Callable[[], BatchFunction]
    schema: pa.Schema
    counted: int
    """Under this number its rows in are counted, and under the one below it its rows out."""

    letters: int | None
    after: list[StageOperator | StageOutput]


@dataclass(frozen=True, slots=True)
class ArrowStage:
    """Where the rows of an output go on; those of a keyed host come in packs, with its letters among them."""

    first: list[StageOperator | StageOutput]
    packs: pa.Schema | None = None
    letters: int | None = None


@dataclass(frozen=True, slots=True)
class StagedTasks:
    """The tasks of a fragment that are done in its stage; with ``packs``, all behind its keyed host."""

    tasks: frozenset[Signature] = frozenset()
    packs: bool = False


class StageRunner:
    """Lets batches run down stages, in a worker; ``write(output, rows, times)`` takes what comes out."""

    def __init__(self, write: Callable[[int, Any, Times], None]) -> None:
        self._write = write
        self._at_work: dict[int, tuple[BatchFunction, TimeBudget]] = {}
        self.counts: Counter[int] = Counter()

    def enter(self, stage: ArrowStage, rows: Any, times: Times, ingested: int) -> None:
        """Rows of an output: structs, or packs of a host's."""
        if stage.packs is None:
            for node in stage.first:
                self._down(node, pa.RecordBatch.from_struct_array(rows), times)
            return
        for pack in rows.field(0):
            batch = opened(pack.as_buffer(), stage.packs)
            times = batch.column("__ingest").fill_null(ingested).to_numpy(zero_copy_only=False)
            errors = batch.column(ERRORS)
            if errors.null_count < len(errors) and stage.letters is not None:
                failed = [(at, orjson.dumps(raised).decode()) for at, raised in enumerate(errors.to_pylist()) if raised]
                own = batch.select([name for name in batch.schema.names if not name.startswith("__")])
                self._write(stage.letters, letter_array(own, failed), times[[at for at, _ in failed]])
            for node in stage.first:
                self._down(node, batch, times)

    def _down(self, node: StageOperator | StageOutput, batch: pa.RecordBatch, times: Times) -> None:
        if isinstance(node, StageOutput):
            if len(batch):
                self._write(node.output, formed(batch.select(list(node.names)), node.form), times)
            return
        if id(node) not in self._at_work:
            self._at_work[id(node)] = (node.make(), TimeBudget(node.guard.budget_s))
        function, budget = self._at_work[id(node)]
        result, rows = run_batch(function, batch, node.schema, node.guard, budget)
        self.counts[node.counted] += len(batch)
        self.counts[node.counted - 1] += len(rows)
        if result.failed and node.letters is not None:
            places = np.array(sorted(at for at, _ in result.failed))
            self._write(node.letters, letter_array(batch, result.failed), times[places])
        here = times if result.origin is None else times[result.origin]
        if len(rows):
            for after in node.after:
                self._down(after, rows, here)


def formed(batch: pa.RecordBatch, form: str) -> Any:
    """Rows as the stager writes them: as structs, or as texts."""
    if form != "json":
        return batch.to_struct_array()
    names = batch.schema.names
    columns = [column.to_pylist() for column in batch.columns]
    if len(names) == 1:
        (name,) = names
        return pa.array([orjson.dumps({} if v is None else {name: v}).decode() for v in columns[0]], pa.string())
    rows = (zip(names, row, strict=True) for row in zip(*columns, strict=True))
    return pa.array([orjson.dumps({n: v for n, v in row if v is not None}).decode() for row in rows], pa.string())


def _arrow_form(task: CompiledTask) -> ArrowForm | None:
    return task.work.arrow if isinstance(task.work, RowExpression | FrameWork) else None


def operator_of(
    task: CompiledTask, guard: Guard, schema: StructType, counted: int, letters: int | None, slot: int
) -> StageOperator:
    """A task as a operator; ``slot`` is its place among the tasks of a keyed host, if it is one of them."""
    options, columns = task.options, arrow_schema(schema)
    make: Callable[[], BatchFunction]
    if isinstance(task.work, KeyedWork):
        make = partial(result_form, cast(KeyedConfig, options), slot, (RESULTS, TEXTS, ERRORS))
    elif isinstance(task.work, BatchWork):
        task.work.check(options)
        make = partial(task.work.start, options, BatchTarget(columns, guard.letters))
    else:
        form = _arrow_form(task)
        assert form is not None
        make = partial(form.start, options)
    return StageOperator(guard, make, columns, counted, letters, [])


def staged_tasks(
    plan: CompiledPlan, fragment: Fragment, runs: Callable[[str], bool], guarded: frozenset[str], schema_of: SchemaOf
) -> StagedTasks:
    """What of a fragment can be done in its stage and costs less there."""
    if fragment.kind is Kind.FEEDBACK:
        return StagedTasks()
    readers = _readers(plan, fragment, runs)
    order = [plan.tasks[s] for s in fragment.tasks if s in plan.tasks and runs(s)]
    able: set[Signature] = set()

    def all_able(task: CompiledTask) -> bool:
        """Whether all who read a task can do so in the Arrow stage."""
        here = readers.get(task.signature, [])
        return all(
            where is None
            and (reader is None or reader.signature in able or (_is_sink(reader) and _can_end(reader, schema_of(task))))
            for reader, where in here
        )

    for task in reversed(order):
        is_plain = len(task.ports.outputs) == 1 and task.partitions is None and task.signature not in guarded
        is_read = bool(readers.get(task.signature)) and all_able(task)
        if is_plain and not _is_sink(task) and is_read and _is_able(plan, task, schema_of):
            able.add(task.signature)
    roots = [plan.tasks[s] for s in fragment.roots if s in plan.tasks] if fragment.kind is Kind.KEYED else []
    packs = bool(roots) and all(
        isinstance(root.work, KeyedWork) and has_result_form(cast(KeyedConfig, root.options)) and all_able(root)
        for root in roots
    )
    staged: set[Signature] = set()
    before = {root.signature for root in roots} if packs else set()
    for task in order:
        if task.signature in able and (
            isinstance(task.work, BatchWork) or any(feed.source in staged | before for feed in task.feeds)
        ):
            staged.add(task.signature)
    return StagedTasks(frozenset(staged), packs)


def _readers(
    plan: CompiledPlan, fragment: Fragment, runs: Callable[[str], bool]
) -> dict[Signature, list[tuple[CompiledTask | None, str | None]]]:
    """Who reads each task's rows in a fragment, and under which condition; ``None`` is a topic."""
    readers: dict[Signature, list[tuple[CompiledTask | None, str | None]]] = {}
    for signature in fragment.tasks:
        task = plan.tasks.get(signature)
        if task is not None and runs(signature):
            for feed in task.feeds:
                readers.setdefault(feed.source, []).append((task, "fed back" if feed.feedback else feed.where))
    for topic in fragment.writes:
        if runs(topic.id):
            for feed in topic.feeds:
                # What a window or a join needs of the rows is made by Spark.
                where = feed.where if topic.chained is None else feed.where or "true"
                readers.setdefault(feed.source, []).append((None, where))
    return readers


def _is_sink(task: CompiledTask) -> bool:
    return task.role is Role.SINK


def _can_end(sink: CompiledTask, schema: StructType) -> bool:
    form = form_of(sink)
    plain = all(field.dataType.simpleString() in PLAIN for field in schema.fields)
    return form in ("parquet", "arrow", "text") or (form == "json" and plain)


def _is_able(plan: CompiledPlan, task: CompiledTask, schema_of: SchemaOf) -> bool:
    if isinstance(task.work, BatchWork):
        return len(task.ports.inputs) == 1
    form = _arrow_form(task)
    if form is None:
        return False
    columns: Mapping[str, str] = {
        field.name.casefold(): field.dataType.simpleString()
        for feed in task.feeds
        for field in schema_of(plan.tasks[feed.source]).fields
    }
    try:
        return form.fits(task.options, columns)
    except InputError:  # a file that is gone: running the task says so
        return False
