"""Fusing stateless tasks into one Spark plan.

The row-wise tasks below a frame become columns of it: each task is a struct column that holds the task's row, or null
where the task passed none. Tasks of one depth are one projection, so a micro-batch goes once through all tasks of all
dataflows, shared prefixes are computed once without being stored, and all outputs come out of one Spark job. Where
there is a single output, its tasks become ordinary filters and projections, as one would write them by hand.

Tasks that make several rows of one, take several streams, or are user-defined start a new frame.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.model.expression import spliced
from headgate.model.on_error import OnError
from headgate.model.task_type import Role
from headgate.runtime.guard import Guards, guard_column
from headgate.runtime.host import ERRORS, RESULTS
from headgate.runtime.plan import Feed, Fragment, Plan, RunningTask
from headgate.runtime.staging import OUTPUTS, pack
from headgate.tasks.frames import FRAMES
from headgate.tasks.guard import LETTER, Guard
from headgate.tasks.keyed import added_column
from headgate.tasks.rowwise import ROW_WISE, RowWise, quoted
from headgate.tasks.stateful import KeyedConfig
from headgate.tasks.user_defined import Python

__all__ = ["Fusion", "Output", "starts_frame", "union"]

LETTERS = RowWise(
    ("record", "error"),
    columns=(("record", "to_json(whole, map('ignoreNullFields', 'false'))"), ("error", "cast(null as string)")),
)
"""What a guard makes of the rows for which a task raised."""

LONGEST = 20_000
"""Characters of SQL up to which tasks in a row become one expression."""


@dataclass(frozen=True, slots=True)
class Output:
    """Rows that leave the fragment: for a sink or a topic, in one of the forms that the stager writes."""

    name: str
    form: str
    """parquet, json, csv or arrow."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where the rows of a task are: in a struct column of a frame."""

    frame: _Frame
    column: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Work:
    """A row-wise task, or several in a row, as a column over another one."""

    parent: str
    tests: tuple[str, ...]
    """A row passes if all of these hold; those that come after one that does not are not looked at."""

    does: RowWise
    guard: bool = False
    """Whether what raises becomes null, and the row that made it so is kept beside it (:func:`guard_column`)."""


class _Frame:
    """A DataFrame and the row-wise tasks below it."""

    def __init__(self, base: DataFrame) -> None:
        self.base = base
        self.works: dict[str, _Work] = {}
        self.outputs: list[tuple[int, Output, str]] = []

    def add(self, parent: str, condition: str | None, does: RowWise, *, guard: bool = False) -> str:
        column = f"r{len(self.works) + 1}"
        tests = tuple(c for c in (condition, does.condition) if c is not None)
        self.works[column] = _Work(parent, tests, does, guard)
        return column

    def result(self, packed: bool) -> DataFrame:
        """One frame with a column for each output, or with all of them as one struct column."""
        if len(self.outputs) == 1:
            number, output, column = self.outputs[0]
            return _selected(self.rows(column), {f"o{number}": _formed("struct(*)", output.form)}, packed)
        return self._wide(packed)

    def rows(self, column: str) -> DataFrame:
        """The rows of one task as a frame of their own, by ordinary filters and projections."""
        path = []
        while column != "r0":
            path.append(self.works[column])
            column = self.works[column].parent
        frame = self.base
        for work in reversed(path):
            if work.guard:
                frame = frame.select(_made(work, f"struct({', '.join(map(quoted, frame.columns))})").alias("row"))
                frame = frame.select("row.*")
                continue
            for test in work.tests:
                frame = frame.where(_expression(test))
            if work.does.row is not None:
                frame = frame.select(_expression(f"{work.does.row} as row")).select("row.*")
            elif work.does.columns is not None:
                frame = frame.select(*(_expression(f"{e} as {quoted(n)}") for n, e in work.does.columns))
        return frame

    def _wide(self, packed: bool) -> DataFrame:
        """All outputs, level by level; what only an output reads is computed where the outputs are put together.

        Every level is a projection that Spark analyses anew in each micro-batch: with many outputs that takes longer
        than the rows do, so there are as few levels as can be.
        """
        ends = Counter(column for _, _, column in self.outputs)
        works = _folded(self.works, list(ends.elements()))
        read = {work.parent for work in works.values()}
        at_end = {column for column in works if ends[column] == 1 and column not in read}
        depths = {"r0": 0}
        for column, work in works.items():
            if column not in at_end:
                depths[column] = depths[work.parent] + 1
        deepest = max(depths.values())
        needed_until = {works[c].parent if c in at_end else c: deepest + 1 for c in ends}
        for column in depths.keys() & works.keys():
            parent = works[column].parent
            needed_until[parent] = max(needed_until.get(parent, 0), depths[column])
        # Before the first level, the columns of a row are columns of the frame.
        whole = f"struct({', '.join(map(quoted, self.base.columns))})"
        frame = self.base
        raw: str | None = whole
        for depth in range(1, deepest + 1):
            kept = [c for c in depths if depths[c] < depth < needed_until.get(c, 0)]
            texts: dict[str, str | Column] = {c: raw if c == "r0" and raw is not None else c for c in kept}
            texts |= {c: _made(works[c], raw) for c in depths if depths[c] == depth}
            frame, raw = _selected(frame, texts), None
        texts = {}
        for number, output, column in self.outputs:
            made = _as_column(works[column], raw) if column in at_end else column
            texts[f"o{number}"] = _formed(raw if column == "r0" and raw is not None else made, output.form)
        # No filter for rows that no output wants: Spark would push it down through every projection, and with it copies
        # of all that the outputs are made of. The stager drops nulls anyway.
        return _selected(frame, texts, packed)


def _selected(frame: DataFrame, texts: Mapping[str, str | Column], packed: bool = False) -> DataFrame:
    columns = [
        _expression(f"{text} as {name}") if isinstance(text, str) else text.alias(name) for name, text in texts.items()
    ]
    return frame.select(F.struct(*columns).alias(OUTPUTS) if packed else columns)


def _folded(works: Mapping[str, _Work], outputs: Sequence[str]) -> dict[str, _Work]:
    """The works that outputs need; one that has a single reader becomes part of that reader, where that costs nothing.

    Spark analyses every projection anew in each micro-batch: the fewer columns and levels, the shorter the batch.
    """
    readers: Counter[str] = Counter(outputs)
    for column, work in reversed(list(works.items())):
        if readers[column]:
            readers[work.parent] += 1
    made: dict[str, _Work] = {}
    for column, work in works.items():
        if readers[column]:
            before = made.get(work.parent)
            joined = _joined(before, work) if before is not None and readers[work.parent] == 1 else None
            if joined is not None:
                del made[work.parent]
            made[column] = joined or work
    return made


@lru_cache(maxsize=100_000)
def _joined(before: _Work, after: _Work) -> _Work | None:
    """Two works as one; ``None`` if something would be computed twice, or the text become too long."""
    if before.does.row is not None or before.guard or after.guard:
        return None
    columns = before.does.columns
    made = {name.casefold(): text for name, text in columns or ()}
    read: Counter[str] = Counter()

    def put_in(text: str) -> str:
        def replaced(name: str) -> str:
            plain = _unquoted(name).casefold()
            read[plain] += 1
            return made[plain] if columns is not None else name

        return spliced(text, replaced)

    tests = [put_in(test) for test in after.tests]
    row = None if after.does.row is None else put_in(after.does.row)
    new = columns if after.does.columns is None else tuple((name, put_in(text)) for name, text in after.does.columns)
    texts = [*tests, row or "", *(text for _, text in new or ())]
    if sum(map(len, texts)) > LONGEST or any(read[name] > 1 and not _is_name(text) for name, text in made.items()):
        return None
    return _Work(
        before.parent, (*before.tests, *tests), RowWise(after.does.names, None, new if row is None else None, row)
    )


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"`(?:[^`]|``)*`|[A-Za-z_]\w*", text))


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _made(work: _Work, raw: str | None) -> Any:
    """A work as a column: an expression's text, or what guards it."""
    if not work.guard:
        return _as_column(work, raw)
    parent, whole = (work.parent, work.parent) if raw is None else ("r0", raw)
    return guard_column(_as_column(replace(work, parent=parent, guard=False), raw), whole, parent)


@lru_cache(maxsize=100_000)
def _as_column(work: _Work, raw: str | None) -> str:
    """A work as an expression over the column it reads; or, where ``raw`` is the whole row, over the row's columns."""
    whole = work.parent if raw is None else raw

    def placed(text: str) -> str:
        return _within(text, work.parent) if raw is None else text

    if work.does.row is not None:
        value = placed(work.does.row)
    elif work.does.columns is not None:
        fields = (f"{_literal(name)}, {placed(expression)}" for name, expression in work.does.columns)
        value = f"named_struct({', '.join(fields)})"
    else:
        value = whole
    for test in reversed(work.tests):
        value = f"case when ({placed(test)}) then {value} end"
    return value if work.parent == "r0" else f"case when {work.parent} is not null then {value} end"


@lru_cache(maxsize=100_000)
def _within(expression: str, parent: str) -> str:
    return spliced(expression, lambda name: f"{parent}.{name}")


@lru_cache(maxsize=100_000)
def _expression(text: str) -> Column:
    return F.expr(text)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _formed(row: str, form: str) -> str:
    return {"json": f"to_json({row})", "csv": f"to_csv({row})"}.get(form, row)


class Fusion:
    """Builds the DataFrame of one epoch of a fragment."""

    def __init__(self, plan: Plan, fragment: Fragment, first_output: int, guards: Guards) -> None:
        self.plan = plan
        self.fragment = fragment
        self.first_output = first_output
        self.guards = guards
        self.outputs: list[Output] = []
        self.stored: list[DataFrame] = []
        """Frames kept for the batch because several others start from them; to be unpersisted after it."""

        self._frames: list[_Frame] = []
        self._rows: dict[tuple[str, str], list[_Rows]] = {}
        self._branching, self._before_frames = _branching(plan, fragment)

    def source(self, signature: str, frame: DataFrame) -> None:
        """The rows of a source or native task."""
        visible = [name for name in frame.columns if not name.startswith("__")]
        self._rows[signature, "out"] = [self._new(frame, visible, (signature, "out") in self._branching)]

    def hosted(self, tasks: Sequence[RunningTask], frame: DataFrame) -> None:
        """The rows of a keyed host: for each hosted task the row with its result, or none if it lets none pass."""
        names = [name for name in frame.columns if not name.startswith("__")]
        # A stateful operator must not run twice in an epoch.
        root = self._new(frame, names, any(starts_frame(self.plan.tasks[task]) for task in self.fragment.tasks))
        for slot, task in enumerate(tasks):
            does = _with_result(task, slot, names)
            column = root.frame.add("r0", None, does)
            self._rows[task.signature, "out"] = [_Rows(root.frame, column, does.names)]
        record = ", ".join(map(quoted, names))
        errors = (("record", f"to_json(struct({record}))"), ("error", f"to_json({ERRORS})"))
        column = root.frame.add("r0", f"{ERRORS} is not null", RowWise(("record", "error"), columns=errors))
        self._leave(root.frame, column, Output(self.fragment.id, "arrow"))

    def feedback(self, task: RunningTask, frame: DataFrame) -> None:
        """Rows that come back to a task: it treats them as it treats others."""
        names = [name for name in frame.columns if not name.startswith("__")]
        root = self._new(frame.select(*map(quoted, names)), names)
        self._run(task, {self.fragment.feeds[0].target_port: [(root, None)]})

    def run(self, task: RunningTask) -> None:
        """A stateless task over those of its feeds that this fragment has."""
        entering: dict[str, list[tuple[_Rows, str | None]]] = {}
        for feed in task.feeds:
            if not feed.feedback:
                for rows in self._rows.get((feed.source, feed.source_port), ()):
                    entering.setdefault(feed.target_port, []).append((rows, feed.where))
        if entering:
            self._run(task, entering)

    def put(self, feeds: Sequence[Feed], output: Output, names: Sequence[str] | None = None) -> None:
        """Let the rows of some streams leave as one output; ``names`` gives the order of columns where it matters."""
        for feed in feeds:
            for rows in self._rows.get((feed.source, feed.source_port), ()):
                column = rows.column
                reordered = names is not None and tuple(names) != rows.names
                if feed.where is not None or reordered:
                    ordered = tuple((name, quoted(name)) for name in names or ()) if reordered else None
                    column = rows.frame.add(column, feed.where, RowWise(tuple(names or rows.names), columns=ordered))
                self._leave(rows.frame, column, output)

    def _leave(self, frame: _Frame, column: str, output: Output) -> None:
        frame.outputs.append((self.first_output + len(self.outputs), output, column))
        self.outputs.append(output)

    def result(self, packed: bool) -> DataFrame | None:
        """One frame with a column for each output, ``o0``, ``o1`` and so on; null where an output has no row.

        If ``packed``, they are fields of one column, as :func:`~headgate.runtime.staging.stage` wants it.
        """
        frames = [frame for frame in self._frames if frame.outputs]
        if len(frames) < 2:
            return frames[0].result(packed) if frames else None
        joined = union(frame.result(packed=False) for frame in frames)
        return pack(joined) if packed else joined

    def _run(self, task: RunningTask, entering: Mapping[str, list[tuple[_Rows, str | None]]]) -> None:
        row_wise = ROW_WISE.get(type(task.options))
        is_guarded = task.on_error is not OnError.FAIL and task.signature in self.guards.up
        only = next(iter(entering.values()))
        alone = row_wise is not None and len(only) == 1 and task.partitions is None
        if is_guarded and not alone:  # what raises then may be a predicate on a stream into it
            entering = {port: [self._let_in(task, *feed) for feed in feeds] for port, feeds in entering.items()}
            only = next(iter(entering.values()))
        if row_wise is not None:
            rows, where = only[0] if alone else (self._gathered(only, task.partitions), None)
            does = row_wise(task.options, rows.names)
            if is_guarded:
                found = self._guarded(task, rows, where, does)
            else:
                found = _Rows(rows.frame, rows.frame.add(rows.column, where, does), does.names)
        else:
            frames = {port: self._gathered(rows, task.partitions).frame.base for port, rows in entering.items()}
            budget_s = self.guards.budget_s if task.time_budget_s is None else task.time_budget_s
            letters = isinstance(task.options, Python) and task.on_error is not OnError.FAIL
            made = FRAMES[type(task.options)](task.options, frames, Guard(task.signature, letters, budget_s))
            found = self._without_letters(task, made) if letters else self._new(made, made.columns)
        for port in task.ports.outputs:
            here = found
            if (task.signature, port.name) in self._branching:
                here = self._new(found.frame.rows(found.column), found.names, store=True)
            self._rows.setdefault((task.signature, port.name), []).append(here)

    def _let_in(self, task: RunningTask, rows: _Rows, where: str | None) -> tuple[_Rows, str | None]:
        """The rows of a stream into a guarded task, its predicate guarded by itself."""
        return (rows, None) if where is None else (self._guarded(task, rows, where, RowWise(rows.names)), None)

    def _guarded(self, task: RunningTask, rows: _Rows, where: str | None, does: RowWise) -> _Rows:
        """What a task makes of the rows for which it does not raise; the others leave as letters."""
        frame, column = rows.frame, rows.frame.add(rows.column, where, does, guard=True)
        if task.signature in self._before_frames:
            # Letters and the frame that begins behind it would both compute it.
            frame, column = self._new(frame.rows(column), ("ok", "whole"), store=True).frame, "r0"
        self._leave(frame, frame.add(column, "ok is null", LETTERS), Output(task.signature, "arrow"))
        return _Rows(frame, frame.add(column, "ok.v is not null", RowWise(does.names, row="ok.v")), does.names)

    def _without_letters(self, task: RunningTask, made: DataFrame) -> _Rows:
        """The rows that a Python function made, without its letters, which leave."""
        names = tuple(name for name in made.columns if name != LETTER)
        frame = self._new(made, names, store=task.signature in self._before_frames).frame
        letters = frame.add("r0", f"{LETTER} is not null", RowWise(("record", "error"), row=LETTER))
        self._leave(frame, letters, Output(task.signature, "arrow"))
        kept = RowWise(names, f"{LETTER} is null", tuple((name, quoted(name)) for name in names))
        return _Rows(frame, frame.add("r0", None, kept), names)

    def _gathered(self, entering: Sequence[tuple[_Rows, str | None]], partitions: int | None) -> _Rows:
        """Several streams as one frame."""
        parts = []
        for rows, where in entering:
            part = rows.frame.rows(rows.column).select(*map(quoted, rows.names))
            parts.append(part if where is None else part.where(where))
        frame = reduce(lambda one, two: one.unionByName(two), parts)
        if partitions is not None:
            frame = frame.repartition(partitions)
        return self._new(frame, entering[0][0].names)

    def _new(self, base: DataFrame, names: Sequence[str], store: bool = False) -> _Rows:
        if store:
            base = base.persist(StorageLevel.MEMORY_AND_DISK)
            self.stored.append(base)
        frame = _Frame(base)
        self._frames.append(frame)
        return _Rows(frame, "r0", tuple(names))


def union(parts: Iterable[DataFrame]) -> DataFrame:
    """Frames with other outputs each as one."""
    return reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)


def starts_frame(task: RunningTask) -> bool:
    """Whether a task cannot be a column of what feeds it."""
    row_wise = type(task.options) in ROW_WISE or task.role is Role.SINK
    return not row_wise or (task.role is not Role.SINK and len(task.feeds) > 1) or task.partitions is not None


def _branching(plan: Plan, fragment: Fragment) -> tuple[set[tuple[str, str]], set[str]]:
    """The streams that pay to be stored: several read them, and not all as columns of one frame.

    And the tasks behind which a frame begins, whether or not others read them.
    """
    readers: dict[tuple[str, str], list[bool]] = {}
    for signature in fragment.tasks:
        task = plan.tasks[signature]
        for feed in task.feeds:
            readers.setdefault((feed.source, feed.source_port), []).append(starts_frame(task))
    for topic in fragment.writes:
        for feed in topic.feeds:
            readers.setdefault((feed.source, feed.source_port), []).append(False)
    branching = {stream for stream, starting in readers.items() if len(starting) > 1 and any(starting)}
    return branching, {source for (source, _), starting in readers.items() if any(starting)}


def _with_result(task: RunningTask, slot: int, names: Sequence[str]) -> RowWise:
    assert isinstance(task.options, KeyedConfig)
    added = added_column(task.options)
    result = f"{RESULTS}[{slot}]"
    columns = {name.casefold(): (name, quoted(name)) for name in names}
    if added is not None:
        columns[added[0].casefold()] = (added[0], f"cast({result} as {added[1]})")
    failed = f"({ERRORS} is null or {ERRORS}[{slot}] is null)"
    passes = f"{result} is not null" if added is None else failed
    return RowWise(tuple(name for name, _ in columns.values()), passes, tuple(columns.values()))
