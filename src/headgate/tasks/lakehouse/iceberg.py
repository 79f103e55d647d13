"""The task type ``write_iceberg``.

A delivery is one commit of the table. The same commit sets a property of the table to the deliveries that have been
written; one that comes again is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, model_validator

from headgate.errors import InputError, missing_package
from headgate.model.schema import Schema
from headgate.model.task_type import SINK, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.touching import Touch, WrittenPath
from headgate.model.work import Delivery, SinkContext, SinkWork
from headgate.tasks.database.last_rows import last_rows
from headgate.tasks.delivery_marker import Marker
from headgate.tasks.heavy import pa, pc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WRITE_ICEBERG", "WriteIceberg", "catalogue"]


class WriteIceberg(TaskConfig):
    """Write rows to an Iceberg table, each micro-batch in one commit: append them, or keep the last of each key.

    With ``key`` a row replaces the one that has its key, and a row for which the column ``delete`` is true removes it.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "catalog": "sqlite:///out/catalog.db",
        "warehouse": "out/warehouse",
        "table": "city.alarms",
    }

    catalog: WrittenPath = Field(
        min_length=1, description="The catalogue: the URL of a SQL database (SQLAlchemy's), or of a REST catalogue."
    )
    warehouse: Annotated[str | None, Touch.WRITE] = Field(
        None, description="The folder or URL for new tables; a REST catalogue may know it."
    )
    catalog_name: str = Field("headgate", min_length=1, description="The name of a catalogue that is a SQL database.")
    table: str = Field(pattern=r"^[^.]+(\.[^.]+)+$", description="Namespace and name; made if it is not there.")
    key: tuple[ColumnName, ...] = Field(
        (), description="The columns of the key; a row replaces the one with its key. None: rows are added."
    )
    delete: ColumnName | None = Field(
        None, description="A column that says whether the row of that key is removed; it is not stored. Only with key."
    )

    @model_validator(mode="after")
    def _delete_needs_a_key(self) -> WriteIceberg:
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


def _to_iceberg(options: WriteIceberg, delivery: Delivery, context: SinkContext) -> None:
    rows = delivery.table()
    stored = rows.drop_columns([options.delete]) if options.delete is not None else rows
    table = _table(options, stored.schema)
    name = f"headgate.written.{context.signature}"
    marker = Marker.parse(table.properties.get(name, ""))
    if marker.has(delivery.origin, delivery.epoch):
        return
    with table.transaction() as transaction:
        if options.key:
            _replace(transaction, last_rows(rows, options.key), options)
        else:
            transaction.append(stored)
        transaction.set_properties({name: str(marker.with_delivery(delivery.origin, delivery.epoch))})


def _table(options: WriteIceberg, schema: pa.Schema) -> Any:
    """The table, with the columns of some rows if it is new."""
    catalog = catalogue(options.catalog, options.warehouse, options.catalog_name)
    namespace = options.table.rpartition(".")[0]
    catalog.create_namespace_if_not_exists(namespace)
    return catalog.create_table_if_not_exists(options.table, schema)


@lru_cache(maxsize=8)
def catalogue(uri: str, warehouse: str | None, name: str) -> Any:
    """A catalogue of tables; a SQL database may have several, by their names."""
    try:
        from pyiceberg.catalog import load_catalog
    except ModuleNotFoundError as error:
        raise missing_package("MISSING_PACKAGE", "Iceberg tables", error, "iceberg") from None
    kind = "rest" if uri.startswith(("http://", "https://")) else "sql"
    place = {} if warehouse is None else {"warehouse": warehouse}
    return load_catalog(name, type=kind, uri=uri, **place)


def _replace(transaction: Any, rows: pa.Table, options: WriteIceberg) -> None:
    """Let rows, of which each has another key, take the place of those with their keys, or remove them."""
    from pyiceberg.table.upsert_util import create_match_filter

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Delete operation did not match any records")
        transaction.delete(create_match_filter(rows, list(options.key)))
    if options.delete is not None:
        kept = pc.invert(pc.fill_null(rows.column(options.delete).cast(pa.bool_()), False))
        rows = rows.filter(kept).drop_columns([options.delete])
    if len(rows):
        transaction.append(rows)


def _check(options: WriteIceberg, spark: SparkSession, columns: Sequence[Sequence[str]]) -> None:
    del spark, columns
    try:
        catalogue(options.catalog, options.warehouse, options.catalog_name)
    except InputError:
        raise
    except Exception as error:  # whatever a catalogue has against its address
        reason = " ".join(str(error).split())[:300]
        raise InputError("SINK_UNUSABLE", f"the catalogue {options.catalog} cannot be used: {reason}") from None


WRITE_ICEBERG = TaskType("write_iceberg", WriteIceberg, SINK, work=SinkWork(_to_iceberg, _check))
