"""The task type ``write_delta``.

A delivery is one commit of the table. Delta's log keeps with it the last version of each application: here the epoch of
each origin of rows, so a delivery that comes again is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, NonNegativeInt, model_validator

from headgate.errors import InputError, missing_package
from headgate.model.schema import Schema
from headgate.model.task_type import SINK, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.touching import WrittenPath
from headgate.model.work import Delivery, SinkContext, SinkWork
from headgate.tasks.database.last_rows import last_rows
from headgate.tasks.file_paths import is_url

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["WRITE_DELTA", "WriteDelta", "delta_library"]


class WriteDelta(TaskConfig):
    """Write rows to a Delta table, each micro-batch in one commit: append them, or keep the last of each key.

    With ``key`` a row replaces the one that has its key, and a row for which the column ``delete`` is true removes it.
    """

    example: ClassVar[Mapping[str, Any]] = {"path": "out/orders", "partition_by": ["day"]}

    path: WrittenPath = Field(
        min_length=1, description="The table's folder or URL; the table is made if it is not there."
    )
    partition_by: tuple[ColumnName, ...] = Field((), description="The columns by which a new table is partitioned.")
    key: tuple[ColumnName, ...] = Field(
        (), description="The columns of the key; a row replaces the one with its key. None: rows are added."
    )
    delete: ColumnName | None = Field(
        None, description="A column that says whether the row of that key is removed; it is not stored. Only with key."
    )
    compact_every: NonNegativeInt = Field(
        100, description="After so many commits small files are put together; 0 leaves them as they are."
    )

    @model_validator(mode="after")
    def _delete_needs_a_key(self) -> WriteDelta:
        if self.delete is not None and not self.key:
            raise ValueError("delete needs key: the columns by which the row to remove is known")
        if self.delete in self.key:
            raise ValueError(f"delete names '{self.delete}', which is a column of the key")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("partition_by", self.partition_by)
        inputs.check_columns("key", self.key)
        if self.delete is not None:
            inputs.check_columns("delete", [self.delete])
        return {}


def delta_library() -> Any:
    try:
        import deltalake
    except ModuleNotFoundError as error:
        raise missing_package("MISSING_PACKAGE", "Delta tables", error, "delta") from None
    return deltalake


def _to_delta(options: WriteDelta, delivery: Delivery, context: SinkContext) -> None:
    delta = delta_library()
    application = f"headgate-{context.signature}-{delivery.origin}"
    there = delta.DeltaTable.is_deltatable(options.path)
    table = delta.DeltaTable(options.path) if there else None
    if table is not None:
        last = table.transaction_version(application)
        if last is not None and last >= delivery.epoch:  # those of an origin come in order
            return
    commit = delta.CommitProperties(app_transactions=[delta.Transaction(application, delivery.epoch)])
    rows = delivery.table()
    if options.key:
        rows = last_rows(rows, options.key)
        _merge(table or _empty(delta, options, rows), rows, options, commit)
    else:
        by = list(options.partition_by) or None
        delta.write_deltalake(options.path, rows, mode="append", partition_by=by, commit_properties=commit)
    _compact(delta, options)


def _empty(delta: Any, options: WriteDelta, rows: pa.Table) -> Any:
    """A new table with the columns of some rows; a killed one that has none yet is one too."""
    stored = rows.drop_columns([options.delete]) if options.delete is not None else rows
    return delta.DeltaTable.create(options.path, stored.schema, partition_by=list(options.partition_by) or None)


def _merge(table: Any, rows: pa.Table, options: WriteDelta, commit: Any) -> None:
    """Let rows, of which each has another key, take the place of those with their keys, or remove them."""
    names = [name for name in rows.schema.names if name != options.delete]
    values = {_quoted(name): f"new.{_quoted(name)}" for name in names}
    same = " and ".join(f"old.{_quoted(name)} = new.{_quoted(name)}" for name in options.key)
    merge = table.merge(rows, same, source_alias="new", target_alias="old", commit_properties=commit)
    gone = None if options.delete is None else f"coalesce(new.{_quoted(options.delete)}, false)"
    if gone is not None:
        merge = merge.when_matched_delete(predicate=gone)
    merge = merge.when_matched_update(values)
    merge.when_not_matched_insert(values, predicate=None if gone is None else f"not {gone}").execute()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _compact(delta: Any, options: WriteDelta) -> None:
    """Put small files together, once in many commits; the compaction is a commit of its own and changes no row."""
    if not options.compact_every:
        return
    table = delta.DeltaTable(options.path)
    if table.version() % options.compact_every == options.compact_every - 1:
        table.optimize.compact()


def _check(options: WriteDelta, spark: SparkSession, columns: Sequence[Sequence[str]]) -> None:
    del spark, columns
    delta = delta_library()
    if is_url(options.path) or delta.DeltaTable.is_deltatable(options.path):
        return
    if Path(options.path).is_dir() and any(Path(options.path).iterdir()):
        message = f"the folder '{options.path}' has files and is no Delta table; name another one"
        raise InputError("SINK_UNUSABLE", message)


def _folder(options: WriteDelta) -> str | None:
    return None if is_url(options.path) else options.path


WRITE_DELTA = TaskType("write_delta", WriteDelta, SINK, work=SinkWork(_to_delta, _check, folder=_folder))
