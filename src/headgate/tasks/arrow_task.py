"""How tasks run that work on Arrow batches: rows in, rows out, each with the place it comes from, and bad ones apart.

A task is a function from a batch to :class:`Made`. A row that it cannot stand is named there, with the reason, so that
nothing has to be tried twice to find it; whether it becomes a letter or fails the task, the guard says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.tasks.guard import (
    CARRIED,
    Budget,
    Guard,
    TaskRaised,
    TimeIsUp,
    letters_of,
    over_budget,
    parted,
    told_of,
    with_letters,
    without_times,
)

__all__ = ["Made", "Work", "done", "replaced", "worked"]

Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Made:
    """What a task makes of a batch."""

    columns: Sequence[pa.Array]
    """The new rows, a column each, in the order of the task's output."""

    origin: Places | None = None
    """The row of the batch that each new row comes from; ``None`` if each comes from the one in its place."""

    bad: Sequence[tuple[int, str]] = ()
    """The rows of the batch that it cannot stand, and why."""


Work = Callable[[pa.RecordBatch], Made]


def done(
    work: Work, batch: pa.RecordBatch, schema: pa.Schema, guard: Guard, budget: Budget
) -> tuple[Made, pa.RecordBatch]:
    """What a task makes of a batch, and its rows as they are to be; what it raises names the task."""
    try:
        with budget.running():
            made = work(batch)
    except TimeIsUp:
        raise over_budget(guard) from None
    except Exception as error:
        raise TaskRaised(guard.task, told_of(error)) from error
    if made.bad and not guard.letters:
        raise TaskRaised(guard.task, made.bad[0][1])
    fitting = [c if c.type == f.type else c.cast(f.type) for c, f in zip(made.columns, schema, strict=True)]
    return made, pa.RecordBatch.from_arrays(fitting, schema=schema)


def worked(work: Work, batches: Iterator[pa.RecordBatch], schema: pa.Schema, guard: Guard) -> Iterator[pa.RecordBatch]:
    """Run a task over batches; with letters, what comes out has the column of letters too."""
    budget = Budget(guard.budget_s)
    for whole in batches:
        batch, carried = parted(whole)
        made, part = done(work, batch, schema, guard, budget)
        if carried is not None:
            part = part.append_column(CARRIED, carried if made.origin is None else carried.take(pa.array(made.origin)))
        yield with_letters(part) if guard.letters else part
        if made.bad:
            letters = letters_of(batch, made.bad, schema)
            yield letters if carried is None else without_times(letters)


def replaced(batch: pa.RecordBatch, new: Sequence[tuple[str, pa.Array]], dropped: Sequence[str] = ()) -> list[pa.Array]:
    """The columns of a batch, those of a new one's name replaced in place, the other new ones at the end."""
    by_name = {name.casefold(): array for name, array in new}
    gone = {name.casefold() for name in dropped}
    found = [
        by_name.pop(name.casefold(), column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if name.casefold() not in gone
    ]
    return [*found, *by_name.values()]
