"""Task types that write rows.

A delivery may come again after a failure. Files, tables and memory then take it once.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, PositiveInt

from headgate.errors import InputError
from headgate.model.schema import Schema
from headgate.model.task_type import SINK, Inputs, TaskConfig, TaskType
from headgate.model.touching import WrittenPath
from headgate.model.work import Delivery, SinkContext, SinkWork
from headgate.tasks.database.write import WRITE_TABLE
from headgate.tasks.file_paths import appears_whole, away, file_system, is_url
from headgate.tasks.functions import ImportPath, load_function
from headgate.tasks.kafka.write import WRITE_KAFKA
from headgate.tasks.lakehouse.delta import WRITE_DELTA
from headgate.tasks.lakehouse.iceberg import WRITE_ICEBERG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TYPES", "SinkConfig", "WriteCall", "WriteConsole", "WriteFiles", "WriteMemory"]

InputColumns = Sequence[Sequence[str]]
"""The names of the columns of each stream into a sink."""


class SinkConfig(TaskConfig):
    """Options of a sink, which has no outputs."""

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {}


class WriteFiles(SinkConfig):
    """Write rows as files, each micro-batch once."""

    example: ClassVar[Mapping[str, Any]] = {"path": "out/alarms", "format": "json"}

    path: WrittenPath = Field(min_length=1, description="Folder or URL for the files.")
    format: Literal["json", "csv", "parquet", "text"] = Field(
        "json", description="How to write; json means one object a line, text the only column as it is, a line a row."
    )


def _to_files(options: WriteFiles, delivery: Delivery, context: SinkContext) -> None:
    del context
    url = options.path if is_url(options.path) else None
    if url is None:
        Path(options.path).mkdir(parents=True, exist_ok=True)
    for index, (staged, _) in enumerate(delivery.files):
        name = f"part-{delivery.epoch:08d}-{delivery.origin}-{index}{Path(staged).suffix}"
        if url is None:
            _move(Path(staged), Path(options.path) / name)
        else:
            _upload(Path(staged), url, name)


def _upload(staged: Path, url: str, name: str) -> None:
    """Put a file behind a URL, where nothing can be renamed in one step.

    Its name follows from the delivery, and an object is there when all of it is: writing one again changes nothing.
    """
    system, folder = file_system(url)
    final = f"{folder.rstrip('/')}/{name}"
    if not staged.exists():
        if not system.exists(final):
            raise FileNotFoundError(errno.ENOENT, "the staged file is gone", str(staged))
        return
    if appears_whole(url):
        system.put_file(str(staged), final)
    else:
        system.makedirs(folder, exist_ok=True)
        beside = f"{folder.rstrip('/')}/.{name}.tmp"
        system.put_file(str(staged), beside)
        system.mv(beside, final)
    staged.unlink()


def _move(staged: Path, final: Path) -> None:
    """Put a file where it belongs in one step; one that is there already has been put there before."""
    try:
        os.replace(staged, final)  # noqa: PTH105
    except FileNotFoundError:
        if not final.exists():
            raise
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = final.with_name(f".{final.name}.tmp")
        shutil.copyfile(staged, beside)
        beside.replace(final)
        staged.unlink()


def _check_files(options: WriteFiles, spark: SparkSession, columns: InputColumns) -> None:
    del spark
    if is_url(options.path):
        system, folder = file_system(options.path)
        try:
            system.exists(folder)
        except Exception as error:  # each kind of storage has its own
            raise InputError("SINK_UNUSABLE", away(options.path, error)) from None
    several = [len(names) for names in columns if len(names) != 1]
    if options.format == "text" and several:
        message = f"format text writes the only column, and rows have {several[0]}; select one before it"
        raise InputError("SCHEMA_DOES_NOT_FIT", message)


def _format(options: WriteFiles) -> str:
    return options.format


def _folder(options: WriteFiles) -> str | None:
    return None if is_url(options.path) else options.path


class WriteConsole(SinkConfig):
    """Print rows, the first few of each micro-batch."""

    rows: PositiveInt = Field(20, description="How many rows of a micro-batch to print.")


def _to_console(options: WriteConsole, delivery: Delivery, context: SinkContext) -> None:
    table = delivery.table()
    print(f"{context.task}, epoch {delivery.epoch}: {table.num_rows} rows")
    for row in table.slice(0, options.rows).to_pylist():
        print("  " + ", ".join(f"{name}={value}" for name, value in row.items()))


class WriteMemory(SinkConfig):
    """Keep rows in memory, for tests and notebooks."""

    example: ClassVar[Mapping[str, Any]] = {"name": "alarms"}

    name: str = Field(min_length=1, max_length=128, description="Under which name the rows are found.")


def _to_memory(options: WriteMemory, delivery: Delivery, context: SinkContext) -> None:
    context.memory.put(options.name, delivery)


class WriteCall(SinkConfig):
    """Hand the rows of each micro-batch to a Python function, once."""

    example: ClassVar[Mapping[str, Any]] = {"function": "alarms.page_somebody"}

    function: ImportPath = Field(description="Import path of a function that takes (rows, epoch).")


def _to_call(options: WriteCall, delivery: Delivery, context: SinkContext) -> None:
    del context
    load_function(options.function)(delivery.table().to_pylist(), delivery.epoch)


def _check_call(options: WriteCall, spark: SparkSession, columns: InputColumns) -> None:
    del spark, columns
    load_function(options.function)


TYPES = (
    TaskType("write_files", WriteFiles, SINK, work=SinkWork(_to_files, _check_files, _format, _folder)),
    TaskType("write_console", WriteConsole, SINK, work=SinkWork(_to_console)),
    TaskType("write_memory", WriteMemory, SINK, work=SinkWork(_to_memory)),
    TaskType("write_call", WriteCall, SINK, work=SinkWork(_to_call, _check_call)),
    WRITE_KAFKA,
    WRITE_TABLE,
    WRITE_DELTA,
    WRITE_ICEBERG,
)
