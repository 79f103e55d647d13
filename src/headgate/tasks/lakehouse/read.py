"""The task types ``read_delta`` and ``read_iceberg``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt, field_validator

from headgate.errors import InputError
from headgate.model.schema import Schema
from headgate.model.task_type import OUT, SOURCE, Inputs, SchemaText, TaskConfig, TaskType
from headgate.model.touching import ReadPath, Touch
from headgate.model.work import RowLimit, SourceContext, SourceWork
from headgate.tasks.database.connection import absolute_url
from headgate.tasks.file_paths import absolute
from headgate.tasks.lakehouse.delta import delta_library
from headgate.tasks.lakehouse.iceberg import catalogue
from headgate.tasks.table_reader import own_time, read_stream, reader_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["READ_DELTA", "READ_ICEBERG", "ReadDelta", "ReadIceberg", "ReadVersions", "start_time"]


class ReadVersions(TaskConfig):
    """Options of sources that read a table version by version."""

    columns: SchemaText = Field(description="The columns to read; null where a file has none of that name.")
    start: str | int = Field(
        "earliest",
        description="Where to begin: earliest (all rows that are there), now, a time such as 2026-11-01T00:00Z, or a "
        "version, after which rows are read.",
    )
    changes: Literal["fail", "skip"] = Field(
        "fail", description="What to do about a version that changes or removes rows that have been read."
    )
    rows_per_batch: PositiveInt | None = Field(
        None, description="At most so many rows in one micro-batch; a file is read as a whole."
    )

    @field_validator("start")
    @classmethod
    def _start_is_known(cls, start: str | int) -> str | int:
        start_time(start)
        return start

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: Schema.parse(self.columns)}


class ReadDelta(ReadVersions):
    """Read the rows of a Delta table, and those that are added to it, version by version.

    Files that were only put together are not read again. A version that changes or removes rows fails the task, or is
    left out, as ``changes`` says.
    """

    example: ClassVar[Mapping[str, Any]] = {"path": "out/orders", "columns": "id bigint, amount double, day string"}

    path: ReadPath = Field(min_length=1, description="The table's folder or URL.")


class ReadIceberg(ReadVersions):
    """Read the rows of an Iceberg table, and those that are added to it, snapshot by snapshot.

    Files that were only put together are not read again. A snapshot that changes or removes rows fails the task, or is
    left out, as ``changes`` says.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "catalog": "sqlite:///out/catalog.db",
        "warehouse": "out/warehouse",
        "table": "city.alarms",
        "columns": "sensor string, v double",
    }

    catalog: ReadPath = Field(
        min_length=1, description="The catalogue: the URL of a SQL database (SQLAlchemy's), or of a REST catalogue."
    )
    warehouse: Annotated[str | None, Touch.READ] = Field(
        None, description="The folder or URL of its tables; a REST catalogue may know it."
    )
    catalog_name: str = Field("headgate", min_length=1, description="The name of a catalogue that is a SQL database.")
    table: str = Field(pattern=r"^[^.]+(\.[^.]+)+$", description="Namespace and name.")


def start_time(start: str | int) -> int | None:
    """The time of a start in milliseconds since 1970; ``None`` for words and versions.

    >>> start_time("earliest"), start_time(7), start_time("1970-01-01T00:01Z")
    (None, None, 60000)
    """
    if start in ("earliest", "now") or isinstance(start, int):
        return None
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        message = f"start '{start}' is neither earliest, now, a version nor a time such as 2026-11-01T00:00Z"
        raise ValueError(message) from None
    if at.tzinfo is None:
        raise ValueError(f"start '{start}' does not say in which time zone it is, such as {start}Z")
    return int(at.astimezone(UTC).timestamp() * 1000)


READABLE = {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "appendOnly", "invariants", "checkConstraints"}
"""Features of Delta tables that readers of their files need not know, or that we know."""


def _check_delta(options: ReadDelta) -> None:
    delta = delta_library()
    if not delta.DeltaTable.is_deltatable(options.path):
        raise InputError("SOURCE_NOT_THERE", f"no Delta table at '{options.path}'; make it, or correct the path")
    protocol = delta.DeltaTable(options.path).protocol()
    unknown = sorted(set(protocol.reader_features or ()) - READABLE)
    unknown = unknown or (["columnMapping"] if protocol.min_reader_version == 2 else [])
    if unknown:
        message = f"the Delta table at '{options.path}' uses {', '.join(unknown)}, which is not supported here"
        raise InputError("SOURCE_UNREADABLE", message)


def _read_delta(options: ReadDelta, context: SourceContext) -> DataFrame:
    return read_stream("read_delta", _delta_here(options), context, lambda: _check_delta(options))


def _delta_options(options: ReadDelta, context: SourceContext) -> dict[str, str]:
    return reader_options("read_delta", _delta_here(options), context)


def _delta_here(options: ReadDelta) -> ReadDelta:
    """The options as they are understood from any folder: workers may have been started in another one."""
    return options.model_copy(update={"path": absolute(options.path)})


def _check_iceberg(options: ReadIceberg) -> None:
    try:
        there = catalogue(options.catalog, options.warehouse, options.catalog_name).table_exists(options.table)
    except InputError:
        raise
    except Exception as error:  # whatever a catalogue has against its address
        reason = " ".join(str(error).split())[:300]
        raise InputError("SOURCE_UNREADABLE", f"the catalogue {options.catalog} cannot be used: {reason}") from None
    if not there:
        message = f"the catalogue has no table '{options.table}'; make it, or correct the name"
        raise InputError("SOURCE_NOT_THERE", message)


def _read_iceberg(options: ReadIceberg, context: SourceContext) -> DataFrame:
    return read_stream("read_iceberg", _iceberg_here(options), context, lambda: _check_iceberg(options))


def _iceberg_options(options: ReadIceberg, context: SourceContext) -> dict[str, str]:
    return reader_options("read_iceberg", _iceberg_here(options), context)


def _iceberg_here(options: ReadIceberg) -> ReadIceberg:
    warehouse = None if options.warehouse is None else absolute(options.warehouse)
    return options.model_copy(update={"catalog": absolute_url(options.catalog), "warehouse": warehouse})


READ_DELTA = TaskType(
    "read_delta",
    ReadDelta,
    SOURCE,
    work=SourceWork(
        _read_delta, own_time, RowLimit.HOT, begins="earliest", splits=_delta_options, reader="headgate_tables"
    ),
)
READ_ICEBERG = TaskType(
    "read_iceberg",
    ReadIceberg,
    SOURCE,
    work=SourceWork(
        _read_iceberg, own_time, RowLimit.HOT, begins="earliest", splits=_iceberg_options, reader="headgate_tables"
    ),
)
