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
from types import MappingProxyType

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.model.expression import spliced
from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.model.task_type import Role
from headgate.runtime.counting import Count, Observed, RowCounts, Side, Staged, observed, values
from headgate.runtime.exchange import INGEST
from headgate.runtime.guard import Guards, guard_column
from headgate.runtime.host import ERRORS, RESULTS
from headgate.runtime.plan import Feed, Fragment, Plan, RunningTask
from headgate.runtime.staging import OUTPUTS, pack
from headgate.tasks.frames import run_frames
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


_Place = tuple[str, int]
"""Where rows are counted: those of a column that pass so many of its tests."""


class _Frame:
    """A DataFrame and the row-wise tasks below it."""

    def __init__(self, base: DataFrame) -> None:
        self.base = base
        self.carried = [INGEST] if INGEST in base.columns else []
        """Columns that go along with every row and that no task sees."""

        self.works: dict[str, _Work] = {}
        self.outputs: list[tuple[int, Output, str]] = []
        self.counts: dict[_Place, list[Count]] = {}
        """The places where rows are to be counted, and the counts of all who came by; Spark need not run them all."""

    def add(self, parent: str, condition: str | None, does: RowWise, *, guard: bool = False) -> str:
        column = f"r{len(self.works) + 1}"
        tests = tuple(c for c in (condition, does.condition) if c is not None)
        self.works[column] = _Work(parent, tests, does, guard)
        return column

    def tests(self, column: str) -> int:
        """How many tests decide whether a column has a row; a guard has one wherever what it guards had."""
        return 0 if column == "r0" or self.works[column].guard else len(self.works[column].tests)

    def count(self, column: str, passed: int) -> _Place:
        """Have the rows of a column counted that pass so many of its tests; returns where they will be."""
        while passed == 0 and column != "r0":
            column = self.works[column].parent
            passed = self.tests(column)
        self.counts.setdefault((column, passed), [])
        return column, passed

    def result(self, packed: bool) -> DataFrame:
        """One frame with a column for each output, or with all of them as one struct column."""
        if len(self.outputs) == 1:
            number, output, column = self.outputs[0]
            last = self.count(column, self.tests(column))
            self.counts[last].append(Staged(number))
            rows = self.rows(column, counted=last)
            return _selected(rows, {f"o{number}": _formed(_struct(rows), output.form)}, self.carried, packed)
        return self._wide(packed)

    def rows(self, column: str, counted: _Place | None = None) -> DataFrame:
        """The rows of one task as a frame of their own, by ordinary filters and projections.

        Those of one place, ``counted``, are counted otherwise.
        """
        path = []
        while column != "r0":
            path.append(column)
            column = self.works[column].parent
        frame = self._counted(self.base, ("r0", 0), counted)
        for column in reversed(path):
            work = self.works[column]
            if work.guard:
                frame = frame.select(_guard_of(work, _struct(frame)).alias("row"), *self.carried)
                frame = frame.select("row.*", *self.carried)
                continue
            for passed, test in enumerate(work.tests, start=1):
                frame = self._counted(frame.where(_expression(test)), (column, passed), counted)
            if work.does.row is not None:
                frame = frame.select(_expression(f"{work.does.row} as row"), *self.carried)
                frame = frame.select("row.*", *self.carried)
            elif work.does.columns is not None:
                made = (_expression(f"{e} as {quoted(n)}") for n, e in work.does.columns)
                frame = frame.select(*made, *self.carried)
        return frame

    def _counted(self, frame: DataFrame, place: _Place, otherwise: _Place | None) -> DataFrame:
        """A frame whose rows are those of a place, counted if they are to be."""
        if place not in self.counts or place == otherwise:
            return frame
        frame, observation = observed(frame, {"n": "count(1)"})
        self.counts[place].append(Observed(observation, "n"))
        return frame

    def _wide(self, packed: bool) -> DataFrame:
        """All outputs, level by level; what only an output reads is computed where the outputs are put together.

        Every level is a projection that Spark analyses anew in each micro-batch: with many outputs that takes longer
        than the rows do, so there are as few levels as can be.
        """
        ends = Counter(column for _, _, column in self.outputs)
        works, folded = _folded(self.works, list(ends.elements()))
        asked = self._asked(works, folded)
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
        frame = self.base
        raw: str | None = _struct(self.base)
        for depth in range(1, deepest + 1):
            here = [c for c in depths if depths[c] == depth]
            kept = [c for c in depths if depths[c] < depth < needed_until.get(c, 0)]
            texts: dict[str, str | Column] = {c: raw if c == "r0" and raw is not None else c for c in kept}
            texts |= {c: _made(works[c], raw, asked.tests(c)) for c in here}
            texts |= {f"m{c}": _reached(works[c], raw) for c in here if asked.tests(c)}
            frame, raw = _selected(frame, texts, self.carried), None
            frame = self._counted_together(frame, asked, here)
        texts = {}
        for number, output, column in self.outputs:
            if column == "r0" and raw is not None:
                made: str = raw
            else:
                made = _as_column(works[column], raw, asked.tests(column)) if column in at_end else column
            texts[f"o{number}"] = _formed(made, output.form)
        # No filter for rows that no output wants: Spark would push it down through every projection, and with it copies
        # of all that the outputs are made of. The stager drops nulls anyway.
        tests = {f"m{c}": _reached(works[c], raw) for c in at_end if asked.tests(c)}
        frame = _selected(frame, texts, self.carried, packed, tests)
        frame = self._counted_together(frame, asked, ["r0", *at_end])
        return frame.drop(*tests) if tests else frame

    def _asked(self, works: Mapping[str, _Work], folded: Mapping[str, tuple[str, int]]) -> _Asked:
        """The places to be counted that outputs do not tell."""
        outputs = {column: number for number, _, column in self.outputs}
        asked = _Asked({}, {column: 0 if work.guard else len(work.tests) for column, work in works.items()})
        for place in self.counts:
            if place[0] != "r0" and place[0] not in folded:
                continue  # no output needs it: it is not computed
            column, before = folded.get(place[0], ("r0", 0))
            passed = before + place[1]
            if passed == asked.of_tests.get(column, 0) and column in outputs:
                self.counts[place].append(Staged(outputs[column]))
            else:
                asked.places.setdefault(column, {}).setdefault(passed, []).append(place)
        return asked

    def _counted_together(self, frame: DataFrame, asked: _Asked, columns: Iterable[str]) -> DataFrame:
        """A frame with what is asked of some columns that have just been made."""
        aggregates: dict[str, str] = {}
        for column in columns:
            for passed in asked.places.get(column, {}):
                name = f"{column}_{passed}"
                if column == "r0":
                    aggregates[name] = "count(1)"
                elif passed == asked.of_tests[column]:
                    aggregates[name] = f"count({column})"
                else:
                    aggregates[name] = f"count_if(m{column} >= {passed})"
        if not aggregates:
            return frame
        frame, observation = observed(frame, aggregates)
        for column in columns:
            for passed, places in asked.places.get(column, {}).items():
                for place in places:
                    self.counts[place].append(Observed(observation, f"{column}_{passed}"))
        return frame


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be counted where works have been folded into others."""

    places: dict[str, dict[int, list[_Place]]]
    """By column and by how many of its tests rows pass."""

    of_tests: Mapping[str, int]
    """How many tests a column has."""

    def tests(self, column: str) -> bool:
        """Whether it must be known how far rows get in a column's tests."""
        return any(passed < self.of_tests[column] for passed in self.places.get(column, ()))


def _selected(
    frame: DataFrame,
    texts: Mapping[str, str | Column],
    carried: Sequence[str],
    packed: bool = False,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> DataFrame:
    """A projection; if ``packed``, with all but what is ``beside`` in one struct column."""
    made = [
        text.alias(name) if isinstance(text, Column) else _expression(f"{text} as {name}")
        for name, text in texts.items()
    ]
    columns = [*made, *map(F.col, carried)]
    others = [_expression(f"{text} as {name}") for name, text in beside.items()]
    return frame.select(*([F.struct(*columns).alias(OUTPUTS)] if packed else columns), *others)


def _folded(works: Mapping[str, _Work], outputs: Sequence[str]) -> tuple[dict[str, _Work], dict[str, tuple[str, int]]]:
    """The works that outputs need; one that has a single reader becomes part of that reader, where that costs nothing.

    Also tells, for each work, in which one it is found again, and after how many tests of that one its own begin.

    Spark analyses every projection anew in each micro-batch: the fewer columns and levels, the shorter the batch.
    """
    readers: Counter[str] = Counter(outputs)
    for column, work in reversed(list(works.items())):
        if readers[column]:
            readers[work.parent] += 1
    made: dict[str, _Work] = {}
    into: dict[str, str] = {}
    before_own: dict[str, int] = {}
    for column, work in works.items():
        if readers[column]:
            before = made.get(work.parent)
            joined = _joined(before, work) if before is not None and readers[work.parent] == 1 else None
            if joined is not None:
                del made[work.parent]
                into[work.parent] = column
            made[column] = joined or work
            before_own[column] = len(made[column].tests) - len(work.tests)
    found: dict[str, tuple[str, int]] = {}
    for column in reversed(before_own):  # readers first
        found[column] = (found[into[column]][0] if column in into else column, before_own[column])
    return made, found


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
    if before.tests and after.tests and any(map(_VOLATILE.search, (*before.tests, *tests))):
        return None  # rows that pass are counted by asking again, which must give the same answer
    return _Work(
        before.parent, (*before.tests, *tests), RowWise(after.does.names, None, new if row is None else None, row)
    )


_VOLATILE = re.compile(r"(?i)\b(rand|randn|random|uuid|shuffle|randstr|uniform|monotonically_increasing_id)\s*\(")
"""Functions that may give another answer each time."""


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"`(?:[^`]|``)*`|[A-Za-z_]\w*", text))


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _made(work: _Work, raw: str | None, counted: bool) -> str | Column:
    """A work as a column: an expression's text, or what guards it."""
    return _as_column(work, raw, counted) if not work.guard else _guard_of(work, raw)


def _guard_of(work: _Work, raw: str | None) -> Column:
    parent, whole = (work.parent, work.parent) if raw is None else ("r0", raw)
    return guard_column(_as_column(replace(work, parent=parent, guard=False), raw, False), whole, parent)


def _struct(frame: DataFrame) -> str:
    """All columns of a frame that belong to its rows, as one struct."""
    return f"struct({', '.join(quoted(name) for name in frame.columns if name != INGEST)})"


@lru_cache(maxsize=100_000)
def _as_column(work: _Work, raw: str | None, counted: bool) -> str:
    """A work as an expression over the column it reads; or, where ``raw`` is the whole row, over the row's columns.

    With ``counted`` it shares the answer to its tests with :func:`_reached`, which Spark then evaluates once for both.
    """
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
    if counted:
        return f"case when {_reached(work, raw)} = {len(work.tests)} then {value} end"
    for test in reversed(work.tests):
        value = f"case when ({placed(test)}) then {value} end"
    return value if work.parent == "r0" else f"case when {work.parent} is not null then {value} end"


@lru_cache(maxsize=100_000)
def _reached(work: _Work, raw: str | None) -> str:
    """How many of a work's tests a row passes before the first that it does not; null where it is not the work's."""
    value = str(len(work.tests))
    for passed in range(len(work.tests) - 1, -1, -1):
        test = work.tests[passed] if raw is not None else _within(work.tests[passed], work.parent)
        value = f"case when ({test}) then {value} else {passed} end"
    return f"({value})" if work.parent == "r0" else f"(case when {work.parent} is not null then {value} end)"


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

    def __init__(
        self, plan: Plan, fragment: Fragment, first_output: int, guards: Guards, *, counting: bool = False
    ) -> None:
        self.plan = plan
        self.fragment = fragment
        self.first_output = first_output
        self.guards = guards
        self.counting = counting
        self.outputs: list[Output] = []
        self.stored: list[DataFrame] = []
        """Frames kept for the batch because several others start from them; to be unpersisted after it."""

        self._frames: list[_Frame] = []
        self._places: list[tuple[Signature, Side, _Frame, _Place]] = []
        self._rows: dict[tuple[str, str], list[_Rows]] = {}
        self._branching, self._before_frames = _branching(plan, fragment)

    def source(self, signature: str, frame: DataFrame) -> None:
        """The rows of a source or native task."""
        rows = self._new(frame, _visible(frame), (signature, "out") in self._branching)
        self._rows[signature, "out"] = [rows]
        self._count(Signature(signature), "out", rows.frame)

    def proxy(self, task: RunningTask, frame: DataFrame) -> None:
        """The rows of a task that another fragment runs."""
        names = [name for name in frame.columns if not name.startswith("__")]
        ports = [(task.signature, port.name) for port in task.ports.outputs]
        rows = self._new(frame.select(*map(quoted, names)), names, any(port in self._branching for port in ports))
        self._rows |= {port: [rows] for port in ports}

    def hosted(self, tasks: Sequence[RunningTask], frame: DataFrame) -> None:
        """The rows of a keyed host: for each hosted task the row with its result, or none if it lets none pass."""
        names = _visible(frame)
        # A stateful operator must not run twice in an epoch.
        root = self._new(frame, names, any(starts_frame(self.plan.tasks[task]) for task in self.fragment.tasks))
        for slot, task in enumerate(tasks):
            does = _with_result(task, slot, names)
            column = root.frame.add("r0", None, does)
            self._count(task.signature, "in", root.frame)
            self._count(task.signature, "out", root.frame, column)
            self._rows[task.signature, "out"] = [_Rows(root.frame, column, does.names)]
        record = ", ".join(map(quoted, names))
        errors = (("record", f"to_json(struct({record}))"), ("error", f"to_json({ERRORS})"))
        column = root.frame.add("r0", f"{ERRORS} is not null", RowWise(("record", "error"), columns=errors))
        self._leave(root.frame, column, Output(self.fragment.id, "arrow"))

    def feedback(self, task: RunningTask, frame: DataFrame) -> None:
        """Rows that come back to a task: it treats them as it treats others."""
        names = _visible(frame)
        carried = [INGEST] if INGEST in frame.columns else []
        root = self._new(frame.select(*map(quoted, [*names, *carried])), names)
        self._run(task, {self.fragment.feeds[0].target_port: [(root, None)]})

    def run(self, task: RunningTask) -> None:
        """A stateless task over those of its feeds that this fragment has."""
        entering = self._entering(task)
        if entering:
            self._run(task, entering)

    def inputs(self, task: RunningTask) -> dict[str, DataFrame]:
        """The rows that enter a task, by port."""
        found = self._entering(task)
        if not found:
            raise LookupError(f"no rows of fragment {self.fragment.id} reach task {task.name}")
        return {port: self._gathered(streams, None).frame.rows("r0") for port, streams in found.items()}

    def _entering(self, task: RunningTask) -> dict[str, list[tuple[_Rows, str | None]]]:
        entering: dict[str, list[tuple[_Rows, str | None]]] = {}
        for feed in task.feeds:
            if not feed.feedback:
                for rows in self._rows.get((feed.source, feed.source_port), ()):
                    entering.setdefault(feed.target_port, []).append((rows, feed.where))
        return entering

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
        if is_guarded:  # what raises may also be a predicate on a stream into it, whose rows are not the task's
            entering = {port: [self._let_in(task, *feed) for feed in feeds] for port, feeds in entering.items()}
            only = next(iter(entering.values()))
        if row_wise is not None:
            rows, where = only[0] if alone else (self._gathered(only, task.partitions), None)
            does = row_wise(task.options, rows.names)
            if is_guarded:
                self._count(task.signature, "in", rows.frame, rows.column)
                found = self._guarded(task, rows, where, does)
            else:
                found = _Rows(rows.frame, rows.frame.add(rows.column, where, does), does.names)
                self._count(task.signature, "in", found.frame, found.column, 0 if where is None else 1)
        else:
            frames = {}
            for name, streams in entering.items():
                gathered = self._gathered(streams, task.partitions)
                self._count(task.signature, "in", gathered.frame)
                frames[name] = gathered.frame.rows("r0")
            budget_s = self.guards.budget_s if task.time_budget_s is None else task.time_budget_s
            letters = isinstance(task.options, Python) and task.on_error is not OnError.FAIL
            made = run_frames(task.options, frames, Guard(task.signature, letters, budget_s))
            found = self._without_letters(task, made) if letters else self._new(made, _visible(made))
        self._count(task.signature, "out", found.frame, found.column)
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
        names = tuple(_visible(made))
        frame = self._new(made, names, store=task.signature in self._before_frames).frame
        letters = frame.add("r0", f"{LETTER} is not null", RowWise(("record", "error"), row=LETTER))
        self._leave(frame, letters, Output(task.signature, "arrow"))
        kept = RowWise(names, f"{LETTER} is null", tuple((name, quoted(name)) for name in names))
        return _Rows(frame, frame.add("r0", None, kept), names)

    def _gathered(self, entering: Sequence[tuple[_Rows, str | None]], partitions: int | None) -> _Rows:
        """Several streams as one frame."""
        parts = []
        carried = [INGEST] if all(rows.frame.carried for rows, _ in entering) else []
        for rows, where in entering:
            part = rows.frame.rows(rows.column)
            part = part if where is None else part.where(where)
            parts.append(part.select(*map(quoted, [*rows.names, *carried])))
        frame = reduce(lambda one, two: one.unionByName(two), parts)
        if partitions is not None:
            frame = frame.repartition(partitions)
        return self._new(frame, entering[0][0].names)

    def _count(self, task: Signature, side: Side, frame: _Frame, column: str = "r0", passed: int | None = None) -> None:
        """Count the rows of a column, or those that pass some of its tests, as rows into a task or out of it."""
        if self.counting:
            place = frame.count(column, frame.tests(column) if passed is None else passed)
            self._places.append((task, side, frame, place))

    def counted(self, staged: Mapping[int, int]) -> RowCounts:
        """The rows into tasks and out of them, once the job has run and has staged so many rows of each output."""
        known = values((count for frame in self._frames for some in frame.counts.values() for count in some), staged)
        found: RowCounts = Counter()
        for task, side, frame, place in self._places:
            found[task, side] += next((known[count] for count in frame.counts[place] if count in known), 0)
        return found

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


def _visible(frame: DataFrame) -> list[str]:
    """The columns that tasks see."""
    return [name for name in frame.columns if not name.startswith("__")]


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
