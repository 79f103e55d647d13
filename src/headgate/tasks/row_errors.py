"""The guard around a Python function: names the task in what it raises, collects failed rows, limits its time.

It runs in Spark's workers. A row that makes the function raise becomes a *letter* beside the rows that the function
makes: the record as JSON, and the error. The job does not fail, so nothing has to be searched for or run again.
"""

from __future__ import annotations

import base64
import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = [
    "CARRIED",
    "LETTER",
    "LONGEST",
    "FunctionRaised",
    "Guard",
    "SourceAwayError",
    "TaskRaised",
    "TimeBudget",
    "TimeIsUp",
    "UnreadableSourceError",
    "error_text",
    "letter_array",
    "over_budget",
    "with_letters",
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


@dataclass(frozen=True, slots=True)
class Guard:
    """The task of a function, whether rows that raise are sent to the dead-letter output, and its time budget."""

    task: str
    letters: bool = False
    budget_s: float | None = None


class TaskRaised(Exception):
    """What a task's function raised, and the task, as the runtime finds it in what Spark raises."""

    def __init__(self, task: str, message: str) -> None:
        super().__init__(f"[task {task}] {message}")


class FunctionRaised(Exception):
    """What a function has raised in another process, in one line, or how that process has ended."""


class UnreadableSourceError(Exception):
    """A file, or a line of one, that is no record, where the task is to fail then."""


class SourceAwayError(UnreadableSourceError):
    """Somebody who does not answer, and may do so later."""


def over_budget(guard: Guard) -> TaskRaised:
    """What is raised for a task that has had its time."""
    message = f"TimeoutError: over its time budget of {guard.budget_s:g} s for a micro-batch"
    return TaskRaised(guard.task, message)


class TimeIsUp(BaseException):
    """Raised in the midst of a function; not an Exception, which it might catch."""


class TimeBudget:
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


def error_text(error: BaseException) -> str:
    """An error in one line.

    >>> error_text(ValueError("no such\\nthing"))
    'ValueError: no such thing'
    """
    if isinstance(error, FunctionRaised):
        return str(error)[:LONGEST]
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST]


def with_letters(columns: Sequence[pa.Array], schema: pa.Schema, letters: pa.Array) -> pa.RecordBatch:
    """Rows with the column of letters; of a row either all of the columns are null or its letter is."""
    fields = [field.with_nullable(True) for field in schema]
    return pa.RecordBatch.from_arrays([*columns, letters], schema=pa.schema([*fields, (LETTER, LETTER_TYPE)]))


def letter_array(batch: pa.RecordBatch, failed: Sequence[tuple[int, str]]) -> pa.Array:
    """Letters for the rows at some places of a batch, in order."""
    ordered = sorted(failed, key=lambda row: row[0])
    return pa.array([{"record": _record(batch.slice(at, 1)), "error": reason} for at, reason in ordered], LETTER_TYPE)


def _record(row: pa.RecordBatch) -> str:
    """A row as JSON; of texts that are no UTF-8, what can be read."""
    try:
        (record,) = row.to_pylist()
    except UnicodeDecodeError:
        record = {name: _readable(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
    return json.dumps(record, default=_text)


def _text(value: Any) -> str:
    """A value that JSON has no form for, as Spark reads it."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _readable(column: pa.Array) -> Any:
    if not pa.types.is_string(column.type):
        return column[0].as_py()
    raw = column.cast(pa.binary())[0].as_py()
    return None if raw is None else raw.decode("utf-8", errors="replace")
