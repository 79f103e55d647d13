"""The task type annotate: add what a table in a file has under the row's key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from headgate.model.schema import Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, SchemaText, TaskConfig, TaskType
from headgate.model.touching import ReadPath
from headgate.model.work import BatchFunction, BatchResult, BatchTarget, BatchWork
from headgate.tasks.batch import column_of, replaced
from headgate.tasks.heavy import np, pa, pc
from headgate.tasks.lookup import version_of
from headgate_riotbench.records import Failed, arrow_kinds, typed

__all__ = ["TYPES", "Annotate", "annotate"]


class Annotate(TaskConfig):
    """Add what a table in a file has under the row's key.

    Each line of the file is a key and its attributes: ``key:one,two``, as in RIoTBench, or with another ``separator``
    behind the key. The first of ``columns`` is the key. Rows whose key is not there have nulls, or do not pass.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "key": "source",
        "path": "data/places.txt",
        "columns": "source string, place string, kind string",
    }

    path: ReadPath = Field(min_length=1, description="Path of the file; it is read again when it has changed.")
    columns: SchemaText = Field(description="The columns of the file, in order, the key among them.")
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
        places = pc.index_in(column_of(batch, options.key).cast(pa.string()), value_set=keys)
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


def _check_annotate(options: Annotate) -> None:
    version_of(options.path)


TYPES = (TaskType("annotate", Annotate, package="headgate-riotbench", work=BatchWork(annotate, _check_annotate)),)
