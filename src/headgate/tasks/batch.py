"""How functions over Arrow batches run: rows in, rows out, and failed rows as letters beside them.

A :class:`~headgate.model.work.BatchResult` names the rows that failed, so that nothing has to run twice to find them;
the guard decides whether they become letters or fail the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from headgate.model.work import BatchFunction, BatchResult
from headgate.tasks.heavy import pa

if TYPE_CHECKING:
    from headgate.tasks.row_errors import Guard, TimeBudget

__all__ = ["METER", "NUMBERS", "Run", "all_of", "column_of", "metered", "replaced", "run_batch", "run_batches"]

NUMBERS = ("double", "float", "tinyint", "smallint", "int", "bigint")
"""SQL types of numbers that Arrow computes with as Spark does."""


Run = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]

METER: ContextVar[Callable[[Run], Run] | None] = ContextVar("METER", default=None)
"""Set where work is built to be measured; ordinarily functions run as they are."""


def metered(run: Run) -> Run:
    """A function to be run in workers, wrapped if somebody measures."""
    meter = METER.get()
    return run if meter is None else meter(run)


def run_batch(
    function: BatchFunction, batch: pa.RecordBatch, schema: pa.Schema, guard: Guard, budget: TimeBudget
) -> tuple[BatchResult, pa.RecordBatch]:
    """What a function makes of a batch, and its rows with these columns; what it raises names the task."""
    from headgate.tasks.row_errors import TaskRaised, TimeIsUp, error_text, over_budget

    try:
        with budget.running():
            result = function(batch)
    except TimeIsUp:
        raise over_budget(guard) from None
    except Exception as error:
        raise TaskRaised(guard.task, error_text(error)) from error
    if result.failed and not guard.letters:
        raise TaskRaised(guard.task, result.failed[0][1])
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(result.columns, schema, strict=True)]
    return result, pa.RecordBatch.from_arrays(columns, schema=schema)


def run_batches(
    function: BatchFunction, batches: Iterator[pa.RecordBatch], schema: pa.Schema, guard: Guard
) -> Iterator[pa.RecordBatch]:
    """Run a function over batches; with letters, its output has the column of letters too."""
    from headgate.tasks.row_errors import CARRIED, LETTER_TYPE, TimeBudget, letter_array, with_letters

    budget = TimeBudget(guard.budget_s)
    for whole in batches:
        carried = whole.column(CARRIED) if CARRIED in whole.schema.names else None
        batch = whole if carried is None else whole.drop_columns([CARRIED])
        result, rows = run_batch(function, batch, schema, guard, budget)
        if carried is not None:
            origin = result.origin
            rows = rows.append_column(CARRIED, carried if origin is None else carried.take(pa.array(origin)))
        yield with_letters(rows.columns, rows.schema, pa.nulls(len(rows), LETTER_TYPE)) if guard.letters else rows
        if result.failed:
            letters = letter_array(batch, result.failed)
            yield with_letters([pa.nulls(len(letters), field.type) for field in rows.schema], rows.schema, letters)


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The column of a name, in whatever case it is written."""
    return batch.column([own.casefold() for own in batch.schema.names].index(name.casefold()))


def replaced(batch: pa.RecordBatch, new: Sequence[tuple[str, pa.Array]], dropped: Sequence[str] = ()) -> list[pa.Array]:
    """The columns of a batch, those of a new one's name replaced in place, the other new ones at the end."""
    by_name = {name.casefold(): array for name, array in new}
    gone = {name.casefold() for name in dropped}
    columns = [
        by_name.pop(name.casefold(), column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if name.casefold() not in gone
    ]
    return [*columns, *by_name.values()]


def all_of(types: Mapping[str, str], names: Iterable[str], allowed: Sequence[str]) -> bool:
    """Whether columns are all of some SQL types; ``types`` are by name in lower case."""
    return all(types.get(name.casefold()) in allowed for name in names)
