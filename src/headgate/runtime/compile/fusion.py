"""Fusing stateless tasks into one Spark plan.

The row-wise tasks below a frame become columns of it: each task is a struct column that holds the task's row, or null
where the task passed none. Tasks of one depth are one projection, so a micro-batch goes once through all tasks of all
dataflows, shared prefixes are computed once without being stored, and all outputs come out of one Spark job. Where
there is a single output, its tasks become ordinary filters and projections, as one would write them by hand.

Tasks that make several rows of one, take several streams, or are user-defined start a new frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import cast

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.errors import InputError
from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.model.work import BatchWork, RowExpression, RowWise
from headgate.runtime.compile.arrow_stage import (
    ArrowStage,
    SchemaOf,
    StagedTasks,
    StageOperator,
    StageOutput,
    operator_of,
)
from headgate.runtime.compile.branching import branching, leading_out, starts_frame
from headgate.runtime.compile.fused_frame import (
    FusedFrame,
    Output,
    Place,
    TaskRows,
    counted_at,
    repartitioned,
    union,
    visible,
)
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Feed, Fragment
from headgate.runtime.epochs.staging import SEEN, pack
from headgate.runtime.exchange.files import INGEST
from headgate.runtime.isolation.sql_guard import AS_JSON, GuardSettings
from headgate.runtime.keyed.host import ERRORS, RESULTS, TEXTS
from headgate.runtime.keyed.packing import PACK
from headgate.runtime.observing.counting import Metrics, RowCounts, Side, values
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.tasks.frames import run_frames
from headgate.tasks.keyed_base import KeyedConfig
from headgate.tasks.keyed_results import row_with_result
from headgate.tasks.row_errors import LETTER, Guard, TaskRaised
from headgate.tasks.sql_text import quoted

__all__ = ["Fusion"]

NOTHING_STAGED = StagedTasks()

LETTERS = RowWise(
    ("record", "error"),
    columns=(("record", f"to_json(whole, {AS_JSON})"), ("error", "cast(null as string)")),
)
"""What a guard makes of the rows for which a task raised."""


class Fusion:
    """Builds the DataFrame of one epoch of a fragment."""

    def __init__(
        self,
        plan: CompiledPlan,
        fragment: Fragment,
        first_output: int,
        guards: GuardSettings,
        *,
        counting: bool = False,
        stages: StagedTasks = NOTHING_STAGED,
        schema_of: SchemaOf | None = None,
    ) -> None:
        """``stages`` are tasks whose work is left to the stager (:mod:`headgate.runtime.compile.arrow_stage`)."""
        self.plan = plan
        self.fragment = fragment
        self.first_output = first_output
        self.guards = guards
        self.counting = counting
        self.outputs: list[Output] = []
        self.stored: list[DataFrame] = []
        """Frames kept for the batch because several others start from them; to be unpersisted after it."""

        self._frames: list[FusedFrame] = []
        self._places: list[tuple[Signature, Side, FusedFrame, Place]] = []
        self._rows: dict[tuple[str, str], list[TaskRows]] = {}
        self._read: set[Signature] = set()
        """The tasks whose rows leave."""

        self.is_steady = True
        """Whether the same tasks over other rows are the same frame: not where a task builds a frame of its own."""

        self._made: list[tuple[Callable[[Sequence[str]], RowWise], tuple[str, ...], RowWise]] = []
        """What makes the expressions of its tasks, for which columns, and what it made."""

        self.stages: dict[int, ArrowStage] = {}
        """By output: where its rows go on when they are staged."""

        self._staged = stages
        self._schema_of = schema_of
        self._operators: dict[Signature, StageOperator] = {}
        self._branching, self._before_frames = branching(plan, fragment, stages.tasks)

    def source(self, signature: str, frame: DataFrame) -> None:
        """The rows of a source, or of the only task of a host of chains."""
        rows = self._new(frame, visible(frame), (signature, "out") in self._branching)
        self._rows[signature, "out"] = [rows]
        self._count(Signature(signature), "out", rows.frame)

    def chained(self, tasks: Sequence[tuple[str, Sequence[str], RowWise | None]], frame: DataFrame) -> None:
        """The rows of a host of chains, a struct column for each task: its columns, and what its rows are of those."""
        root = self._new(frame, visible(frame))
        for signature, names, after in tasks:
            columns = tuple((name, f"{quoted(signature)}.{quoted(name)}") for name in names)
            own = RowWise(tuple(names), f"{quoted(signature)} is not null", columns)
            column = root.frame.add("r0", None, own)
            if after is not None:
                own, column = after, root.frame.add(column, None, after)
            self._rows[signature, "out"] = [TaskRows(root.frame, column, own.names)]

    def proxy(self, task: CompiledTask, frame: DataFrame) -> None:
        """The rows of a task that another fragment runs."""
        names = [name for name in frame.columns if not name.startswith("__")]
        ports = [(task.signature, port.name) for port in task.ports.outputs]
        rows = self._new(frame.select(*map(quoted, names)), names, any(port in self._branching for port in ports))
        self._rows |= {port: [rows] for port in ports}

    def hosted(self, tasks: Sequence[CompiledTask], frame: DataFrame) -> None:
        """The rows of a keyed host: for each hosted task the row with its result, or none if it lets none pass."""
        names = visible(frame)
        # A stateful operator must not run twice in an epoch.
        root = self._new(frame, names, any(starts_frame(self.plan.tasks[task]) for task in self.fragment.tasks))
        for slot, task in enumerate(tasks):
            does = _with_result(task, slot, names)
            column = root.frame.add("r0", None, does)
            self._count(task.signature, "in", root.frame)
            self._count(task.signature, "out", root.frame, column)
            self._rows[task.signature, "out"] = [TaskRows(root.frame, column, does.names)]
        record = ", ".join(map(quoted, names))
        errors = (("record", f"to_json(struct({record}))"), ("error", f"to_json({ERRORS})"))
        column = root.frame.add("r0", f"{ERRORS} is not null", RowWise(("record", "error"), columns=errors))
        self._leave(root.frame, column, Output(self.fragment.id, "arrow"))

    def hosted_in_stage(self, tasks: Sequence[CompiledTask], packs: DataFrame, columns: StructType) -> None:
        """The packs of a keyed host, to be opened where outputs are staged; ``columns`` are those of its rows."""
        root = self._new(packs.select(PACK), [PACK])
        number = self._leave(root.frame, "r0", Output(self.fragment.id, "stage"))
        letters = self._reserve(Output(self.fragment.id, "arrow"))
        operators: list[StageOperator | StageOutput] = [self._operator(task, slot) for slot, task in enumerate(tasks)]
        self.stages[number] = ArrowStage(operators, arrow_schema(columns), letters)

    def _operator(self, task: CompiledTask, slot: int = 0) -> StageOperator:
        """A task of the Arrow stage, to be joined to what reads it as that comes by."""
        assert self._schema_of is not None
        is_arrow = isinstance(task.work, BatchWork)
        letters = is_arrow and task.on_error is not OnError.FAIL
        budget_s = self.guards.budget_s if task.time_budget_s is None else task.time_budget_s
        guard = Guard(task.signature, letters, budget_s if is_arrow else None)
        counted = -2 * (self.first_output * 1_000 + len(self._operators)) - 3
        number = self._reserve(Output(task.signature, "arrow")) if letters else None
        operator = operator_of(task, guard, self._schema_of(task), counted, number, slot)
        self._operators[task.signature] = operator
        return operator

    def _run_in_stage(self, task: CompiledTask) -> None:
        operator = self._operator(task)
        for feed in task.feeds:
            if feed.source in self._operators:
                self._operators[feed.source].after.append(operator)
                continue
            for rows in self._rows.get((feed.source, feed.source_port), ()):
                column = (
                    rows.column if feed.where is None else rows.frame.add(rows.column, feed.where, RowWise(rows.names))
                )
                self.stages[self._leave(rows.frame, column, Output(task.signature, "stage"))] = ArrowStage([operator])

    def feedback(self, task: CompiledTask, frame: DataFrame) -> None:
        """Rows that come back to a task: it treats them as it treats others."""
        names = visible(frame)
        carried = [INGEST] if INGEST in frame.columns else []
        root = self._new(frame.select(*map(quoted, [*names, *carried])), names)
        self._run(task, {self.fragment.feeds[0].target_port: [(root, None)]})

    def run(self, task: CompiledTask) -> None:
        """A stateless task over those of its feeds that this fragment has."""
        if task.signature in self._staged.tasks:
            try:
                self._run_in_stage(task)
            except InputError as error:
                raise TaskRaised(task.signature, error.message) from None
            return
        if entering := self._entering(task):
            self._run(task, entering)

    def inputs(self, task: CompiledTask) -> dict[str, DataFrame]:
        """The rows that enter a task, by port."""
        entering = self._entering(task)
        if not entering:
            raise LookupError(f"no rows of fragment {self.fragment.id} reach task {task.name}")
        return {port: self._gathered(streams, None).frame.rows("r0") for port, streams in entering.items()}

    def _entering(self, task: CompiledTask) -> dict[str, list[tuple[TaskRows, str | None]]]:
        entering: dict[str, list[tuple[TaskRows, str | None]]] = {}
        for feed in task.feeds:
            if not feed.feedback:
                for rows in self._rows.get((feed.source, feed.source_port), ()):
                    entering.setdefault(feed.target_port, []).append((rows, feed.where))
        return entering

    def put(self, feeds: Sequence[Feed], output: Output, names: Sequence[str] | None = None) -> None:
        """Let the rows of some streams leave as one output; ``names`` gives the order of columns where it matters."""
        for feed in feeds:
            self._read.add(feed.source)
            if feed.source in self._operators:
                operator = self._operators[feed.source]
                operator.after.append(
                    StageOutput(self._reserve(output), output.form, tuple(names or operator.schema.names))
                )
                continue
            for rows in self._rows.get((feed.source, feed.source_port), ()):
                column = rows.column
                reordered = names is not None and tuple(names) != rows.names
                if feed.where is not None or reordered:
                    ordered = tuple((name, quoted(name)) for name in names or ()) if reordered else None
                    column = rows.frame.add(column, feed.where, RowWise(tuple(names or rows.names), columns=ordered))
                self._leave(rows.frame, column, output)

    def put_shaped(self, feeds: Sequence[Feed], output: Output, does: RowWise) -> None:
        """Let the rows of some streams leave as what a window or a join needs of them."""
        for feed in feeds:
            self._read.add(feed.source)
            for rows in self._rows.get((feed.source, feed.source_port), ()):
                self._leave(rows.frame, rows.frame.add(rows.column, feed.where, does), output)

    def _leave(self, frame: FusedFrame, column: str, output: Output) -> int:
        number = self._reserve(output)
        frame.outputs.append((number, output, column))
        return number

    def _reserve(self, output: Output) -> int:
        """The number of a further output."""
        self.outputs.append(output)
        return self.first_output + len(self.outputs) - 1

    def result(self, packed: bool) -> DataFrame | None:
        """One frame with a column for each output, ``o0``, ``o1`` and so on; null where an output has no row.

        If ``packed``, they are fields of one column, as :func:`~headgate.runtime.epochs.staging.stage` wants it.
        """
        frames = [frame for frame in self._frames if frame.outputs]
        if len(frames) < 2:
            return frames[0].result(packed, SEEN if packed else None) if frames else None
        joined = union(frame.result(packed=False) for frame in frames)
        return pack(joined) if packed else joined

    @property
    def only_stages(self) -> bool:
        """Whether all its rows go into stages as they are, so that Spark has nothing to do with them."""
        leaving = [each for frame in self._frames for each in frame.outputs]
        return len(self._frames) == 1 and all(c == "r0" and number in self.stages for number, _, c in leaving)

    def _run(self, task: CompiledTask, entering: Mapping[str, list[tuple[TaskRows, str | None]]]) -> None:
        try:
            self._built(task, entering)
        except InputError as error:  # a table that is gone, a model that is none: that task's fault, and no other's
            raise TaskRaised(task.signature, error.message) from None

    def _built(self, task: CompiledTask, entering: Mapping[str, list[tuple[TaskRows, str | None]]]) -> None:
        work = task.work
        is_guarded = task.on_error is not OnError.FAIL and task.signature in self.guards.up
        only = next(iter(entering.values()))
        is_single = isinstance(work, RowExpression) and len(only) == 1 and task.partitions is None
        if is_guarded:  # what raises may also be a predicate on a stream into it, whose rows are not the task's
            entering = {port: [self._let_in(task, *feed) for feed in feeds] for port, feeds in entering.items()}
            only = next(iter(entering.values()))
        if isinstance(work, RowExpression):
            rows, where = only[0] if is_single else (self._gathered(only, task.partitions), None)
            does = work.sql(task.options, rows.names)
            self._made.append((partial(work.sql, task.options), rows.names, does))
            if is_guarded:
                self._count(task.signature, "in", rows.frame, rows.column)
                result = self._guarded(task, rows, where, does)
            else:
                result = TaskRows(rows.frame, rows.frame.add(rows.column, where, does), does.names)
                self._count(task.signature, "in", result.frame, result.column, 0 if where is None else 1)
        else:
            self.is_steady = self.is_steady and isinstance(work, BatchWork)
            frames = {}
            for name, streams in entering.items():
                gathered = self._gathered(streams, task.partitions)
                self._count(task.signature, "in", gathered.frame)
                frames[name] = gathered.frame.rows("r0")
            budget_s = self.guards.budget_s if task.time_budget_s is None else task.time_budget_s
            letters = isinstance(work, BatchWork) and task.on_error is not OnError.FAIL
            made = run_frames(work, task.options, frames, Guard(task.signature, letters, budget_s))
            result = self._without_letters(task, made) if letters else self._new(made, visible(made))
        self._count(task.signature, "out", result.frame, result.column)
        for port in task.ports.outputs:
            place = task.signature, port.name
            self._rows.setdefault(place, []).append(self._stored(result) if place in self._branching else result)

    def _stored(self, rows: TaskRows) -> TaskRows:
        stored = self._new(rows.frame.rows(rows.column), rows.names, store=True)
        stored.frame.origin = counted_at(rows)
        return stored

    def _let_in(self, task: CompiledTask, rows: TaskRows, where: str | None) -> tuple[TaskRows, str | None]:
        """The rows of a stream into a guarded task, its predicate guarded by itself."""
        return (rows, None) if where is None else (self._guarded(task, rows, where, RowWise(rows.names)), None)

    def _guarded(self, task: CompiledTask, rows: TaskRows, where: str | None, does: RowWise) -> TaskRows:
        """What a task makes of the rows for which it does not raise; the others leave as letters."""
        frame, column = rows.frame, rows.frame.add(rows.column, where, does, guard=True)
        if task.signature in self._before_frames:
            # Letters and the frame that begins behind it would both compute it.
            frame, column = self._new(frame.rows(column), ("ok", "whole"), store=True).frame, "r0"
        self._leave(frame, frame.add(column, "ok is null", LETTERS), Output(task.signature, "arrow"))
        return TaskRows(frame, frame.add(column, "ok.v is not null", RowWise(does.names, row="ok.v")), does.names)

    def _without_letters(self, task: CompiledTask, made: DataFrame) -> TaskRows:
        """The rows that a Python function made, without its letters, which leave."""
        names = tuple(visible(made))
        frame = self._new(made, names, store=task.signature in self._before_frames).frame
        letters = frame.add("r0", f"{LETTER} is not null", RowWise(("record", "error"), row=LETTER))
        self._leave(frame, letters, Output(task.signature, "arrow"))
        kept = RowWise(names, f"{LETTER} is null", tuple((name, quoted(name)) for name in names))
        return TaskRows(frame, frame.add("r0", None, kept), names)

    def _gathered(self, entering: Sequence[tuple[TaskRows, str | None]], partitions: int | None) -> TaskRows:
        """Several streams as one frame."""
        parts = []
        carried = [INGEST] if all(rows.frame.carried for rows, _ in entering) else []
        for rows, where in entering:
            part = rows.frame.rows(rows.column)
            part = part if where is None else part.where(where)
            parts.append(part.select(*map(quoted, [*rows.names, *carried])))
        frame = reduce(lambda one, two: one.unionByName(two), parts)
        if partitions is not None:
            frame, stored = repartitioned(frame, partitions, in_order=bool(self.fragment.writes))
            self.stored += stored
        made = self._new(frame, entering[0][0].names)
        if len(entering) == 1 and entering[0][1] is None:
            made.frame.origin = counted_at(entering[0][0])
        return made

    def _count(
        self, task: Signature, side: Side, frame: FusedFrame, column: str = "r0", passed: int | None = None
    ) -> None:
        """Count the rows of a column, or those that pass some of its tests, as rows into a task or out of it."""
        if self.counting:
            place = frame.place(column, frame.tests(column) if passed is None else passed)
            while place == ("r0", 0) and frame.origin is not None:
                frame, place = frame.origin
            frame.counts.setdefault(place, [])
            self._places.append((task, side, frame, place))

    def counted(self, staged: Mapping[int, int], metrics: Metrics) -> RowCounts:
        """The rows into tasks and out of them, once a job has run and has staged so many rows of each output."""
        asked = (count for frame in self._frames for some in frame.counts.values() for count in some)
        known = values(asked, staged, metrics)
        counts: RowCounts = Counter()
        runs = leading_out(self.plan, [*self._read, *self.fragment.roots])
        for task, side, frame, place in self._places:
            rows = next((known[count] for count in frame.counts[place] if count in known), 0)
            # What leads nowhere is not run, though its rows may have been counted where they come from.
            counts[task, side] += rows if task in runs else 0
        for task, operator in self._operators.items():
            if self.counting and task in runs:
                counts[task, "in"] += staged.get(operator.counted, 0)
                counts[task, "out"] += staged.get(operator.counted - 1, 0)
        return counts

    def makes_the_same(self) -> bool:
        """Whether its tasks would make the same expressions again; a model in a file may have changed."""
        return all(expression(names) == does for expression, names, does in self._made)

    def _new(self, base: DataFrame, names: Sequence[str], store: bool = False) -> TaskRows:
        if store:
            base = base.persist(StorageLevel.MEMORY_AND_DISK)
            self.stored.append(base)
            self.is_steady = False
        frame = FusedFrame(base)
        self._frames.append(frame)
        return TaskRows(frame, "r0", tuple(names))


def _with_result(task: CompiledTask, slot: int, names: Sequence[str]) -> RowWise:
    places = f"{RESULTS}[{slot}]", f"{TEXTS}[{slot}]", f"{ERRORS}[{slot}] is not null"
    return row_with_result(cast(KeyedConfig, task.options), names, *places)
