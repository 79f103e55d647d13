"""The task type ``write_table``.

The rows of a delivery and the ledger's row that says so are one transaction. A delivery that comes again finds its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, model_validator

from headgate.model.schema import Schema
from headgate.model.task_type import SINK, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.touching import WrittenPath
from headgate.model.work import Delivery, SinkContext, SinkWork
from headgate.tasks.database.connection import check_database, database, is_postgresql, sql_type
from headgate.tasks.database.copy import copy_rows
from headgate.tasks.database.last_rows import last_rows
from headgate.tasks.heavy import pa, pc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WRITE_TABLE", "WriteTable"]

LEDGER = "headgate_commits"


class WriteTable(TaskConfig):
    """Write rows to a SQL table, each micro-batch in one transaction: append them, or keep the last of each key.

    With ``key`` a row replaces the one that has its key, and a row for which the column ``delete`` is true removes it.
    """

    example: ClassVar[Mapping[str, Any]] = {"url": "sqlite:///city.db", "table": "alarms"}

    url: WrittenPath = Field(
        min_length=1, description="SQLAlchemy URL of the database; SQLite and PostgreSQL are tested."
    )
    table: str = Field(min_length=1, max_length=128, description="The table; it is made if it is not there.")
    key: tuple[ColumnName, ...] = Field(
        (),
        description="The columns of the table's key; a row replaces the one with its key. None: rows are added.",
    )
    delete: ColumnName | None = Field(
        None, description="A column that says whether the row of that key is removed; it is not stored. Only with key."
    )

    @model_validator(mode="after")
    def _delete_needs_a_key(self) -> WriteTable:
        if self.delete is not None and not self.key:
            raise ValueError("delete needs key: the columns by which the row to remove is known")
        if self.delete in self.key:
            raise ValueError(f"delete names '{self.delete}', which is a column of the key")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("key", self.key)
        if self.delete is not None:
            inputs.check_columns("delete", [self.delete])
        return {}


def _to_table(options: WriteTable, delivery: Delivery, context: SinkContext) -> None:
    import sqlalchemy as sa

    engine = database(options.url)
    ledger = _ledger()
    ledger.create(engine, checkfirst=True)
    with engine.connect() as connection:
        # What has been taken need not be there any more.
        if _is_written(connection, ledger, context.signature, delivery):
            return
    rows = delivery.table()
    stored = rows.drop_columns([options.delete]) if options.delete is not None else rows
    columns = (sa.Column(f.name, sql_type(f.type), primary_key=f.name in options.key) for f in stored.schema)
    target = sa.Table(options.table, sa.MetaData(), *columns)
    target.create(engine, checkfirst=True)
    with engine.begin() as connection:
        _note(connection, ledger, context.signature, delivery)
        if options.key:
            _replace(connection, target, last_rows(rows, options.key), options)
        else:
            _add(connection, target, stored)


def _ledger() -> Any:
    import sqlalchemy as sa

    return sa.Table(
        LEDGER,
        sa.MetaData(),
        sa.Column("sink", sa.String(64), primary_key=True),
        sa.Column("origin", sa.String(64), primary_key=True),
        sa.Column("epoch", sa.BigInteger, primary_key=True),
    )


def _is_written(connection: Any, ledger: Any, sink: str, delivery: Delivery) -> bool:
    """Whether a delivery, or a later one of the same origin, has been written: those of an origin come in order."""
    import sqlalchemy as sa

    of_origin = sa.and_(ledger.c.sink == sink, ledger.c.origin == delivery.origin)
    last = connection.execute(sa.select(sa.func.max(ledger.c.epoch)).where(of_origin)).scalar()
    return last is not None and last >= delivery.epoch


def _note(connection: Any, ledger: Any, sink: str, delivery: Delivery) -> None:
    """Put a delivery into the ledger; those before it of the same origin are needed no more."""
    connection.execute(ledger.insert(), [{"sink": sink, "origin": delivery.origin, "epoch": delivery.epoch}])
    of_origin = (ledger.c.sink == sink) & (ledger.c.origin == delivery.origin)
    connection.execute(ledger.delete().where(of_origin & (ledger.c.epoch < delivery.epoch)))


def _add(connection: Any, target: Any, rows: pa.Table) -> None:
    if is_postgresql(connection):
        copy_rows(connection, target.name, rows)
    elif len(rows):
        connection.execute(target.insert(), rows.to_pylist())


def _replace(connection: Any, target: Any, rows: pa.Table, options: WriteTable) -> None:
    """Store rows of which each has another key, in the place of those that have their keys; remove some."""
    gone = pa.table({})
    if options.delete is not None:
        removed = pc.fill_null(rows.column(options.delete).cast(pa.bool_()), False)
        gone = rows.filter(removed).select(list(options.key))
        rows = rows.filter(pc.invert(removed)).drop_columns([options.delete])
    if is_postgresql(connection):
        if len(rows):
            _merge(connection, target, rows, options.key)
        if len(gone):
            _remove_merged(connection, target, gone)
        return
    if len(rows):
        connection.execute(_upsert(connection.dialect.name, target, options.key), rows.to_pylist())
    if len(gone):
        import sqlalchemy as sa

        named = {name: f"key_{at}" for at, name in enumerate(options.key)}
        same = sa.and_(*(target.c[name] == sa.bindparam(bound) for name, bound in named.items()))
        connection.execute(target.delete().where(same), gone.rename_columns(list(named.values())).to_pylist())


def _upsert(dialect: str, target: Any, key: Sequence[str]) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite

    insert = (postgresql if dialect == "postgresql" else sqlite).insert(target)
    others = {column.name: insert.excluded[column.name] for column in target.c if column.name not in key}
    if others:
        return insert.on_conflict_do_update(index_elements=list(key), set_=others)
    return insert.on_conflict_do_nothing(index_elements=list(key))


def _merge(connection: Any, target: Any, rows: pa.Table, key: Sequence[str]) -> None:
    """Copy rows beside the table in bulk, and let the database take them from there."""
    import sqlalchemy as sa

    beside = _copied_beside(connection, target, rows)
    names = list(rows.schema.names)
    staged = sa.table(beside, *(sa.column(name) for name in names))
    insert = _upsert("postgresql", target, key).from_select(names, sa.select(*staged.c))
    connection.execute(insert)
    connection.execute(sa.text(f"drop table {beside}"))


def _remove_merged(connection: Any, target: Any, keys: pa.Table) -> None:
    import sqlalchemy as sa

    beside = _copied_beside(connection, target, keys)
    staged = sa.table(beside, *(sa.column(name) for name in keys.schema.names))
    same = sa.and_(*(target.c[name] == staged.c[name] for name in keys.schema.names))
    connection.execute(target.delete().where(sa.exists().where(same)))
    connection.execute(sa.text(f"drop table {beside}"))


def _copied_beside(connection: Any, target: Any, rows: pa.Table) -> str:
    """The name of a temporary table with some rows, with the columns as the target has them."""
    import sqlalchemy as sa

    name = "headgate_staged"
    quote = connection.dialect.identifier_preparer.quote
    columns = ", ".join(quote(column) for column in rows.schema.names)
    connection.execute(
        sa.text(
            f"create temporary table {name} on commit drop as select {columns} from {quote(target.name)} limit 0"  # noqa: S608  (names are quoted)
        )
    )
    copy_rows(connection, name, rows)
    return name


def _check(options: WriteTable, spark: SparkSession, columns: Sequence[Sequence[str]]) -> None:
    del spark, columns
    check_database(options.url)


WRITE_TABLE = TaskType("write_table", WriteTable, SINK, work=SinkWork(_to_table, _check))
