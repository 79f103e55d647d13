"""Task types whose work is written by the dataflow's author, and one that only stands for work."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from headgate.model.schema import Schema
from headgate.model.sql.bounds import bounded
from headgate.model.task_type import (
    OUT,
    STEP,
    ColumnName,
    Inputs,
    JsonObject,
    QueryOfRows,
    SchemaText,
    State,
    TaskConfig,
    TaskType,
)
from headgate.model.work import (
    BatchFunction,
    BatchResult,
    BatchTarget,
    BatchWork,
    FrameWork,
    Index,
    KeyedWork,
    KeyFunction,
    KeyRows,
    Result,
)
from headgate.tasks.functions import ImportPath, load_function
from headgate.tasks.heavy import pa
from headgate.tasks.isolated.settings import IsolationSettings
from headgate.tasks.keyed_base import KeyedConfig, by_row, by_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TYPES", "Fold", "Opaque", "Python", "Sql", "fold_work", "python_work"]


class Python(TaskConfig):
    """Run a Python function over the rows.

    A ``row`` function takes and returns dicts (or a list of them, or None to drop the row); a ``pandas`` function takes
    and returns a DataFrame; an ``arrow`` function a RecordBatch.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "function": "topics.bayes",
        "over": "arrow",
        "columns": "text string, topic string",
    }

    function: ImportPath = Field(description="Import path of the function.")
    over: Literal["row", "pandas", "arrow"] = Field("row", description="What the function is given at a time.")
    columns: SchemaText | None = Field(None, description="The columns it returns; those it was given if left out.")
    options: JsonObject = Field(default_factory=dict, description="Handed to the function as keyword arguments.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: inputs.rows() if self.columns is None else Schema.parse(self.columns)}


def _python(options: Python, target: BatchTarget) -> BatchFunction:
    if IsolationSettings.of().isolates(options.function):
        from headgate.tasks.isolated.process import isolated_batches

        return isolated_batches(options.model_dump(mode="json"), target)
    return python_work(options.over, load_function(options.function), options.options, target)


Function = Callable[..., Any]


def python_work(over: str, function: Function, keywords: Mapping[str, Any], target: BatchTarget) -> BatchFunction:
    """What a function does to batches of rows.

    Failed rows of a function over rows are collected one by one, those of other functions by halving the batch.
    """
    schema = target.schema
    apply = _over_rows if over == "row" else partial(_over_batch, over)

    from headgate.tasks.isolated.process import spread
    from headgate.tasks.row_errors import error_text

    def work(batch: pa.RecordBatch) -> BatchResult:
        failed: Failed = [] if target.collect_failed else None
        made = pa.Table.from_batches(apply(function, keywords, batch, schema, failed), schema).combine_chunks()
        columns = [column.chunk(0) if column.num_chunks else pa.nulls(0, column.type) for column in made.columns]
        reasons = [(place, error_text(error)) for place, error in failed or ()]
        return BatchResult(columns, spread(len(made), len(batch)), reasons)

    return work


Failed = list[tuple[int, Exception]] | None
"""Where rows that fail are noted, by their place in the batch; with ``None`` the first one fails the batch."""


def _over_rows(
    function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, failed: Failed
) -> list[pa.RecordBatch]:
    if failed is None:
        rows: list[Any] = []
        for row in batch.to_pylist():
            result = function(row, **keywords)
            if type(result) is dict:  # by far the most, and faster to test than any mapping
                rows.append(result)
            else:
                rows += _rows_of(result)
        return [pa.RecordBatch.from_pylist(rows, schema=schema)]
    made: list[tuple[int, list[Any]]] = []
    for place, row in enumerate(batch.to_pylist()):
        try:
            made.append((place, _rows_of(function(row, **keywords))))
        except Exception as error:
            failed.append((place, error))

    def as_batch(items: Sequence[tuple[int, list[Any]]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([row for _, rows in items for row in rows], schema=schema)

    # What the function returned may not fit the columns: that is an error of its row too.
    return _halved(made, as_batch, lambda first, error: failed.append((made[first][0], error)))


def _rows_of(result: Any) -> list[Any]:
    """The rows that a function made of one: none, one, or several."""
    return [] if result is None else [result] if isinstance(result, Mapping) else list(result)


def _over_batch(
    over: str, function: Function, keywords: Mapping[str, Any], batch: pa.RecordBatch, schema: pa.Schema, failed: Failed
) -> list[pa.RecordBatch]:
    def apply(rows: pa.RecordBatch) -> pa.RecordBatch:
        if over == "arrow":
            return function(rows, **keywords).select(schema.names).cast(schema)
        return pa.RecordBatch.from_pandas(function(rows.to_pandas(), **keywords), schema=schema, preserve_index=False)

    return [apply(batch)] if failed is None else _halved(batch, apply, lambda at, error: failed.append((at, error)))


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


class Sql(TaskConfig):
    """Run a SQL query over the rows of a micro-batch; each input port is a table of that name.

    The query sees one micro-batch at a time: use ``window`` for sums over time.
    """

    example: ClassVar[Mapping[str, Any]] = {"query": "select city, v * 2 as doubled from `in` where v > 0"}

    query: QueryOfRows = Field(description="A SELECT in Spark SQL.")
    columns: SchemaText | None = Field(None, description="The columns it returns, if later tasks shall be checked.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: None if self.columns is None else Schema.parse(self.columns)}


def _sql(options: Sql, frames: Mapping[str, DataFrame]) -> DataFrame:
    session = next(iter(frames.values())).sparkSession
    try:
        for port, frame in frames.items():
            frame.createOrReplaceTempView(port)
        return session.sql(bounded(options.query))  # what the names stand for is settled here
    finally:
        for port in frames:  # another task must not find them
            session.catalog.dropTempView(port)


def _queries(options: Sql) -> tuple[str, ...]:
    return (options.query,)


class Fold(KeyedConfig):
    """Run a Python function that remembers something of each key over the rows.

    It is given what it remembers of the key (``None`` at first) and a dict with some columns of the row, and returns
    what to remember from now on and the values of the new columns, as a dict. For ``None`` in the place of that dict
    the row does not pass. With ``mode: rows`` it is given all rows of the key that a micro-batch has, as a dict from
    column to values, in the order in which they came, and returns a list with such a dict or ``None`` for each; what it
    returns must not depend on which rows come together. What is remembered is kept by pickle.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "function": "shop.spent",
        "key": ["customer"],
        "takes": ["price"],
        "columns": "total double, orders bigint",
    }

    function: ImportPath = Field(description="Import path of the function.")
    takes: tuple[ColumnName, ...] = Field(min_length=1, description="The columns that the function is given.")
    columns: SchemaText = Field(description="The columns that it adds to the row.")
    mode: Literal["row", "rows"] = Field("row", description="Whether it is given rows one by one, or all of a key.")
    options: JsonObject = Field(default_factory=dict, description="Handed to the function as keyword arguments.")

    @property
    def sparse(self) -> bool:
        return True

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"takes": self.takes}

    def added(self) -> Mapping[str, str]:
        return {column.name: str(column.type) for column in Schema.parse(self.columns).columns}


def _fold(options: Fold, index: Index) -> KeyFunction:
    from headgate.tasks.isolated.process import SealedState, isolated_fold

    if IsolationSettings.of().isolates(options.function):
        return isolated_fold(options.model_dump(mode="json"), options.takes, index)
    fold = fold_work(options)(index)

    def unsealed(state: Any, rows: KeyRows) -> tuple[Any, Sequence[Result]]:
        own = pickle.loads(state.pickled) if isinstance(state, SealedState) else state  # noqa: S301  (by its own author)
        return fold(own, rows)

    return unsealed


def fold_work(options: Fold) -> Callable[[Index], KeyFunction]:
    """What a function does to the rows of a key, once it is known where the columns are."""
    function, keywords = load_function(options.function), dict(options.options)

    def call(given: Fold, state: Any, rows: dict[str, Any]) -> tuple[Any, Any]:
        del given
        return function(state, rows, **keywords)  # type: ignore[no-any-return]

    return partial((by_row if options.mode == "row" else by_rows)(call).start, options)


class Opaque(TaskConfig):
    """Stand for work that is known only by its cost and selectivity: for planning and simulating, not for running."""

    example: ClassVar[Mapping[str, Any]] = {"label": "congestion estimation"}

    label: str = Field("", max_length=512, description="What the step stands for; steps of equal label are equal.")
    options: JsonObject = Field(default_factory=dict, description="Anything else that distinguishes two steps.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {}


def _check_function(options: Python | Fold) -> None:
    if IsolationSettings.of().isolates(options.function):
        from headgate.tasks.isolated.process import check_isolated

        check_isolated(options.function)
    else:
        load_function(options.function)


TYPES = (
    TaskType("python", Python, STEP, ports_declared=True, work=BatchWork(_python, _check_function)),
    TaskType("fold", Fold, STEP, State.KEYED, work=KeyedWork(_fold, _check_function)),
    TaskType("sql", Sql, STEP, ports_declared=True, batchwise=True, work=FrameWork(_sql, queries=_queries)),
    TaskType("opaque", Opaque, STEP, ports_declared=True),
)
