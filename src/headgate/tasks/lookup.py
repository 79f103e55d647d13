"""Task types that look rows up: in a table of a file, in a database."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, model_validator

from headgate.errors import InputError
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, Query, SchemaText, TaskConfig, TaskType
from headgate.model.touching import ReadPath
from headgate.model.work import BatchFunction, BatchResult, BatchTarget, BatchWork, FrameWork
from headgate.tasks.batch import replaced
from headgate.tasks.database.connection import database
from headgate.tasks.database.values import moment
from headgate.tasks.heavy import F, np, pa
from headgate.tasks.sql_text import equal_keys, joined_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TYPES", "JoinTable", "QueryTable", "version_of"]


def version_of(path: str) -> tuple[str, int, int]:
    """A file and which version of it is there; raises :class:`InputError` if there is none."""
    try:
        file = Path(path).stat()
    except OSError as error:
        raise InputError("SOURCE_NOT_THERE", f"no file at '{path}' ({error.strerror}); correct the path") from None
    return str(Path(path).absolute()), file.st_mtime_ns, file.st_size


class JoinTable(TaskConfig):
    """Join a stream with a table that stands in a file, on equal keys: Spark's broadcast join.

    A row meets every row of the table that has its key. Columns that both have get ``right_`` before the table's name
    for them, except the keys.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "on": ["district"],
        "path": "data/districts.csv",
        "format": "csv",
        "columns": "district string, inhabitants bigint",
    }

    path: ReadPath = Field(min_length=1, description="Path of the file; it is read again when it has changed.")
    columns: SchemaText = Field(description="The columns of the file, in order, the key among them.")
    on: tuple[ColumnName, ...] = Field(min_length=1, description="The key columns, which both sides have.")
    format: Literal["csv", "json", "parquet"] = Field("csv", description="How the file is written.")
    header: bool = Field(False, description="Whether a csv file starts with a line of column names.")
    kind: Literal["inner", "left"] = Field("inner", description="Whether rows without a partner are passed on too.")

    @model_validator(mode="after")
    def _keys_are_columns(self) -> JoinTable:
        table = Schema.parse(self.columns)
        missing = [name for name in self.on if table.find(name) is None]
        if missing:
            raise ValueError(f"on names '{missing[0]}', which is not among the columns")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("on", self.on)
        rows = inputs.rows()
        return {OUT: None if rows is None else rows.joined(Schema.parse(self.columns), self.on)}


def _join_table(options: JoinTable, frames: Mapping[str, DataFrame]) -> DataFrame:
    frame = frames["in"]
    from headgate.tasks.frames import parsed_schema

    path, _, _ = version_of(options.path)
    reader = frame.sparkSession.read.format(options.format).schema(parsed_schema(options.columns))
    table = reader.option("header", options.header).load(path)
    left, right = frame.alias("l"), F.broadcast(table).alias("r")
    joined = left.join(right, F.expr(equal_keys(options.on)), options.kind)
    return joined.selectExpr(*joined_columns(frame.columns, table.columns, options.on))


class QueryTable(TaskConfig):
    """Ask a SQL database for each row, with the row's columns as parameters; one row comes of each that is found.

    ``:name`` in the query stands for the row's column of that name. Looks up one key, or a range of rows between two.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "url": "sqlite:///trips.db",
        "query": "select distance, fare from trips where id >= :first and id < :last order by id",
        "columns": "distance double, fare double",
    }

    url: ReadPath = Field(min_length=1, description="SQLAlchemy URL of the database; SQLite and PostgreSQL are tested.")
    query: Query = Field(description="A SELECT, with :name for the row's column of that name.")
    columns: SchemaText = Field(description="The columns that the query returns, in order.")
    keep: tuple[ColumnName, ...] = Field((), description="Columns of the row that go along with what is found.")
    cache_s: NonNegativeFloat = Field(
        0.0, description="For how many seconds an answer may serve further rows; a change is seen that much later."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("keep", self.keep)
        made = Schema(tuple(Column(name, inputs.type_of(name)) for name in self.keep))
        for column in Schema.parse(self.columns).columns:
            made = made.with_column(column)
        return {OUT: made}


def query_table(options: QueryTable, target: BatchTarget | None = None) -> BatchFunction:
    """The work of a query_table task.

    >>> options = QueryTable(
    ...     url="sqlite://", query="select :n * 2 union select :n * 3", columns="m bigint", keep=("n",)
    ... )
    >>> [column.to_pylist() for column in query_table(options)(pa.record_batch({"n": [1, 5]})).columns]
    [[1, 1, 5, 5], [2, 3, 10, 15]]
    """
    import sqlalchemy as sa

    from headgate.tasks.row_errors import error_text

    fields = [column.name for column in Schema.parse(options.columns).columns]
    kinds = {} if target is None else {field.name: field.type for field in target.schema}
    query = sa.text(options.query)
    names = sorted(query._bindparams)
    known = _answers(options.url, options.query, options.cache_s) if options.cache_s else None

    def ask(connection: Any, row: Mapping[str, Any]) -> Answer:
        asked = {name: row[name] for name in names}
        key = repr(list(asked.values()))
        answer = None if known is None else known.get(key, time.monotonic())
        if answer is None:
            answer = [tuple(one) for one in connection.execute(query, asked)]
            if answer and len(answer[0]) != len(fields):
                raise ValueError(f"the query returns {len(answer[0])} columns, not {len(fields)}")
            if known is not None:
                known.put(key, answer, time.monotonic())
        return answer

    def work(batch: pa.RecordBatch) -> BatchResult:
        failed: dict[int, str] = {}
        origin: list[int] = []
        rows: list[tuple[Any, ...]] = []
        with database(options.url).connect() as connection:
            for place, row in enumerate(batch.to_pylist()):
                try:
                    matches = ask(connection, row)
                except KeyError as error:
                    failed[place] = f"the query asks for :{error.args[0]}, which is no column of the row"
                except (sa.exc.SQLAlchemyError, ValueError) as error:
                    connection.rollback()
                    failed[place] = error_text(error)
                else:
                    rows += matches
                    origin += [place] * len(matches)
        by_field = list(zip(*rows, strict=True)) or [()] * len(fields)
        made = [(name, _column(values, kinds.get(name))) for name, values in zip(fields, by_field, strict=True)]
        places = np.array(origin, np.int64)
        kept = batch.select(list(options.keep)).take(pa.array(places))
        return BatchResult(replaced(kept, made), places, sorted(failed.items()))

    return work


def _column(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is not None and pa.types.is_timestamp(kind):
        return pa.array([moment(value) for value in values], kind)
    column = pa.array(values)
    return column if kind is None else column.cast(kind)


Answer = list[tuple[Any, ...]]

MOST_ANSWERS = 100_000


class RecentAnswers:
    """Answers of a database, for so many seconds each; the oldest go first if there are too many.

    >>> answers = RecentAnswers(10.0)
    >>> answers.put("7", [("Vienna",)], now=100.0)
    >>> answers.get("7", 109.0), answers.get("7", 110.5), answers.get("8", 109.0)
    ([('Vienna',)], None, None)
    """

    def __init__(self, age_s: float, most: int = MOST_ANSWERS) -> None:
        self._age_s, self._most = age_s, most
        self._answers: dict[str, tuple[float, Answer]] = {}

    def get(self, key: str, now: float) -> Answer | None:
        """An answer that is not too old."""
        known = self._answers.get(key)
        return known[1] if known is not None and now - known[0] <= self._age_s else None

    def put(self, key: str, answer: Answer, now: float) -> None:
        """Keep an answer."""
        self._answers.pop(key, None)
        self._answers[key] = (now, answer)
        if len(self._answers) > self._most:
            del self._answers[next(iter(self._answers))]


@lru_cache(maxsize=8)
def _answers(url: str, query: str, age_s: float) -> RecentAnswers:
    """What this process has asked: a worker keeps it from one micro-batch to the next."""
    del url, query
    return RecentAnswers(age_s)


TYPES = (
    TaskType("join_table", JoinTable, work=FrameWork(_join_table, carries=True)),
    TaskType("query_table", QueryTable, work=BatchWork(query_table)),
)
