"""A frame and the row-wise tasks below it, as columns: the SQL that a micro-batch of them becomes.

Each task is a struct column that holds the task's row, or null where the task passed none. Tasks of one depth are one
projection. A task with a single reader becomes part of that reader, where nothing would be computed twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from types import MappingProxyType

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.model.work import RowWise
from headgate.runtime.compile.row_sql import FusedTask, as_column, folded, formed, is_cheap, reached
from headgate.runtime.epochs.staging import OUTPUTS
from headgate.runtime.exchange.files import INGEST
from headgate.runtime.isolation.sql_guard import guard_column
from headgate.runtime.observing.counting import Count, JobCount, OutputCount, observed
from headgate.tasks.sql_text import quoted

__all__ = [
    "FusedFrame",
    "FusedTask",
    "Output",
    "Place",
    "TaskRows",
    "counted_at",
    "repartitioned",
    "union",
    "visible",
]

PASSES, PLACE = "__passes", "__place"


@dataclass(frozen=True, slots=True)
class Output:
    """Rows that leave the fragment: for a sink or a topic, in one of the forms that the stager writes."""

    name: str
    form: str
    """parquet, json, csv or arrow."""


Place = tuple[str, int]
"""Where rows are counted: those of a column that pass so many of its tests."""


class FusedFrame:
    """A DataFrame and the row-wise tasks below it."""

    def __init__(self, base: DataFrame) -> None:
        self.base = base
        self.carried = [INGEST] if INGEST in base.columns else []
        """Columns that go along with every row and that no task sees."""

        self.works: dict[str, FusedTask] = {}
        self.outputs: list[tuple[int, Output, str]] = []
        self.counts: dict[Place, list[Count]] = {}
        """The places where rows are to be counted, and the counts of all who came by; Spark need not run them all."""

        self.origin: tuple[FusedFrame, Place] | None = None
        """Where its rows have been counted already, in the frame that they come from."""

    def add(self, parent: str, condition: str | None, does: RowWise, *, guard: bool = False) -> str:
        column = f"r{len(self.works) + 1}"
        tests = tuple(c for c in (condition, does.condition) if c is not None)
        self.works[column] = FusedTask(parent, tests, does, guard)
        return column

    def tests(self, column: str) -> int:
        """How many tests decide whether a column has a row; a guard has one wherever what it guards had."""
        return 0 if column == "r0" or self.works[column].guard else len(self.works[column].tests)

    def place(self, column: str, passed: int) -> Place:
        """Where the rows of a column that pass so many of its tests are counted: before tasks that pass all rows."""
        while passed == 0 and column != "r0":
            column = self.works[column].parent
            passed = self.tests(column)
        return column, passed

    def result(self, packed: bool, seen: int | None = None) -> DataFrame:
        """One frame with a column for each output, or with all of them as one struct column.

        ``seen`` is what the stager calls all rows that it sees, if those of this frame are all there are.
        """
        if len(self.outputs) == 1:
            number, output, column = self.outputs[0]
            last = self.place(column, self.tests(column))
            self.counts.setdefault(last, []).append(OutputCount(number))
            rows = self.rows(column, counted=last)
            return _selected(rows, {f"o{number}": formed(_struct(rows), output.form)}, self.carried, packed)
        if seen is not None and ("r0", 0) in self.counts:
            self.counts["r0", 0].append(OutputCount(seen))
        return self._wide(packed)

    def rows(self, column: str, counted: Place | None = None) -> DataFrame:
        """The rows of one task as a frame of their own, by ordinary filters and projections.

        Those of one place, ``counted``, are counted otherwise.
        """
        path = []
        while column != "r0":
            path.append(column)
            column = self.works[column].parent
        rows = _Counted(self, counted)
        for column in reversed(path):
            work = self.works[column]
            if work.guard:
                frame = rows.frame.select(_guard_of(work, _struct(rows.frame)).alias("row"), *self.carried)
                rows.frame = frame.select("row.*", *self.carried)
                continue
            for passed, test in enumerate(work.tests, start=1):
                rows.only(test, (column, passed))
            if work.does.row is not None:
                frame = rows.frame.select(_expression(f"{work.does.row} as row"), *self.carried)
                rows.frame = frame.select("row.*", *self.carried)
            elif work.does.columns is not None:
                made = (_expression(f"{e} as {quoted(n)}") for n, e in work.does.columns)
                rows.frame = rows.frame.select(*made, *self.carried)
        return rows.counted()

    def _wide(self, packed: bool) -> DataFrame:
        """All outputs, level by level; what only an output reads is computed where the outputs are put together.

        Every level is a projection that Spark analyses anew in each micro-batch: with many outputs that takes longer
        than the rows do, so there are as few levels as can be.
        """
        ends = Counter(column for _, _, column in self.outputs)
        works, places = folded(self.works, list(ends.elements()))
        asked = self._asked(works, places)
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
            texts |= {f"m{c}": reached(works[c], raw) for c in here if asked.tests(c)}
            frame, raw = _selected(frame, texts, self.carried), None
            frame = self._counted_together(frame, asked, here)
        texts = {}
        for number, output, column in self.outputs:
            if column == "r0" and raw is not None:
                made: str = raw
            else:
                made = as_column(works[column], raw, asked.tests(column)) if column in at_end else column
            texts[f"o{number}"] = formed(made, output.form)
        # No filter for rows that no output wants: Spark would push it down through every projection, and with it copies
        # of all that the outputs are made of. The stager drops nulls anyway.
        tests = {f"m{c}": reached(works[c], raw) for c in at_end if asked.tests(c)}
        frame = _selected(frame, texts, self.carried, packed, tests)
        frame = self._counted_together(frame, asked, ["r0", *at_end])
        return frame.drop(*tests) if tests else frame

    def _asked(self, works: Mapping[str, FusedTask], places: Mapping[str, tuple[str, int]]) -> _Asked:
        """The places to be counted that the counts of outputs do not show."""
        outputs = {column: number for number, _, column in self.outputs}
        asked = _Asked({}, {column: 0 if work.guard else len(work.tests) for column, work in works.items()})
        for place, known in self.counts.items():
            if known or (place[0] != "r0" and place[0] not in places):
                continue  # the stager counts it, or no output needs it
            column, before = places.get(place[0], ("r0", 0))
            passed = before + place[1]
            if passed == asked.of_tests.get(column, 0) and column in outputs:
                self.counts[place].append(OutputCount(outputs[column]))
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
        numbers = {name: number for number, name in enumerate(aggregates)}
        for column in columns:
            for passed, places in asked.places.get(column, {}).items():
                for place in places:
                    self.counts[place].append(JobCount(observation, numbers[f"{column}_{passed}"]))
        return frame


class _Counted:
    """Rows on their way through tests, counted where they are to be: two counts with a test between them as one.

    Every observation costs a micro-batch several milliseconds, however few rows it has.
    """

    def __init__(self, fused: FusedFrame, otherwise: Place | None) -> None:
        self._fused, self._otherwise = fused, otherwise
        self.frame = fused.base
        self._open: Place | None = None
        """A place that has as many rows as these, and is yet to be counted."""

        self._reach(("r0", 0))

    def counted(self) -> DataFrame:
        """The rows, with all counted that was to be."""
        if self._open is not None:
            self.frame, observation = observed(self.frame, {"n": "count(1)"})
            self._fused.counts[self._open].append(JobCount(observation, 0))
            self._open = None
        return self.frame

    def only(self, test: str, place: Place) -> None:
        """Only the rows that pass a test go on; they are those of a place."""
        if self._open is None or not self._is_asked(place):
            self.frame = self.counted().where(_expression(test))
            self._reach(place)
            return
        if is_cheap(test):
            # Twice the test costs rows less than two more projections cost a micro-batch to plan.
            passed, observation = observed(self.frame, {"before": "count(1)", "after": f"count_if({test})"})
            passed = passed.where(_expression(test))
        else:
            tested = self.frame.select("*", _expression(f"{test} as {PASSES}"))
            tested, observation = observed(tested, {"before": "count(1)", "after": f"count_if({PASSES})"})
            passed = tested.where(PASSES).drop(PASSES)
        for number, counted in enumerate((self._open, place)):
            self._fused.counts[counted].append(JobCount(observation, number))
        self.frame, self._open = passed, None

    def _reach(self, place: Place) -> None:
        self._open = place if self._is_asked(place) else None

    def _is_asked(self, place: Place) -> bool:
        return place in self._fused.counts and place != self._otherwise


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be counted where works have been folded into others."""

    places: dict[str, dict[int, list[Place]]]
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


def _made(work: FusedTask, raw: str | None, counted: bool) -> str | Column:
    """A work as a column: an expression's text, or what guards it."""
    return as_column(work, raw, counted) if not work.guard else _guard_of(work, raw)


def _guard_of(work: FusedTask, raw: str | None) -> Column:
    parent, whole = (work.parent, work.parent) if raw is None else ("r0", raw)
    return guard_column(as_column(replace(work, parent=parent, guard=False), raw, False), whole, parent)


def repartitioned(frame: DataFrame, partitions: int, *, in_order: bool) -> tuple[DataFrame, list[DataFrame]]:
    """A frame on so many partitions, and frames to be unpersisted; in order, each partition has a run of the rows."""
    if not in_order:
        return frame.repartition(partitions), []
    # To find runs of about equal length Spark looks at the rows twice.
    placed = frame.withColumn(PLACE, F.monotonically_increasing_id()).persist(StorageLevel.MEMORY_AND_DISK)
    return placed.repartitionByRange(partitions, PLACE).sortWithinPartitions(PLACE).drop(PLACE), [placed]


def _struct(frame: DataFrame) -> str:
    """All columns of a frame that belong to its rows, as one struct."""
    return f"struct({', '.join(quoted(name) for name in frame.columns if name != INGEST)})"


@lru_cache(maxsize=100_000)
def _expression(text: str) -> Column:
    return F.expr(text)


@dataclass(frozen=True, slots=True)
class TaskRows:
    """Where the rows of a task are: in a struct column of a frame."""

    frame: FusedFrame
    column: str
    names: tuple[str, ...]


def union(parts: Iterable[DataFrame]) -> DataFrame:
    """Frames with other outputs each as one."""
    return reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), parts)


def counted_at(rows: TaskRows) -> tuple[FusedFrame, Place] | None:
    """Where rows that become a frame of their own are counted, if they are."""
    frame, place = rows.frame, rows.frame.place(rows.column, rows.frame.tests(rows.column))
    if place == ("r0", 0) and frame.origin is not None:
        return frame.origin
    return (frame, place) if place in frame.counts else None


def visible(frame: DataFrame) -> list[str]:
    """The columns that tasks see."""
    return [name for name in frame.columns if not name.startswith("__")]
