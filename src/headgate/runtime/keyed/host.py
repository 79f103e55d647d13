"""The keyed host: one stateful Spark operator that does the work of any number of keyed tasks.

All that the hosted tasks remember of a key is one value in Spark's state store, with an entry for each task. A row says
by its snapshot number which tasks there are, so the set changes between two rows, without a restart. The host passes
each row on with the results of all tasks as one array, in the order in which the plan lists them. A task that raises
for a row remembers what it did before, and the error goes along with the row; what becomes of it the epoch decides.

To Spark, keys come in groups, by their hash; a group's state is a map by key. Rows come and go in packs
(:mod:`headgate.runtime.keyed.packing`): what Spark's Python worker does for every value, and once per group and
micro-batch, is so done once for many rows and many keys.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, BinaryType, DoubleType, IntegerType, StringType, StructType

from headgate.model.work import KeyedWork, KeyFunction, Result
from headgate.runtime.exchange.files import ORDER, PACKS, SNAPSHOT
from headgate.runtime.keyed.packing import GROUP, PACK, in_packs, key_codes, opened
from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.runtime.spark_internals.state_protocol import PipelinedMap
from headgate.runtime.spark_internals.worker import settle
from headgate.store.files import read_json
from headgate.tasks.row_errors import error_text

__all__ = [
    "ERRORS",
    "PACKED",
    "RESULTS",
    "TEXTS",
    "Hosted",
    "Hosting",
    "Results",
    "Values",
    "groups_for",
    "host",
    "hosted_schema",
    "hosting",
    "packed",
    "places_of",
    "stepped",
    "unpacked",
]

RESULTS, TEXTS, ERRORS = "__results", "__texts", "__errors"
"""Columns that a host adds: the results of its tasks that are numbers, those that are texts, and what those that raised
did raise; the latter two are null if there are none."""

PACKED = StructType().add(SNAPSHOT, IntegerType()).add(PACK, BinaryType())
"""What a host puts out: packs of rows, each of one snapshot."""

KEYS = 1_000
"""Keys whose state is fetched and put back together."""


def groups_for(partitions: int) -> int:
    """Into how many groups keys fall, for a number of shuffle partitions.

    Enough that partitions get about as many each, and that the rows of one group, which the worker holds in memory,
    are a small part of a micro-batch. State is found by its group: a host keeps the number it began with.
    """
    return max(32, 8 * partitions)


def host(rows: DataFrame, columns: StructType, key: tuple[str, ...], host_id: str, plans: Path) -> DataFrame:
    """Run a keyed host over packs of rows with these columns; ``plans`` is the folder of its numbered plans."""
    processor = _Host(host_id, str(plans), arrow_schema(columns), key)
    return rows.groupBy(GROUP).transformWithState(processor, PACKED, "append", "none")


def packed(rows: DataFrame, key: Sequence[str], groups: int) -> DataFrame:
    """Rows as a host takes them, where their source does not pack them itself."""
    at = places_of(rows.columns, key)
    return rows.mapInArrow(lambda batches: in_packs(batches, at, groups), PACKS)


def places_of(names: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...]:
    folded = [name.casefold() for name in names]
    return tuple(folded.index(name.casefold()) for name in wanted)


def hosted_schema(columns: StructType) -> StructType:
    """The columns of a host's rows: those that come in, but for their place, and those that it adds."""
    rows = StructType([one for one in columns.fields if one.name != ORDER]).add(RESULTS, ArrayType(DoubleType()))
    return rows.add(TEXTS, ArrayType(StringType())).add(ERRORS, ArrayType(StringType()))


def unpacked(rows: DataFrame, columns: StructType) -> DataFrame:
    """The rows of a host's packs; ``columns`` are those that came in."""
    schema = hosted_schema(columns)
    target = arrow_schema(schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pack in batch.column(PACK):
                yield opened(pack.as_buffer(), target)

    return rows.mapInArrow(run, schema)


@dataclass(frozen=True, slots=True)
class Hosted:
    """A hosted task: where its entry in a key's state is, and what it does."""

    life: str
    alternate: str
    fold: KeyFunction


@dataclass(frozen=True, slots=True)
class Hosting:
    """The tasks of a host under one plan, and the columns that they look at."""

    tasks: tuple[Hosted, ...]
    columns: tuple[int, ...]


def hosting(tasks: Sequence[tuple[str, str, KeyedWork, Any]], names: Sequence[str]) -> Hosting:
    """Tasks, each with the names of its life and its alternate, its work and its options, over columns of these names.

    Only the columns that they ask for are made Python's.
    """
    folded = {name.casefold(): at for at, name in enumerate(names)}
    asked: list[int] = []

    def index(name: str) -> int:
        at = folded[name.casefold()]
        if at not in asked:
            asked.append(at)
        return asked.index(at)

    hosted = [Hosted(life, alternate, work.start(options, index)) for life, alternate, work, options in tasks]
    return Hosting(tuple(hosted), tuple(asked))


@lru_cache(maxsize=256)
def _hosting(plans: str, number: int, host_id: str, names: tuple[str, ...]) -> Hosting:
    """The tasks that a plan hosts."""
    from headgate.tasks.registry import default_registry

    registry = default_registry()
    plan = read_json(Path(plans) / f"{number}.json")
    if plan is None:
        raise RuntimeError(f"plan {number} is not in {plans}")
    tasks = []
    for task in plan.get(host_id, []):
        kind = registry[task["type"]]
        assert isinstance(kind.work, KeyedWork)
        tasks.append((task["life"], task["alternate"], kind.work, kind.config.model_validate(task["config"])))
    return hosting(tasks, names)


class _Result(dict[str, Any]):
    """An output row. Spark's worker asks every row for ``asDict``; a dict that gives itself saves a copy a row."""

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        del recursive
        return self


class _Host(StatefulProcessor):
    def __init__(self, host_id: str, plans: str, schema: pa.Schema, key: tuple[str, ...]) -> None:
        self.host_id = host_id
        self.plans = plans
        self.schema = schema
        self.names = tuple(schema.names)
        self.key = places_of(self.names, key)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = PipelinedMap(handle.getMapState("tasks", "key string", "entries binary"))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        del key, timerValues
        order, snapshot = self.names.index(ORDER), self.names.index(SNAPSHOT)
        batches = [opened(row[PACK], self.schema) for row in rows]
        # Packs come in any order out of a shuffle, and what a task remembers depends on the order of rows.
        batches.sort(key=lambda batch: batch.column(order)[0].as_py())
        for number, some in _by_snapshot(batches, snapshot):
            made = self._made(some, number)
            yield _Result({SNAPSHOT: number, PACK: made.serialize().to_pybytes()})

    def _made(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        """The rows of one snapshot with their results, by key."""
        does = _hosting(self.plans, number, self.host_id, self.names)
        codes, texts = key_codes([batch.column(at) for at in self.key])
        places = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(texts))).tolist()
        batch = batch.take(pa.array(places))
        values = Values([batch.column(at) for at in does.columns], len(batch))
        results = Results(len(does.tasks))
        for first in range(0, len(texts), KEYS):
            put = []
            some = texts[first : first + KEYS]
            for at, (text, stored) in enumerate(zip(some, self.state.get(some), strict=True), start=first):
                begin = ends[at - 1] if at else 0
                put.append((text, stepped(stored, values, (begin, ends[at]), does.tasks, results)))
            self.state.put(put)
        kept = [(n, c) for n, c in zip(self.names, batch.columns, strict=True) if n != ORDER]
        return pa.RecordBatch.from_arrays(
            [*(column for _, column in kept), *results.arrays()], [*(name for name, _ in kept), RESULTS, TEXTS, ERRORS]
        )

    def close(self) -> None:
        settle()


def _by_snapshot(batches: Sequence[pa.RecordBatch], at: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches, each of one snapshot, as one for each run of batches that have the same."""
    run: list[pa.RecordBatch] = []
    last = None
    for batch in [*batches, None]:
        number = None if batch is None else batch.column(at)[0].as_py()
        if run and number != last:
            yield last, pa.concat_batches(run)  # type: ignore[misc]
            run = []
        last = number
        if batch is not None:
            run.append(batch)


@dataclass(slots=True)
class Results:
    """The results of hosted tasks for rows, task by task."""

    tasks: int
    rows: int = 0
    numbers: list[list[float | None]] = field(default_factory=list)
    texts: list[list[str | None] | None] = field(default_factory=list)
    errors: dict[tuple[int, int], str] = field(default_factory=dict)
    """By row and task."""

    def __post_init__(self) -> None:
        self.numbers = [[] for _ in range(self.tasks)]
        self.texts = [None] * self.tasks

    def add(self, task: int, results: Sequence[Result]) -> None:
        """The results of a task for the next rows; each is a number or a text."""
        if any(result.__class__ is str for result in results):
            before = len(self.numbers[task])
            texts = self.texts[task]
            if texts is None:
                texts = self.texts[task] = []
            texts += [None] * (before - len(texts))
            texts += [result if isinstance(result, str) else None for result in results]
            results = [None if isinstance(result, str) else result for result in results]
        self.numbers[task] += results  # type: ignore[arg-type]

    def arrays(self) -> list[pa.Array]:
        """The columns of numbers, texts and errors: for each row a list with an item for each task."""
        numbers = self._lists([pa.array(numbers, pa.float64()) for numbers in self.numbers], pa.float64(), always=True)
        texts: list[pa.Array] = []
        for of_task in self.texts:
            known = of_task or []
            texts.append(pa.array([*known, *[None] * (self.rows - len(known))], pa.string()))
        raised = [np.full(self.rows, None, object) for _ in range(self.tasks)]
        for (row, task), error in self.errors.items():
            raised[task][row] = error
        errors = [pa.array(one, pa.string()) for one in raised] if self.errors else []
        return [numbers, self._lists(texts, pa.string()), self._lists(errors, pa.string())]

    def _lists(self, by_task: Sequence[pa.Array], kind: pa.DataType, always: bool = False) -> pa.Array:
        if not always and all(one.null_count == len(one) for one in by_task):
            return pa.nulls(self.rows, pa.list_(kind))
        values = pa.concat_arrays(by_task) if by_task else pa.array([], kind)
        across = np.arange(len(values)).reshape(len(by_task), self.rows).T.reshape(-1) if by_task else np.arange(0)
        ends = pa.array(np.arange(self.rows + 1, dtype=np.int32) * len(by_task))
        none = None
        if not always:
            none = np.all([one.is_null().to_numpy(zero_copy_only=False) for one in by_task], axis=0)
        return pa.ListArray.from_arrays(
            ends, values.take(pa.array(across)), mask=None if none is None else pa.array(none)
        )


class Values:
    """The columns that tasks ask for, as Arrow has them, and as Python's once somebody needs them so."""

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        self.columns = columns
        self._rows = rows

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*(column.to_pylist() for column in self.columns), strict=True)) or [()] * self._rows


class _Span:
    """The rows of a key, in a span of values; those that a task reports as failed are noted."""

    __slots__ = ("_tuples", "_values", "begin", "end", "failed")

    def __init__(self, values: Values, begin: int, end: int) -> None:
        self._values, self.begin, self.end = values, begin, end
        self._tuples: list[tuple[Any, ...]] | None = None
        self.failed: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def tuples(self) -> list[tuple[Any, ...]]:
        if self._tuples is None:
            self._tuples = self._values.rows[self.begin : self.end]
        return self._tuples

    @property
    def columns(self) -> list[pa.Array]:
        return [column.slice(self.begin, self.end - self.begin) for column in self._values.columns]

    def fail(self, place: int, error: Exception) -> None:
        self.failed.append((self.begin + place, error_text(error)))

    def halves(self) -> tuple[_Span, _Span]:
        middle = (self.begin + self.end) // 2
        return _Span(self._values, self.begin, middle), _Span(self._values, middle, self.end)


def _halved(fold: KeyFunction, kept: bytes, rows: _Span) -> tuple[bytes, list[Result], list[tuple[int, str]]]:
    """New state, results and failed rows of a task that raises for some rows.

    Rows are halved until those are known that it raises for: what it remembers may be large. It remembers nothing of
    them.
    """
    try:
        state, results = fold(pickle.loads(kept), rows)
        return pickle.dumps(state, 5), list(results), rows.failed
    except Exception as error:
        if rows.end - rows.begin == 1:
            return kept, [None], [(rows.begin, error_text(error))]
    results, failed = [], []
    for half in rows.halves():
        kept, of_half, failed_of_half = _halved(fold, kept, half)
        results += of_half
        failed += failed_of_half
    return kept, results, failed


def stepped(
    stored: bytes | None, values: Values, span: tuple[int, int], tasks: Sequence[Hosted], results: Results
) -> bytes:
    """What is remembered of a key after its rows, which are in a span; the results of tasks for them are added."""
    lives: dict[str, dict[str, Any]] = pickle.loads(stored) if stored is not None else {}
    # What tasks remembered that are gone is forgotten; an alternate that rests keeps what it knows.
    lives = {task.life: lives.get(task.life, {}) for task in tasks}
    rows = _Span(values, *span)
    for slot, task in enumerate(tasks):
        entries = lives[task.life]
        of_rows: Sequence[Result]
        try:
            state, of_rows = task.fold(entries.get(task.alternate), rows)
        except Exception:  # it may have changed the state that it was given
            before = {} if stored is None else pickle.loads(stored).get(task.life, {})
            kept = pickle.dumps(before.get(task.alternate), 5)
            kept, of_rows, failed = _halved(task.fold, kept, _Span(values, *span))
            state, rows.failed = pickle.loads(kept), failed
        entries[task.alternate] = state
        results.add(slot, of_rows)
        if rows.failed:
            results.errors.update({(results.rows + at - rows.begin, slot): error for at, error in rows.failed})
            rows.failed = []
    results.rows += rows.end - rows.begin
    return pickle.dumps(lives, 5)
