"""The guard around a Python function: it names the task in what it raises, finds rows it cannot stand, minds time.

It runs in Spark's workers. A row that makes the function raise leaves as a *letter* beside the rows that the function
makes: the record as JSON, and the error. Nothing fails, so nothing has to be searched for or run again.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = [
    "CARRIED",
    "LETTER",
    "Budget",
    "Guard",
    "TaskRaised",
    "TimeIsUp",
    "guarded",
    "letters_alone",
    "letters_of",
    "over_budget",
    "parted",
    "told_of",
    "with_letters",
    "without_times",
]

LETTER = "__letter"
"""The column of letters: null for rows that the function made, and the only one that is not null in a letter."""

CARRIED = "__ingest"
"""A column that goes along with every row and that no function sees: when the row's event came in."""

LETTER_TYPE = pa.struct([pa.field("record", pa.string()), pa.field("error", pa.string())])

LONGEST = 400
"""Characters that are kept of an error."""

AGAIN_S = 0.2
"""How soon a function that swallows the signal that its time is over gets the next one."""

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Guard:
    """Whose function it is, whether rows that it cannot stand become letters, and how long it may take in all."""

    task: str
    letters: bool = False
    budget_s: float | None = None


class TaskRaised(Exception):
    """What a task's function raised, with the task, in a form that :mod:`headgate.runtime.failures` finds again."""

    def __init__(self, task: str, told: str) -> None:
        super().__init__(f"[task {task}] {told}")


def over_budget(guard: Guard) -> TaskRaised:
    """What is raised for a task that has had its time."""
    told = f"TimeoutError: over its time budget of {guard.budget_s:g} s for a micro-batch"
    return TaskRaised(guard.task, told)


class TimeIsUp(BaseException):
    """Raised in the midst of a function; not an Exception, which it might catch."""


class Budget:
    """How much of its time a function has left in this partition."""

    def __init__(self, budget_s: float | None) -> None:
        self.left_s = budget_s
        self._armed = False
        self._can_interrupt = threading.current_thread() is threading.main_thread()

    @contextmanager
    def running(self) -> Iterator[None]:
        if self.left_s is None:
            yield
            return
        began = time.monotonic()
        before = self._arm()
        try:
            yield
        finally:
            self._armed = False
            if self._can_interrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            self.left_s -= time.monotonic() - began
        if self.left_s <= 0:
            raise TimeIsUp

    def _arm(self) -> Any:
        if not self._can_interrupt:
            return None
        before = signal.signal(signal.SIGALRM, self._ring)
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, max(self.left_s or 0.0, 0.001), AGAIN_S)
        return before

    def _ring(self, number: int, frame: Any) -> None:
        del number, frame
        if self._armed:
            raise TimeIsUp


def guarded(
    over: str,
    function: Function,
    keywords: Mapping[str, Any],
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    guard: Guard,
) -> Iterator[pa.RecordBatch]:
    """Run a function over batches of rows; with letters, what comes out has the column :data:`LETTER` too."""
    budget = Budget(guard.budget_s)
    apply = {"row": _over_rows, "pandas": _over_pandas, "arrow": _over_arrow}[over]
    for whole in batches:
        batch, carried = parted(whole)
        letters: list[tuple[int, Exception]] | None = [] if guard.letters else None
        try:
            with budget.running():
                made = apply(function, keywords, batch, schema, letters)
        except TimeIsUp:
            raise over_budget(guard) from None
        except Exception as error:
            raise TaskRaised(guard.task, told_of(error)) from error
        if carried is not None:
            made = _carrying(made, carried)
        for part in made:
            yield part if letters is None else with_letters(part)
        if letters:
            letter = letters_of(batch, [(place, told_of(error)) for place, error in letters], schema)
            yield letter if carried is None else without_times(letter)


def parted(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
    """A batch without the column that goes along with its rows, and that column, if there is one."""
    if CARRIED not in batch.schema.names:
        return batch, None
    return batch.drop_columns([CARRIED]), batch.column(CARRIED)


def _carrying(made: Sequence[pa.RecordBatch], carried: pa.Array) -> list[pa.RecordBatch]:
    """What a function made of a batch, with the column that goes along.

    Nobody tells which row comes from which. Of functions that make a row of each it is the one in its place; others
    get the column stretched or thinned out evenly, which leaves its distribution as it is.
    """
    total, done, found = sum(len(part) for part in made), 0, []
    for part in made:
        places = np.arange(done, done + len(part)) * len(carried) // total
        found.append(part.append_column(CARRIED, carried.take(pa.array(places))))
        done += len(part)
    return found


def without_times(letters: pa.RecordBatch) -> pa.RecordBatch:
    """Letters among rows that have a column which goes along."""
    place = letters.schema.get_field_index(LETTER)
    return letters.add_column(place, pa.field(CARRIED, pa.int64()), pa.nulls(len(letters), pa.int64()))


def told_of(error: BaseException) -> str:
    """An error in one line.

    >>> told_of(ValueError("no such\\nthing"))
    'ValueError: no such thing'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST]


Bad = list[tuple[int, Exception]] | None
"""Where rows that a function cannot stand are noted, by their place in the batch; ``None`` lets it fail instead."""


def _over_rows(
    function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, bad: Bad
) -> list[pa.RecordBatch]:
    if bad is None:
        found: list[Any] = []
        for row in batch.to_pylist():
            result = function(row, **keywords)
            if type(result) is dict:  # by far the most, and quicker to tell than any mapping
                found.append(result)
            else:
                found += _rows_of(result)
        return [pa.RecordBatch.from_pylist(found, schema=schema)]
    made: list[tuple[int, list[Any]]] = []
    for place, row in enumerate(batch.to_pylist()):
        try:
            made.append((place, _rows_of(function(row, **keywords))))
        except Exception as error:
            bad.append((place, error))

    def as_batch(items: Sequence[tuple[int, list[Any]]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([row for _, rows in items for row in rows], schema=schema)

    # What the function returned may not fit the columns: that is an error of its row too.
    return _halved(made, as_batch, lambda first, error: bad.append((made[first][0], error)))


def _rows_of(result: Any) -> list[Any]:
    """The rows that a function made of one: none, one, or several."""
    return [] if result is None else [result] if isinstance(result, Mapping) else list(result)


def _over_pandas(
    function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, bad: Bad
) -> list[pa.RecordBatch]:
    def apply(rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pandas(function(rows.to_pandas(), **keywords), schema=schema, preserve_index=False)

    return _over_batch(apply, batch, bad)


def _over_arrow(
    function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, bad: Bad
) -> list[pa.RecordBatch]:
    def apply(rows: pa.RecordBatch) -> pa.RecordBatch:
        made = function(rows, **keywords)
        return made if bad is None else made.select(schema.names).cast(schema)

    return _over_batch(apply, batch, bad)


def _over_batch(apply: Callable[[pa.RecordBatch], pa.RecordBatch], batch: pa.RecordBatch, bad: Bad) -> list[Any]:
    if bad is None:
        return [apply(batch)]
    return _halved(batch, apply, lambda first, error: bad.append((first, error)))


def _halved(items: Any, apply: Callable[[Any], pa.RecordBatch], note: Callable[[int, Exception], None]) -> list[Any]:
    """Apply to all items, or where that raises to halves of them, down to single ones, which are noted."""
    made: list[Any] = []
    waiting = [(0, len(items))]
    while waiting:
        first, count = waiting.pop()
        whole = count == len(items)
        part = (
            items if whole else items.slice(first, count) if hasattr(items, "slice") else items[first : first + count]
        )
        try:
            made.append(apply(part))
        except Exception as error:
            if count < 2:
                note(first, error)
            else:
                half = count // 2
                waiting += [(first + half, count - half), (first, half)]
    return made


def with_letters(batch: pa.RecordBatch) -> pa.RecordBatch:
    none = pa.nulls(batch.num_rows, LETTER_TYPE)
    fields = [field.with_nullable(True) for field in batch.schema]
    return pa.RecordBatch.from_arrays([*batch.columns, none], schema=pa.schema([*fields, (LETTER, LETTER_TYPE)]))


def letters_alone(batch: pa.RecordBatch, bad: Sequence[tuple[int, str]]) -> pa.Array:
    """Letters for the rows at some places of a batch, in order."""
    ordered = sorted(bad, key=lambda found: found[0])
    return pa.array([{"record": _record(batch.slice(at, 1)), "error": told} for at, told in ordered], LETTER_TYPE)


def letters_of(batch: pa.RecordBatch, bad: Sequence[tuple[int, str]], schema: pa.Schema) -> pa.RecordBatch:
    """Letters for the rows at some places of a batch, with what is to be told of each."""
    letters = letters_alone(batch, bad)
    none = [pa.nulls(len(letters), field.type) for field in schema]
    fields = [field.with_nullable(True) for field in schema]
    arrays = [*none, letters]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, (LETTER, LETTER_TYPE)]))


def _record(row: pa.RecordBatch) -> str:
    """A row as JSON; of texts that are no UTF-8, what can be read."""
    try:
        (record,) = row.to_pylist()
    except UnicodeDecodeError:
        record = {name: _readable(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
    return json.dumps(record, default=str)


def _readable(column: pa.Array) -> Any:
    if not pa.types.is_string(column.type):
        return column[0].as_py()
    raw = column.cast(pa.binary())[0].as_py()
    return None if raw is None else raw.decode("utf-8", errors="replace")
