"""Task types that look rows up: in a table of a file, in a database."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from headgate.errors import InputError
from headgate.model.expression import check_query
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, SchemaText, TaskConfig, TaskType
from headgate.model.work import BatchFunction, BatchResult, BatchTarget, BatchWork, FrameWork
from headgate.tasks.batch import replaced
from headgate.tasks.heavy import F, np, pa, pc
from headgate.tasks.records import Failed, arrow_kinds, typed
from headgate.tasks.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TYPES", "Annotate", "JoinTable", "QueryTable", "version_of"]


def version_of(path: str) -> tuple[str, int, int]:
    """A file and which version of it is there; raises :class:`InputError` if there is none."""
    try:
        file = Path(path).stat()
    except OSError as error:
        raise InputError("SOURCE_NOT_THERE", f"no file at '{path}' ({error.strerror}); correct the path") from None
    return str(Path(path).absolute()), file.st_mtime_ns, file.st_size


class _FileTable(TaskConfig):
    path: str = Field(min_length=1, description="Path of the file; it is read again when it has changed.")
    columns: SchemaText = Field(description="The columns of the file, in order, the key among them.")


class Annotate(_FileTable):
    """Add what a table in a file has under the row's key.

    Each line of the file is a key and its attributes: ``key:one,two``, as in RIoTBench, or with another ``separator``
    behind the key. The first of ``columns`` is the key. Rows whose key is not there have nulls, or do not pass.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "key": "source",
        "path": "data/places.txt",
        "columns": "source string, place string, kind string",
    }

    key: ColumnName = Field(description="The column of the input that holds the key, a text.")
    separator: str = Field(":", min_length=1, max_length=1, description="What stands between key and attributes.")
    unknown: Literal["null", "drop"] = Field("null", description="What becomes of rows whose key is not there.")

    def added(self) -> Schema:
        """The attributes: every column of the table but the key."""
        return Schema(Schema.parse(self.columns).columns[1:])

    @model_validator(mode="after")
    def _has_attributes(self) -> Annotate:
        if not self.added().columns:
            raise ValueError("columns names the key alone: name the attributes too")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("key", [self.key])
        rows = inputs.rows()
        for column in self.added().columns:
            rows = rows.with_column(column) if rows else None
        return {OUT: rows}


def annotate(options: Annotate, target: BatchTarget | None = None) -> BatchFunction:
    """The work of an annotate task.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as table:
    ...     _ = table.write("s1:harbour,4"), table.flush()
    ...     options = Annotate(key="id", path=table.name, columns="id string, place string, level bigint")
    ...     [column.to_pylist() for column in annotate(options)(pa.record_batch({"id": ["s1", "s2"]})).columns]
    [['s1', 's2'], ['harbour', None], [4, None]]
    """
    del target
    columns = [column.name for column in options.added().columns]

    def work(batch: pa.RecordBatch) -> BatchResult:
        keys, attributes = _table(version_of(options.path), options.columns, options.separator)
        at = [name.casefold() for name in batch.schema.names].index(options.key.casefold())
        places = pc.index_in(batch.column(at).cast(pa.string()), value_set=keys)
        origin = None
        if options.unknown == "drop":
            known = pc.is_valid(places)
            origin = np.flatnonzero(known.to_numpy(zero_copy_only=False))
            batch, places = batch.filter(known), places.filter(known)
        new = [(name, array.take(places)) for name, array in zip(columns, attributes, strict=True)]
        return BatchResult(replaced(batch, new), origin)

    return work


@lru_cache(maxsize=8)
def _table(version: tuple[str, int, int], columns: str, separator: str) -> tuple[pa.Array, list[pa.Array]]:
    """Keys and attributes of a file; of lines with one key the first counts, and of a short line the rest is null."""
    path, _, _ = version
    kinds = arrow_kinds(columns)
    rows: dict[str, list[str | None]] = {}
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        key, mark, rest = line.partition(separator)
        if mark:
            values = rest.split(",")
            rows.setdefault(key, [*values, *[None] * len(kinds)][: len(kinds) - 1])
    by_column = list(zip(*rows.values(), strict=True)) or [()] * (len(kinds) - 1)
    unfit: Failed = {}
    columns_read = [typed(name, values, kind, unfit) for (name, kind), values in zip(kinds[1:], by_column, strict=True)]
    return pa.array(list(rows), pa.string()), columns_read


class JoinTable(_FileTable):
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
        if rows is None:
            return {OUT: None}
        keys = {name.casefold() for name in self.on}
        added = [column for column in Schema.parse(self.columns).columns if column.name.casefold() not in keys]
        named = [Column(f"right_{c.name}" if rows.find(c.name) else c.name, c.type) for c in added]
        return {OUT: Schema((*rows.columns, *named))}


def _join_table(options: JoinTable, frames: Mapping[str, DataFrame]) -> DataFrame:
    frame = frames["in"]
    from headgate.tasks.frames import parsed_schema

    path, _, _ = version_of(options.path)
    reader = frame.sparkSession.read.format(options.format).schema(parsed_schema(options.columns))
    table = reader.option("header", options.header).load(path)
    left, right = frame.alias("l"), F.broadcast(table).alias("r")
    test = " and ".join(f"l.{quoted(name)} = r.{quoted(name)}" for name in options.on)
    joined = left.join(right, F.expr(test), options.kind)
    keys, taken = ({name.casefold() for name in names} for names in (options.on, frame.columns))
    columns = [F.col(f"l.{quoted(name)}") for name in frame.columns if name != "__ingest"]
    for name in table.columns:
        if name.casefold() not in keys:
            alias = f"right_{name}" if name.casefold() in taken else name
            columns.append(F.col(f"r.{quoted(name)}").alias(alias))
    return joined.select(*columns, *([F.col("l.__ingest")] if "__ingest" in frame.columns else []))


def _checked_query(text: str) -> str:
    check_query(text)
    return text


class QueryTable(TaskConfig):
    """Ask a SQL database for each row, with the row's columns as parameters; one row comes of each that is found.

    ``:name`` in the query stands for the row's column of that name. Looks up one key, or a range of rows between two.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "url": "sqlite:///trips.db",
        "query": "select distance, fare from trips where id >= :first and id < :last order by id",
        "columns": "distance double, fare double",
    }

    url: str = Field(min_length=1, description="SQLAlchemy URL of the database; SQLite and PostgreSQL are tested.")
    query: Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_checked_query)] = Field(
        description="A SELECT, with :name for the row's column of that name."
    )
    columns: SchemaText = Field(description="The columns that the query returns, in order.")
    keep: tuple[ColumnName, ...] = Field((), description="Columns of the row that go along with what is found.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("keep", self.keep)
        rows = inputs.rows()
        made = Schema(tuple(Column(name, _type_in(rows, name)) for name in self.keep))
        for column in Schema.parse(self.columns).columns:
            made = made.with_column(column)
        return {OUT: made}


def _type_in(rows: Schema | None, name: str) -> str | None:
    column = rows.find(name) if rows is not None else None
    return None if column is None else column.type


def _check_annotate(options: Annotate) -> None:
    version_of(options.path)


def query_table(options: QueryTable, target: BatchTarget | None = None) -> BatchFunction:
    """The work of a query_table task.

    >>> options = QueryTable(
    ...     url="sqlite://", query="select :n * 2 union select :n * 3", columns="m bigint", keep=("n",)
    ... )
    >>> [column.to_pylist() for column in query_table(options)(pa.record_batch({"n": [1, 5]})).columns]
    [[1, 1, 5, 5], [2, 3, 10, 15]]
    """
    del target
    import sqlalchemy as sa

    from headgate.tasks.row_errors import error_text

    fields = arrow_kinds(options.columns)
    query = sa.text(options.query)
    names = set(query._bindparams)

    def work(batch: pa.RecordBatch) -> BatchResult:
        failed: Failed = {}
        origin: list[int] = []
        rows: list[tuple[Any, ...]] = []
        with _engine(options.url).connect() as connection:
            for place, row in enumerate(batch.to_pylist()):
                try:
                    result = connection.execute(query, {name: row[name] for name in names})
                    matches = [tuple(one) for one in result]
                    if matches and len(matches[0]) != len(fields):
                        raise ValueError(f"the query returns {len(matches[0])} columns, not {len(fields)}")
                except KeyError as error:
                    failed[place] = f"the query asks for :{error.args[0]}, which is no column of the row"
                except (sa.exc.SQLAlchemyError, ValueError) as error:
                    connection.rollback()
                    failed[place] = error_text(error)
                else:
                    rows += matches
                    origin += [place] * len(matches)
        by_field = list(zip(*rows, strict=True)) or [()] * len(fields)
        unfit: Failed = {}
        made = [(n, typed(n, v, kind, unfit)) for (n, kind), v in zip(fields, by_field, strict=True)]
        if unfit:
            raise ValueError(next(iter(unfit.values())))
        places = np.array(origin, np.int64)
        kept = batch.select(list(options.keep)).take(pa.array(places))
        return BatchResult(replaced(kept, made), places, sorted(failed.items()))

    return work


@lru_cache(maxsize=8)
def _engine(url: str) -> Any:
    import sqlalchemy as sa

    return sa.create_engine(url)


TYPES = (
    TaskType("annotate", Annotate, work=BatchWork(annotate, _check_annotate)),
    TaskType("join_table", JoinTable, work=FrameWork(_join_table, carries=True)),
    TaskType("query_table", QueryTable, work=BatchWork(query_table)),
)
